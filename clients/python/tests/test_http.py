"""The client over HTTP, against the built amux and its demo agent."""

import os
import signal
import subprocess

from amux import Client, HTTPTransport

from .amux_run import PATIENCE, AmuxTest


class OverHTTP(AmuxTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.port = None
        cls.http = None
        cls.begin()
        cls.addClassCleanup(cls.end)

    @classmethod
    def begin(cls) -> None:
        address = f"127.0.0.1:{cls.port or 0}"
        cls.http = subprocess.Popen([cls.program, "serve", f"--http={address}"], env=cls.env, stderr=subprocess.PIPE, text=True)
        line = cls.http.stderr.readline()
        cls.port = int(line.split("http://127.0.0.1:")[1].split(";")[0])

    @classmethod
    def end(cls) -> None:
        cls.http.send_signal(signal.SIGKILL)
        cls.http.wait(PATIENCE)
        cls.http.stderr.close()

    def setUp(self) -> None:
        super().setUp()
        self.over = Client(HTTPTransport.of_user(f"http://127.0.0.1:{self.port}", self.home))

    async def test_approve(self) -> None:
        async with await self.over.run("demo", "[approve]", cwd=self.home, name="one", tags=["a", "b"]) as run:
            async for event in run:
                if event.type == "approval_request":
                    await run.approve(event.interaction_id, updated_input={"content": "changed"})
                if event.type == "tool_result":
                    self.assertEqual(event.output, 'wrote "changed"')
            result = (await run.wait()).check()
        self.assertEqual(result.text, "Done.")
        info = await self.over.inspect("one")
        self.assertEqual((info.run_id, info.state), (result.run_id, "completed"))
        for tags, found in ((["a"], 1), (["a", "b"], 1), (["a", "c"], 0)):
            self.assertEqual(len(await self.over.list(ended=True, tags=tags, agent="demo")), found, tags)
        with self.refused("VALIDATION_ERROR"):
            await self.over.list(bogus="x")
        with self.refused("VALIDATION_ERROR"):
            await self.over.run("demo", "x", flags=["--retry=3"])
        with self.refused("VALIDATION_ERROR"):
            await self.over.open("nope")

    async def test_conversation(self) -> None:
        async with await self.over.run("demo", conversation=True, cwd=self.home) as run:
            await run.send("[approve][ask:which?]")
            said = ""
            async for event in run:
                if event.type == "approval_request":
                    await run.deny(reason="not today")
                if event.type == "input_required":
                    await run.answer("blue")
                if event.type == "message_stop":
                    said += event.text
                if event.type == "turn_end":
                    await run.finish()
            (await run.wait()).check()
        self.assertIn("not today", said)
        self.assertIn("You answered: blue", said)

    async def test_run_ends_with_its_client(self) -> None:
        run = await self.over.run("demo", "[sleep:600]", cwd=self.home)
        await anext(run)
        await run.close()
        watched = await self.over.open(run.id, after=run.seq)
        self.assertEqual((await watched.wait()).end.state, "canceled")
        await watched.close()

    async def test_server_is_killed(self) -> None:
        """A reader goes on without a gap and without a repeat; Run checks that."""
        run = await self.over.detach("demo", "[lines:20][sleep:0.1]" * 20, cwd=self.home)
        async with run:
            async for event in run:
                if event.seq in (50, 200):
                    self.end()
                    self.begin()
            self.assertEqual((await run.wait()).check().end.state, "completed")
        again = await self.over.open(run.id, after=run.seq)
        self.assertEqual([event async for event in again], [])
        await again.close()

    async def test_token_and_socket(self) -> None:
        with self.refused("AUTH_ERROR"):
            await Client(HTTPTransport(f"http://127.0.0.1:{self.port}", "wrong")).list()
        with self.refused("NETWORK_ERROR"):
            await Client(HTTPTransport(os.path.join(self.home, "nothing"))).list()
        own = subprocess.Popen([self.program, "serve", "--http"], env=self.env, stderr=subprocess.PIPE, text=True)
        try:
            path = own.stderr.readline().split("serving HTTP on ")[1].strip()
            self.assertIsInstance(await Client(HTTPTransport(path)).list(), list)
        finally:
            own.kill()
            own.wait(PATIENCE)
            own.stderr.close()
