// Renders every case of cases.json with xterm.js and writes what it shows to
// screens.json: the lines without trailing blanks, and the cursor.
//
//   npm ci && node oracle.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import headless from '@xterm/headless';
import unicode11 from '@xterm/addon-unicode11';

const cases = JSON.parse(readFileSync(new URL('cases.json', import.meta.url), 'utf8'));
const screens = {};
for (const { name, in: input, cols = 20, rows = 5 } of cases) {
  if (name in screens) throw new Error(`two cases are named "${name}"`);
  const terminal = new headless.Terminal({ cols, rows, scrollback: 0, allowProposedApi: true, logLevel: 'off' });
  terminal.loadAddon(new unicode11.Unicode11Addon());
  terminal.unicode.activeVersion = '11';
  await new Promise((done) => terminal.write(input, done));
  const buffer = terminal.buffer.active;
  const lines = [];
  for (let y = 0; y < rows; y++) lines.push(buffer.getLine(buffer.baseY + y).translateToString(true).trimEnd());
  while (lines.length && !lines.at(-1)) lines.pop();
  screens[name] = { lines, x: buffer.cursorX, y: buffer.cursorY };
  terminal.dispose();
}
const rows = Object.entries(screens).map(([name, screen]) => `${JSON.stringify(name)}: ${JSON.stringify(screen)}`);
writeFileSync(new URL('screens.json', import.meta.url), `{\n${rows.join(',\n')}\n}\n`);
console.log(`${cases.length} cases`);
