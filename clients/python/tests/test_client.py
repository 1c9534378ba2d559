"""The client against the built amux and its demo agent."""

import asyncio
import os
import pathlib
import re
import signal
import subprocess
import sys

from amux import Client, ProcessTransport, Run, events
from amux.process import _kill

from .amux_run import PATIENCE, ROOT, AmuxTest, gone


def command_lines() -> str:
    """Return the command lines of all processes."""
    if not os.path.isdir("/proc/self"):
        return subprocess.run(["ps", "-Aww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    lines = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            pass  # it has ended
    return "\n".join(lines)


async def until(run: Run, kind: type) -> events.AnyEvent:
    async for event in run:
        if isinstance(event, kind):
            return event
    raise AssertionError(f"the run ended without {kind.__name__}")


class Foreground(AmuxTest):
    async def test_approve(self) -> None:
        async with await self.client.run("demo", "[approve]", approve="ask") as run:
            self.assertIsNone(run.id)
            request = await until(run, events.ApprovalRequest)
            await run.approve(request.interaction_id, updated_input={"content": "changed"})
            answered = await until(run, events.ToolResult)
            self.assertEqual(answered.output, 'wrote "changed"')
            result = await run.wait()
        self.assertTrue(result.ok)
        self.assertEqual((result.text, result.end.state, result.run_id), ("Done.", "completed", request.run_id))
        self.assertEqual((await run.wait()), result)
        self.assertEqual(self.errors, [])

    async def test_conversation(self) -> None:
        async with await self.client.run("demo", conversation=True, approve="ask") as run:
            await run.send("[approve][ask:which?]")
            await until(run, events.ApprovalRequest)
            await run.deny(reason="not today")
            self.assertEqual((await until(run, events.ToolError)).error, "denied: not today")
            question = await until(run, events.InputRequired)
            await run.answer("the blue one\nwith 'quotes' \ud800", question.interaction_id)
            self.assertIn("the blue one\nwith 'quotes'", (await until(run, events.MessageStop)).text)
            await until(run, events.TurnEnd)
            await run.set_model("large")
            await run.set_approve("auto")
            await run.send("[approve]")
            await until(run, events.ApprovalGranted)
            await until(run, events.TurnEnd)
            await run.send("[sleep:1000]")
            await until(run, events.TurnStart)
            await run.interrupt()
            await until(run, events.TurnEnd)
            await run.send("[say:last]")
            await run.finish()
            result = (await run.wait()).check()
        self.assertEqual(result.end.turns, 4)

    async def test_what_amux_does_not_accept(self) -> None:
        async with await self.client.run("demo", "[approve]", approve="ask") as run:
            await until(run, events.ApprovalRequest)
            await run.approve("nobody-asked")
            await run.approve()
            await run.wait()
        self.assertEqual([(error.code, error.input_line) for error in self.errors], [("INTERACTION_NOT_FOUND", 2)])

    async def test_failed_run(self) -> None:
        async with await self.client.run("demo", "[fail:RATE_LIMITED]") as run:
            result = await run.wait()
        self.assertFalse(result.ok)
        with self.refused("RATE_LIMITED") as caught:
            result.check()
        self.assertEqual(caught.exception.run_id, run.id)

    async def test_runs_that_cannot_start(self) -> None:
        for code, exit_code, agent, options in (
            ("VALIDATION_ERROR", 2, "demo", {"flags": ["--nonsense"]}),
            ("VALIDATION_ERROR", 2, "demo", {"timeout": -1}),
            ("VALIDATION_ERROR", 2, "demo", {"approve": "perhaps"}),
            ("AGENT_NOT_FOUND", 3, "nobody", {}),
            ("AGENT_NOT_FOUND", 3, "--version", {}),
        ):
            async with await self.client.run(agent, "x", **options) as run:
                with self.refused(code) as caught:
                    await run.wait()
                self.assertEqual(caught.exception.exit_code, exit_code)
                with self.refused(code):  # again, not an end without an error
                    await run.wait()
            with self.refused(code) as caught:
                await self.client.detach(agent, "x", **options)
            self.assertEqual(caught.exception.exit_code, exit_code)
        with self.refused("VALIDATION_ERROR"):
            await self.client.run("demo")
        with self.refused("VALIDATION_ERROR"):
            await self.client.run("demo", "x", cwd=os.path.join(self.home, "nowhere"))
        with self.refused("PROGRAM_NOT_FOUND"):
            await Client(ProcessTransport(os.path.join(self.home, "amux"))).run("demo", "x")

    async def test_environment_and_values_that_look_like_flags(self) -> None:
        """Values are not taken for flags, and secrets do not show on the command line."""
        async with await self.client.run("demo", "--version [sleep:1000]", env={"SECRET": "hunter2"}, name="-n") as run:
            with self.refused("VALIDATION_ERROR"):  # amux refuses the name, as a name
                await run.wait()
        async with await self.client.run("demo", "--version [sleep:1000]", env={"SECRET": "hunter2"}) as run:
            prompt = await until(run, events.UserMessage)
            self.assertEqual(prompt.text, "--version [sleep:1000]")
            listed = command_lines()
            self.assertIn("--monitor-stdin", listed)
            self.assertNotIn("hunter2", listed)
            self.assertNotIn("--version [sleep", listed)

    async def test_close_stops_the_run(self) -> None:
        run = await self.client.run("demo", "[spawn:daemon][ignore-term][sleep:1000]", flags=["--grace=100ms"])
        pid = int(re.search(r"pid (\d+)", (await until(run, events.ToolResult)).output)[1])
        await run.close()
        await run.close()
        self.assertTrue(gone(pid))
        self.assertEqual((await self.client.inspect(run.id)).state, "canceled")
        with self.refused("RUN_NOT_ACTIVE"):
            await run.send("more")
        with self.refused("ABORTED"):
            await run.wait()

    async def test_close_while_another_task_reads(self) -> None:
        run = await self.client.run("demo", "[sleep:1000]")
        await until(run, events.TurnStart)
        reader = asyncio.ensure_future(run.wait())
        await asyncio.sleep(0)
        await run.close()
        self.assertEqual((await reader).end.state, "canceled")

    async def test_amux_killed(self) -> None:
        async with await self.client.run("demo", "[spawn:daemon][sleep:1000]") as run:
            pid = int(re.search(r"pid (\d+)", (await until(run, events.ToolResult)).output)[1])
            _kill(run._channel._child.process)
            with self.refused("HOST_GONE") as caught:
                await run.wait()
            self.assertEqual(caught.exception.run_id, run.id)
        self.until(lambda: gone(pid), "what the agent started is gone")
        # What was not read is in the record, and goes on behind what was.
        async with await self.client.open(run.id, after=run.seq) as rest:
            result = await rest.wait()
        self.assertFalse(result.ok)

    async def test_slow_reader(self) -> None:
        """A reader that stops holds no memory, delays no run, and loses nothing."""
        lines = 30_000
        async with await self.client.run("demo", f"[lines:{lines}]") as run:
            await until(run, events.TextDelta)
            while (await self.client.inspect(run.id)).ended is None:
                await asyncio.sleep(0.05)
            child = run._channel._child
            held = len(child._lines._buffer) + len(child.process.stdout._buffer)
            self.assertLess(held, 2 << 20)
            count = 1
            async for event in run:
                count += isinstance(event, events.TextDelta)
            self.assertGreaterEqual(count, lines)
            self.assertEqual((await self.client.inspect(run.id)).events, run.seq)

    async def test_long_event(self) -> None:
        async with await self.client.run("demo", f"[bigline:{8 << 20}]") as run:
            longest = max([len(event.text) async for event in run if isinstance(event, events.MessageStop)])
        self.assertEqual(longest, 8 << 20)

    async def test_cancelled_reader_goes_on(self) -> None:
        async with await self.client.run("demo", "[sleep:0.3][say:x]") as run:
            seen = []
            while run.end is None:
                try:
                    seen.append((await asyncio.wait_for(anext(run), 0.01)).seq)
                except TimeoutError:
                    pass
        self.assertEqual(seen, list(range(1, len(seen) + 1)))

    async def test_example(self) -> None:
        """The example of README, in a process of its own."""
        example = subprocess.run(
            [sys.executable, ROOT / "clients/python/examples/approve.py", "demo", "[approve]"],
            env=self.env | {"AMUX_PROGRAM": self.program, "PYTHONPATH": str(ROOT / "clients/python")},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        self.assertEqual((example.stdout, example.returncode), ("Done.\n", 0), example.stderr)
        self.assertIn("approved write_file", example.stderr)


class Detached(AmuxTest):
    async def test_control(self) -> None:
        async with await self.client.detach("demo", "[approve][ask][sleep:1000]", approve="ask", tags=["ctl"]) as run:
            request = await until(run, events.ApprovalRequest)
            listed = await self.client.list(tags=["ctl"])
            self.assertEqual([(each.run_id, each.agent) for each in listed], [(run.id, "demo")])
            with self.refused("INTERACTION_NOT_FOUND"):
                await run.approve("nobody-asked")
            await run.approve(request.interaction_id, updated_input={"content": "-x"})
            await until(run, events.InputRequired)
            await run.answer("--version")
            self.assertIn("--version", (await until(run, events.MessageStop)).text)
            with self.refused("STDIN_NOT_AVAILABLE"):
                await run.send("more")
            with self.refused("CAPABILITY_ERROR"):
                await run.set_model("large")
            await run.stop()
            result = await run.wait()
        self.assertEqual((result.end.state, result.end.reason), ("canceled", "stopped"))
        self.assertEqual(await self.client.list(tags=["ctl"]), [])
        self.assertEqual([each.state for each in await self.client.list(ended=True, tags=["ctl"], state="canceled")], ["canceled"])
        with self.refused("VALIDATION_ERROR"):
            await self.client.list(colour="blue")
        with self.refused("VALIDATION_ERROR"):
            await self.client.inspect("no-such-run")

    async def test_closed_reader_leaves_the_run(self) -> None:
        async with await self.client.detach("demo", "[sleep:1000]") as run:
            await until(run, events.TurnStart)
        self.assertEqual((await self.client.inspect(run.id)).state, "running")
        with self.refused("ABORTED"):
            await run.wait()
        async with await self.client.open(run.id) as again:
            reader = asyncio.ensure_future(again.wait())
            await asyncio.sleep(0)  # it starts amux logs
        with self.refused("ABORTED"):
            await reader
        async with await self.client.open(run.id) as again:
            await again.interrupt()
            await again.wait()
        self.assertEqual((again.seq, [each async for each in again]), (again.end.seq, []))

    async def test_nothing_behind_the_end(self) -> None:
        async with await self.client.detach("demo", "[say:x]") as run:
            await run.wait()
        async with await self.client.open(run.id, after=run.seq) as rest:
            self.assertEqual([event async for event in rest], [])
            with self.refused("RUN_NOT_ACTIVE"):
                await rest.wait()

    async def test_reader_killed_and_resumed(self) -> None:
        """A program that watches is killed; another goes on without a gap or a repeat."""
        run = await self.client.detach("demo", "[lines:500][ask][lines:500]", approve="ask")
        await run.close()
        program = (
            "import asyncio, sys; from amux import *\n"
            "async def main():\n"
            "    async for event in await Client(ProcessTransport(sys.argv[1])).open(sys.argv[2]):\n"
            "        print(event.seq, flush=True)\n"
            "        if event.seq == 400: await asyncio.Event().wait()\n"  # before the question
            "asyncio.run(main())"
        )
        reader = subprocess.Popen(
            [sys.executable, "-c", program, self.program, run.id],
            env=self.env | {"PYTHONPATH": str(ROOT / "clients/python")},
            stdout=subprocess.PIPE,
            text=True,
        )
        seen = [int(reader.stdout.readline()) for _ in range(300)]
        reader.send_signal(signal.SIGKILL)
        seen += [int(line) for line in reader.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        reader.wait()
        reader.stdout.close()
        async with await self.client.open(run.id, after=seen[-1]) as rest:
            async for event in rest:
                seen.append(event.seq)
                if isinstance(event, events.InputRequired):
                    await rest.answer("go on")
        self.assertEqual(seen, list(range(1, rest.end.seq + 1)))
        self.assertGreater(len(seen), 1000)

    async def test_amux_logs_killed(self) -> None:
        """The client starts amux logs again, behind the last event."""
        async with await self.client.detach("demo", "[lines:300][ask][lines:300]", approve="ask") as run:
            seen = []
            async for event in run:
                seen.append(event.seq)
                if len(seen) in (50, 250):
                    _kill(run._channel._child.process)
                if isinstance(event, events.InputRequired):
                    _kill(run._channel._child.process)
                    await run.answer("go on")
        self.assertEqual(seen, list(range(1, run.end.seq + 1)))

    async def test_example(self) -> None:
        """The example that keeps its place in a file."""
        async with await self.client.detach("demo", "[say:x]") as run:
            await run.wait()
        for want in (run.seq, 0):  # all, then none
            example = subprocess.run(
                [sys.executable, ROOT / "clients/python/examples/resume.py", run.id],
                env=self.env | {"AMUX_PROGRAM": self.program, "PYTHONPATH": str(ROOT / "clients/python")},
                cwd=self.home,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
            self.assertEqual((len(example.stdout.splitlines()), example.returncode), (want, 0), example.stderr)

    async def test_watch_of_no_run(self) -> None:
        async with await self.client.open("no-such-run") as run:
            with self.refused("VALIDATION_ERROR"):
                await run.wait()
