"""The built amux, in a home of its own."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

from amux import Client, ProcessTransport

ROOT = pathlib.Path(__file__).parents[3]
PATIENCE = 60.0


class AmuxTest(unittest.IsolatedAsyncioTestCase):
    """Tests that share a home and an amux serve."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.program = os.environ.get("AMUX_PROGRAM") or str(ROOT / "bin" / "amux")
        if not os.path.exists(cls.program):
            raise RuntimeError(f"{cls.program} is not there: make build")
        cls.home = tempfile.mkdtemp(prefix="ac")  # short: sockets are in it
        cls.addClassCleanup(shutil.rmtree, cls.home, ignore_errors=True)
        run = os.path.join(cls.home, "run")
        os.mkdir(run, 0o700)
        cls.env = {"HOME": cls.home, "XDG_RUNTIME_DIR": run, "PATH": os.environ["PATH"], "TMPDIR": cls.home}
        cls.serve = subprocess.Popen([cls.program, "serve", "--idle", "0s"], env=cls.env, stdin=subprocess.DEVNULL)
        cls.addClassCleanup(cls.end_serve)
        cls.until(lambda: os.path.exists(os.path.join(run, "amux", "serve.sock")), "amux serve listens")

    @classmethod
    def end_serve(cls) -> None:
        def amux(*args: str) -> str:
            return subprocess.run([cls.program, *args], env=cls.env, capture_output=True, text=True, timeout=PATIENCE).stdout

        for run in amux("ps", "-q").split():  # of tests that failed
            amux("kill", run)
        cls.serve.terminate()
        cls.serve.wait(PATIENCE)

    @staticmethod
    def until(condition, what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"not in {PATIENCE} s: {what}")
            time.sleep(0.01)

    def setUp(self) -> None:
        self.errors = []
        self.transport = ProcessTransport(self.program, env=self.env, on_error=self.errors.append)
        self.client = Client(self.transport)

    @contextlib.contextmanager
    def refused(self, code: str):
        from amux import AmuxError

        with self.assertRaises(AmuxError) as caught:
            yield caught
        self.assertEqual(caught.exception.code, code, caught.exception)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
