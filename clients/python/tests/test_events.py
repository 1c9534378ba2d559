"""Events from JSON: what is known, what is not, what is wrong."""

import json
import pathlib
import unittest

from amux import events

HEAD = {"run_id": "01M888HCKMYGJ6WQWXV9RSHYH8", "seq": 1, "time": "2026-11-25T02:28:43Z", "agent": "a"}
ROOT = pathlib.Path(__file__).parents[3]


class Parse(unittest.TestCase):
    def test_known(self) -> None:
        event = events.parse({"type": "text_delta", **HEAD, "delta": "hi", "later": 1})
        self.assertIsInstance(event, events.TextDelta)
        self.assertEqual((event.type, event.delta, event.parent_id, event.json["later"]), ("text_delta", "hi", None, 1))

    def test_unknown_figures_are_none(self) -> None:
        event = events.parse({"type": "rate_limited", **HEAD, "retry_after_ms": None})
        self.assertIsInstance(event, events.RateLimited)
        self.assertIsNone(event.retry_after_ms)

    def test_a_word_that_python_keeps(self) -> None:
        event = events.parse({"type": "run_state", **HEAD, "from": "", "to": "queued"})
        self.assertEqual((event.from_, event.to), ("", "queued"))

    def test_parts(self) -> None:
        event = events.parse({"type": "todo_update", **HEAD, "items": [{"text": "a", "status": "done?"}]})
        self.assertEqual(event.items, (events.TodoItem(text="a", status="done?"),))

    def test_what_is_not_known_is_other(self) -> None:
        for raw in (
            {"type": "hologram", "depth": 3},
            {"type": "text_delta"},
            {"type": "text_delta", "delta": None},
            {"type": "turn_start", "turn_index": True},
            {"type": "turn_start", "turn_index": 1.5},
            {"type": "todo_update", "items": {}},
            {"type": "todo_update", "items": [1]},
            {"type": "todo_update", "items": [{"text": 1}]},
            {"type": "cost", "cost": {"usd": "1"}},
        ):
            event = events.parse({**raw, **HEAD})
            self.assertIsInstance(event, events.OtherEvent, raw)
            self.assertEqual(event.json["type"], raw["type"])

    def test_what_is_no_event(self) -> None:
        for raw in ({}, {"type": "text_delta", "delta": "x"}, {**HEAD}, {"type": 1, **HEAD}, {"type": "x", **HEAD, "seq": "1"}):
            with self.assertRaises(ValueError, msg=str(raw)):
                events.parse(raw)

    def test_the_recorded_run(self) -> None:
        """Every event of the run in README's picture is known."""
        for line in (ROOT / "docs/picture/run/events.jsonl").read_text(encoding="utf-8").splitlines():
            event = events.parse(json.loads(line))
            self.assertNotIsInstance(event, events.OtherEvent, line)

    def test_all_recordings(self) -> None:
        """Every event in the transcripts of our adapters is known."""
        count = 0
        for path in (ROOT / "plugins").rglob("*.txtar"):
            if path.parts[-3:-1] == ("remote", "testdata"):
                continue  # of another amux, which leaves out fields
            _, _, text = path.read_bytes().partition(b"\n-- events.ndjson --\n")
            for line in text.partition(b"\n-- ")[0].strip().split(b"\n"):
                raw = json.loads(line or b"{}")
                if "type" in raw:
                    count += 1
                    self.assertNotIsInstance(events.parse({**HEAD, **raw}), events.OtherEvent, f"{path}: {line!r}")
        self.assertGreater(count, 9000)

    def test_the_schema(self) -> None:
        """There is a class for each type in the schema, and no other."""
        schema = json.loads((ROOT / "docs/schema/events.schema.json").read_text(encoding="utf-8"))
        types = {each["properties"]["type"].get("const") for each in schema["$defs"].values() if "type" in each["properties"]}
        self.assertEqual(types - {None}, set(events._EVENTS))
