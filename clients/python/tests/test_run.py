"""Runs over a transport of the test's own."""

import asyncio
import unittest
from collections.abc import Mapping
from typing import Any

from amux import AmuxError, Client, Run

HEAD = {"run_id": "01M888HCKMYGJ6WQWXV9RSHYH8", "time": "2026-11-25T02:28:43Z", "agent": "a"}
END = {
    **{"type": "run_end", "state": "completed", "reason": "completed", "code": "", "exit_code": 0, "turns": 1, "cost": None},
    **{"tokens": dict.fromkeys(("input", "output", "thinking", "cache_read", "cache_write")), "duration_ms": 1},
}


class Fake:
    """A channel that gives what it has, then nothing for ever."""

    def __init__(self, *objects: dict[str, Any] | None | Exception) -> None:
        self.objects = list(objects)
        self.sent: list[Mapping[str, Any]] = []

    async def next(self) -> dict[str, Any] | None:
        if not self.objects:
            await asyncio.Event().wait()
        head = self.objects.pop(0)
        if isinstance(head, Exception):
            raise head
        return head

    async def send(self, line: Mapping[str, Any]) -> None:
        self.sent.append(line)

    async def close(self) -> None:
        pass


def say(seq: int, text: str, **more: Any) -> dict[str, Any]:
    return {"type": "message_stop", **HEAD, "seq": seq, "text": text, **more}


class Runs(unittest.IsolatedAsyncioTestCase):
    async def test_text_is_the_last_message_of_the_main_conversation(self) -> None:
        run = Run(
            Fake(say(1, "a"), say(2, "b"), say(3, "of a sub-agent", parent_id="c"), say(4, "cut", aborted=True), {**END, **HEAD, "seq": 5}), None
        )
        self.assertEqual((await run.wait()).text, "b")

    async def test_gap_repeat_and_nonsense(self) -> None:
        for objects in ([say(1, "a"), say(3, "b")], [say(1, "a"), say(1, "a")], [say(2, "a")], [{"type": "x"}], [{}]):
            run = Run(Fake(*objects), None)
            with self.assertRaises(AmuxError) as caught:
                await run.wait()
            self.assertEqual(caught.exception.code, "PARSE_ERROR", objects)
            with self.assertRaises(AmuxError):  # it does not go on as if nothing had been
                await anext(run)

    async def test_one_task_reads(self) -> None:
        run = Run(Fake(say(1, "a")), None)
        await anext(run)
        reader = asyncio.ensure_future(anext(run))
        await asyncio.sleep(0)
        with self.assertRaises(RuntimeError):
            await anext(run)
        reader.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await reader
        run._channel.objects.append(say(2, "b"))
        self.assertEqual((await anext(run)).seq, 2)

    async def test_input_lines(self) -> None:
        fake = Fake()
        run = Run(fake, None)
        await run.send("p")
        await run.approve()
        await run.approve("i", updated_input={"a": 1})
        await run.deny("i", reason="no")
        await run.answer("t", "i")
        await run.interrupt()
        await run.set_model("m")
        await run.set_approve("auto")
        await run.finish()
        await run.stop()
        self.assertEqual(
            fake.sent,
            [
                {"type": "prompt", "text": "p"},
                {"type": "approve"},
                {"type": "approve", "interaction_id": "i", "updated_input": {"a": 1}},
                {"type": "deny", "interaction_id": "i", "reason": "no"},
                {"type": "answer", "interaction_id": "i", "text": "t"},
                {"type": "interrupt"},
                {"type": "set_model", "model": "m"},
                {"type": "set_approve", "approve": "auto"},
                {"type": "end"},
                {"type": "stop"},
            ],
        )

    async def test_another_transport(self) -> None:
        """Client needs no more than what Transport says."""

        class Other:
            async def start(self, spec: Any) -> Fake:
                return Fake({**END, **HEAD, "seq": 1})

            async def list(self, **_: Any) -> list[dict[str, Any]]:
                return [{"run_id": "r", "agent": "a", "state": "running"}, {"agent": "a"}]

        client = Client(Other())
        async with await client.run("a", "p") as run:
            self.assertTrue((await run.wait()).ok)
        with self.assertRaises(AmuxError) as caught:
            await client.list()
        self.assertEqual(caught.exception.code, "PARSE_ERROR")
