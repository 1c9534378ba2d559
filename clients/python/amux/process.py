"""The transport that starts the amux command."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import AmuxError
from .transport import Channel, RunSpec

log = logging.getLogger("amux")

_CHUNK = 1 << 18
_LONGEST_EVENT = 1 << 30
_LONGEST_NOTE = 1 << 16
_RESTARTS = 5  # of amux logs in a row, without an event between them


def find_program() -> str:
    """Return the path of amux: $AMUX_PROGRAM, the one in PATH, or ~/.local/bin/amux."""
    chosen = os.environ.get("AMUX_PROGRAM")
    if chosen:
        return chosen
    found = shutil.which("amux") or shutil.which(os.path.expanduser("~/.local/bin/amux"))
    if found is None:
        raise AmuxError(
            "PROGRAM_NOT_FOUND", "amux is not in PATH", hint="install it, or set AMUX_PROGRAM to the path of the program"
        )
    return found


class ProcessTransport:
    """Start amux for each run and each question.

    program is the path of amux. env is the environment of amux, and so of the agents;
    None is that of this process. on_error is called with what amux did not accept of the
    lines that were sent to a run; without it they are logged.
    """

    def __init__(
        self,
        program: str | None = None,
        *,
        config_dir: str | None = None,
        env: Mapping[str, str] | None = None,
        on_error: Callable[[AmuxError], None] | None = None,
        grace: float = 15,
    ) -> None:
        self._program = program
        self._options = [] if config_dir is None else [f"--config-dir={config_dir}"]
        self._env = env
        self._on_error = on_error or (lambda error: log.warning("%s", error))
        self._grace = grace

    async def start(self, spec: RunSpec) -> Channel:
        argv = ["run", "--json", "--input=ndjson", "--monitor-stdin", *_flags(spec), "--", spec.agent]
        one_prompt = spec.prompt is not None and not spec.conversation
        if spec.prompt is None and not spec.conversation:
            raise AmuxError("VALIDATION_ERROR", "the run has neither a prompt nor conversation=True")
        process = await self._spawn(argv + (["-"] if one_prompt else []), spec)
        channel = _Foreground(_Child(process, self._on_error), self._grace)
        if spec.prompt is not None:
            try:
                await channel.send({"type": "prompt", "text": spec.prompt})
            except AmuxError:
                pass  # next says why it has ended
            except BaseException:
                await channel.close()
                raise
        return channel

    async def detach(self, spec: RunSpec) -> str:
        if spec.prompt is None or spec.conversation:
            raise AmuxError("CAPABILITY_ERROR", "a detached run takes one prompt", hint="give prompt, without conversation")
        out = await self._command(["run", "--detach", *_flags(spec), "--", spec.agent, "-"], spec.prompt, spec)
        return out.decode().strip()

    async def open(self, run_id: str, after: int) -> Channel:
        return _Watch(self, run_id, after)

    async def list(self, *, ended: bool, tags: Sequence[str], filters: Mapping[str, str]) -> list[dict[str, Any]]:
        argv = ["ps", "--json"] + (["--all"] if ended else [])
        argv += [f"--tag={tag}" for tag in tags] + [f"--filter={name}={value}" for name, value in filters.items()]
        runs: list[dict[str, Any]] = _document(await self._command(argv), list)
        return runs

    async def inspect(self, run_id: str) -> dict[str, Any]:
        run: dict[str, Any] = _document(await self._command(["inspect", "--json", "--", run_id]), dict)
        return run

    async def _spawn(self, argv: Sequence[str], spec: RunSpec | None = None) -> asyncio.subprocess.Process:
        env = dict(os.environ if self._env is None else self._env)
        if spec is not None:
            env.update(spec.env)
        env["AMUX_ERRORS"] = "json"
        program = self._program or find_program()
        try:
            return await asyncio.create_subprocess_exec(
                program,
                *self._options,
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=env,
                cwd=spec.cwd if spec is not None else None,
            )
        except OSError as problem:
            if spec is not None and spec.cwd is not None and not os.path.isdir(spec.cwd):
                raise AmuxError("VALIDATION_ERROR", f"cwd {spec.cwd!r} is not a folder") from problem
            raise AmuxError("PROGRAM_NOT_FOUND", f"start {program}: {problem.strerror}") from problem
        except ValueError as problem:  # a NUL byte
            raise AmuxError("VALIDATION_ERROR", f"start amux: {problem}") from problem

    async def _command(self, argv: Sequence[str], stdin: str = "", spec: RunSpec | None = None) -> bytes:
        """Run a command of amux to its end, and return its stdout."""
        process = await self._spawn(argv, spec)
        try:
            out, notes = await process.communicate(stdin.encode("utf-8", "surrogatepass"))
        finally:
            _kill(process)
        if process.returncode == 0:
            return out
        for line in notes.splitlines():
            if error := AmuxError.from_line(line):
                error.exit_code = process.returncode
                raise error
        raise _died(process.returncode, f"amux {argv[0]}")


def _flags(spec: RunSpec) -> list[str]:
    flags: list[str] = []
    for name, value in {
        "model": spec.model,
        "effort": spec.effort,
        "system": spec.system,
        "resume": spec.resume,
        "approve": spec.approve,
        "max-turns": spec.max_turns,
        "max-cost": spec.max_cost,
        "max-tokens": spec.max_tokens,
        "timeout": None if spec.timeout is None else f"{spec.timeout:f}s",
        "idle-timeout": None if spec.idle_timeout is None else f"{spec.idle_timeout:f}s",
        "name": spec.name,
        "run-id": spec.run_id,
    }.items():
        if value is not None:
            flags.append(f"--{name}={value}")
    for name, values in {"allow": spec.allow, "deny": spec.deny, "file": spec.files, "tag": spec.tags}.items():
        flags += [f"--{name}={value}" for value in values]
    return flags + list(spec.flags)


def _document(out: bytes, kind: type) -> Any:
    try:
        document = json.loads(out)
    except (ValueError, RecursionError) as problem:
        raise AmuxError("PARSE_ERROR", f"amux printed no JSON: {problem}") from None
    if not isinstance(document, kind):
        raise AmuxError("PARSE_ERROR", f"amux printed a {type(document).__name__}, expected a {kind.__name__}")
    return document


def _died(code: int | None, what: str) -> AmuxError:
    if code is not None and code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return AmuxError("HOST_GONE", f"{what} was killed by {name}", exit_code=code)
    return AmuxError("INTERNAL", f"{what} exited with {code} and did not say why", exit_code=code)


def _kill(process: asyncio.subprocess.Process) -> None:
    # Not process.kill: it may reap a process that has just ended, and asyncio then waits
    # for it in vain.
    if process.returncode is None:
        try:
            os.kill(process.pid, signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        except OSError:
            pass


def _closed() -> AmuxError:
    return AmuxError("ABORTED", "the connection to the run was closed")


class _Lines:
    """Lines of a stream, read when somebody asks for one: a slow reader holds up the writer, not the memory."""

    def __init__(self, reader: asyncio.StreamReader, longest: int) -> None:
        self._reader = reader
        self._longest = longest
        self._buffer = bytearray()
        self._searched = 0
        self._over = False

    async def next(self) -> bytes | None:
        """Return a line without its end; None at the end of the stream. A torn last line is dropped."""
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                return line
            self._searched = len(self._buffer)
            if self._searched > self._longest:
                raise AmuxError("PARSE_ERROR", f"amux printed a line of more than {self._longest} bytes")
            if self._over:
                return None
            data = await self._reader.read(_CHUNK)
            if not data:
                self._over = True
            self._buffer += data


class _Child:
    """A process of amux whose stdout is events."""

    def __init__(self, process: asyncio.subprocess.Process, on_error: Callable[[AmuxError], None]) -> None:
        assert process.stdin and process.stdout and process.stderr
        self.process = process
        self.stdin = process.stdin
        self.error: AmuxError | None = None  # the last that is not about an input line
        self._on_error = on_error
        self._lines = _Lines(process.stdout, _LONGEST_EVENT)
        self._notes = asyncio.create_task(self._read_notes(process.stderr))

    async def _read_notes(self, stderr: asyncio.StreamReader) -> None:
        lines = _Lines(stderr, _LONGEST_NOTE)
        while True:
            try:
                line = await lines.next()
            except AmuxError:
                lines = _Lines(stderr, _LONGEST_NOTE)
                continue
            if line is None:
                return
            error = AmuxError.from_line(line)
            if error is None:
                log.info("%s", line.decode("utf-8", "replace"))
            elif error.input_line is None:
                self.error = error
            else:
                self._on_error(error)

    async def next(self) -> dict[str, Any] | None:
        """Return the next object of stdout, or None at its end."""
        line = await self._lines.next()
        if line is None:
            return None
        try:
            raw = json.loads(line)
        except (ValueError, RecursionError) as problem:
            raise AmuxError("PARSE_ERROR", f"amux printed a line that is no JSON: {problem}") from None
        if not isinstance(raw, dict):
            raise AmuxError("PARSE_ERROR", "amux printed a line that is no JSON object")
        return raw

    async def ended(self, what: str) -> AmuxError:
        """Wait for the process and return why it ended without run_end."""
        code = await self.process.wait()
        await self._notes
        if self.error is not None and code >= 0:
            self.error.exit_code = code
            return self.error
        return _died(code, what)

    async def reap(self, grace: float) -> None:
        """Read to the end, wait for the process; kill it when grace seconds are over."""

        async def drain() -> None:
            try:
                while await self.process.stdout.read(_CHUNK):  # type: ignore[union-attr]
                    pass
            except RuntimeError:
                pass  # another task reads, so that this one need not
            await self.process.wait()
            await self._notes

        try:
            await asyncio.wait_for(drain(), grace)
        except TimeoutError:
            pass
        finally:
            _kill(self.process)
            await self.process.wait()
            self._notes.cancel()


class _Foreground:
    """A run that amux hosts for this client."""

    def __init__(self, child: _Child, grace: float) -> None:
        self._child = child
        self._grace = grace
        self._writing = asyncio.Lock()
        self._closed = False

    async def next(self) -> dict[str, Any]:
        raw = await self._child.next()
        if raw is not None:
            if error := AmuxError.from_json(raw):
                await self._child.ended("amux run")
                error.exit_code = self._child.process.returncode
                raise error
            return raw
        error = await self._child.ended("amux run")
        raise _closed() if self._closed else error

    async def send(self, line: Mapping[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        async with self._writing:
            try:
                self._child.stdin.write(data)
                await self._child.stdin.drain()
            except (ConnectionError, RuntimeError) as problem:
                raise AmuxError("RUN_NOT_ACTIVE", "amux run has ended") from problem

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._child.stdin.close()  # by --monitor-stdin that stops a run that goes on
            await self._child.reap(self._grace)


class _Watch:
    """A run that another process hosts: amux logs -f, and a command for each input line."""

    def __init__(self, transport: ProcessTransport, run_id: str, after: int) -> None:
        self._transport = transport
        self._run_id = run_id
        self._after = after
        self._child: _Child | None = None
        self._failed = 0
        self._closed = False

    async def next(self) -> dict[str, Any] | None:
        while True:
            if self._closed:
                raise _closed()
            if self._child is None:
                argv = ["logs", "--follow", "--json", f"--from={self._after + 1}", "--", self._run_id]
                process = await self._transport._spawn(argv)
                process.stdin.close()  # type: ignore[union-attr]
                self._child = _Child(process, self._transport._on_error)
                if self._closed:  # meanwhile
                    await self.close()
                    continue
            raw = await self._child.next()
            if raw is not None:
                seq = raw.get("seq")
                if isinstance(seq, int):
                    if seq <= self._after:
                        continue
                    self._after, self._failed = seq, 0
                if error := AmuxError.from_json(raw):
                    await self._child.ended("amux logs")
                    error.exit_code = self._child.process.returncode
                    raise error
                return raw
            child, self._child = self._child, None
            if child is None:
                continue  # closed meanwhile
            error = await child.ended("amux logs")
            code = child.process.returncode
            if code == 0 and await self._is_over():
                return None
            self._failed += 1
            if code is None or code > 0 or self._failed > _RESTARTS:
                raise error
            # Somebody killed amux logs: go on behind the last event.

    async def _is_over(self) -> bool:
        """Report whether the run has ended, and all its events were read."""
        info = await self._transport.inspect(self._run_id)
        events = info.get("events")
        return info.get("ended") is not None and isinstance(events, int) and events <= self._after

    async def send(self, line: Mapping[str, Any]) -> None:
        kind, run, stdin = line.get("type"), self._run_id, ""
        request = [] if line.get("interaction_id") is None else [str(line["interaction_id"])]
        match kind:
            case "prompt":
                argv, stdin = ["send", "--", run, "-"], str(line["text"])
            case "approve":
                updated = line.get("updated_input")
                argv = ["approve", *([] if updated is None else [f"--input={json.dumps(updated)}"]), "--", run, *request]
            case "deny":
                reason = line.get("reason")
                argv = ["deny", *([] if reason is None else [f"--reason={reason}"]), "--", run, *request]
            case "answer":
                argv = ["answer", "--", run, *request, str(line["text"])]
            case "interrupt" | "stop":
                argv = [str(kind), "--", run]
            case "end":
                argv = ["send", "--end", "--", run]
            case _:
                raise AmuxError("CAPABILITY_ERROR", f"{kind} is for a run that this client has started")
        await self._transport._command(argv, stdin)

    async def close(self) -> None:
        self._closed = True
        child, self._child = self._child, None
        if child is not None:
            _kill(child.process)  # it only reads
            await child.reap(1)
