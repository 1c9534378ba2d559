import { h } from "./dom.js";

/** size is how many items share a block. */
const size = 40;
/** guess is the height of an item that was never drawn, in pixels. */
const guess = 48;

/**
 * List shows any number of items of any height, and has elements only for those that can be
 * seen and their neighbours: items are in blocks, and a block that is far away is as high as
 * it was, and empty. Who is at the end stays there.
 */
export class List {
	/** draw(item) makes an element; redraw(item, element) brings it up to date. */
	constructor(draw, redraw) {
		Object.assign(this, { draw, redraw, items: [], blocks: [], dirty: new Set(), planned: false });
		this.inside = h("div", { role: "list" });
		this.node = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "What happened" }, this.inside);
		this.seen = new IntersectionObserver(entries => {
			const stay = this.atEnd();
			for (const { target, isIntersecting } of entries) this.show(this.blocks[target.dataset.block], isIntersecting);
			if (stay) this.toEnd();
		}, { root: this.node, rootMargin: "800px 0px" });
		this.following = true;
		this.node.addEventListener("scroll", () => { this.following = this.atEnd(); }, { passive: true });
	}

	atEnd() { return this.node.scrollHeight - this.node.scrollTop - this.node.clientHeight < 60; }
	toEnd() { this.node.scrollTop = this.node.scrollHeight; }

	add(item) {
		item.at = this.items.push(item) - 1;
		this.change(item);
	}

	/** change has an item drawn again, with all others that change before the next frame. */
	change(item) {
		this.dirty.add(item);
		if (this.planned) return;
		this.planned = true;
		requestAnimationFrame(() => this.flush());
	}

	flush() {
		this.planned = false;
		while (this.blocks.length * size < this.items.length) {
			const node = h("div", { class: "block", role: "presentation", "data-block": this.blocks.length });
			this.blocks.push({ first: this.blocks.length * size, node, elements: null });
			this.inside.append(node);
			this.seen.observe(node);
		}
		for (const item of this.dirty) {
			const block = this.blocks[Math.floor(item.at / size)];
			if (!block.elements) {
				const height = Math.min(size, this.items.length - block.first) * guess;
				if (!block.drawn) block.node.style.height = `${height}px`;
				continue;
			}
			const element = block.elements[item.at - block.first];
			if (element) this.redraw(item, element);
			else block.node.append(block.elements[item.at - block.first] = this.draw(item));
		}
		this.dirty.clear();
		if (this.following) this.toEnd();
	}

	show(block, wanted) {
		if (wanted === Boolean(block.elements)) return;
		if (wanted) {
			block.elements = this.items.slice(block.first, block.first + size).map(item => this.draw(item));
			block.node.style.height = "";
			block.node.append(...block.elements);
		} else {
			if (block.node.contains(document.activeElement)) return; // who works in it keeps it
			block.node.style.height = `${block.node.offsetHeight}px`;
			block.drawn = true;
			block.elements = null;
			block.node.replaceChildren();
		}
	}

	leave() { this.seen.disconnect(); }
}
