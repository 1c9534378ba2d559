"""amux over HTTP: amux serve --http, on the user's own socket or on a port."""

from __future__ import annotations

import asyncio
import contextlib
import json
import pathlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from . import api
from .errors import AmuxError
from .transport import Channel, RunSpec

_MOST_LINE = 128 << 20  # bytes of an event, or of an answer
_HEAD = 64 << 10
_RETRY = 30.0  # seconds without an event until a broken stream is an error


class HTTPTransport:
    """Reach amux by HTTP.

    address is http://127.0.0.1:PORT, with the token, or the path of the socket http.sock.
    Runs do not end with this client, however it ends: Client.run stops its run when it is
    closed, and cannot if this process is killed.
    """

    def __init__(self, address: str, token: str | None = None) -> None:
        self._token = token
        if address.startswith("http://"):
            parts = urlsplit(address)
            if not parts.hostname or not parts.port:
                raise AmuxError("VALIDATION_ERROR", f"invalid address {address!r}", hint="http://127.0.0.1:PORT")
            self._tcp: tuple[str, int] | None = (parts.hostname, parts.port)
            self._host = parts.netloc
        else:
            self._tcp, self._socket, self._host = None, address, "localhost"

    @classmethod
    def of_user(cls, address: str, home: str | None = None) -> HTTPTransport:
        """Reach a port with the token in the user's ~/.agent-mux/http.token."""
        path = pathlib.Path(home or pathlib.Path.home()) / ".agent-mux" / "http.token"
        try:
            return cls(address, path.read_text().strip())
        except OSError as problem:
            raise AmuxError("CONFIG_ERROR", f"no token: {problem}", hint="amux serve --http=127.0.0.1:PORT makes one") from None

    async def _open(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] = {}) -> _Answer:
        try:
            if self._tcp:
                reader, writer = await asyncio.open_connection(*self._tcp, limit=_HEAD)
            else:
                reader, writer = await asyncio.open_unix_connection(self._socket, limit=_HEAD)
        except OSError as problem:
            raise AmuxError("NETWORK_ERROR", f"amux serve --http is not there: {problem}") from None
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}", "Connection: close"]
        data = b""
        if body is not None:
            data = json.dumps(body).encode()
            lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        if self._token:
            lines.append(f"Authorization: Bearer {self._token}")
        lines += [f"{name}: {value}" for name, value in headers.items()]
        answer = _Answer(reader, writer)
        try:
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
            await writer.drain()
            await answer.head()
            if answer.status >= 300:
                raise answer.error(await answer.all())
        except BaseException as problem:
            await answer.close()
            if isinstance(problem, (OSError, EOFError)):
                raise AmuxError("NETWORK_ERROR", f"the connection to amux broke: {problem}") from None
            raise
        return answer

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = await self._open(method, path, body)
        try:
            data = await answer.all()
        except (OSError, EOFError) as problem:
            raise AmuxError("NETWORK_ERROR", f"the connection to amux broke: {problem}") from None
        finally:
            await answer.close()
        return json.loads(data) if data else None

    async def start(self, spec: RunSpec) -> Channel:
        run_id = await self.detach(spec)
        return _Channel(self, run_id, 0, owned=True)

    async def detach(self, spec: RunSpec) -> str:
        for name, given in (("run_id", spec.run_id), ("idle_timeout", spec.idle_timeout), ("flags", spec.flags)):
            if given:
                raise AmuxError("VALIDATION_ERROR", f"{name} cannot be given over HTTP")
        body: dict[str, Any] = {
            "agent": spec.agent, "prompt": spec.prompt, "conversation": spec.conversation, "cwd": spec.cwd or str(pathlib.Path.cwd()),
            "name": spec.name, "tags": list(spec.tags), "model": spec.model, "effort": spec.effort, "system": spec.system,
            "resume": spec.resume, "approve": spec.approve, "allow": list(spec.allow), "deny": list(spec.deny),
            "files": list(spec.files), "env": dict(spec.env), "max_turns": spec.max_turns, "max_cost_usd": spec.max_cost,
            "max_tokens": spec.max_tokens, "timeout_seconds": spec.timeout,
        }  # fmt: skip
        run: api.Run = await self._ask("POST", "/v1/runs", {name: value for name, value in body.items() if value not in (None, [], {}, False)})
        return str(run["run_id"])

    async def open(self, run_id: str, after: int) -> Channel:
        run = await self.inspect(run_id)
        return _Channel(self, str(run["run_id"]), after, owned=False)

    async def list(self, *, ended: bool, tags: Sequence[str], filters: Mapping[str, str]) -> list[dict[str, Any]]:
        unknown = set(filters) - {"agent", "state"}
        if unknown:
            raise AmuxError("VALIDATION_ERROR", f"no filter {sorted(unknown)[0]!r} over HTTP", hint="agent, state and tags")
        query: dict[str, Any] = {**filters, "limit": 1000}
        if ended:
            query["all"] = "true"
        if tags:
            query["tag"] = tags[0]
        found: list[dict[str, Any]] = []
        while True:
            page: api.ListAnswer = await self._ask("GET", "/v1/runs?" + urlencode(query))
            found += [dict(run) for run in page["runs"] if set(tags) <= set(run.get("tags") or ())]
            if not page["more"]:
                return found
            query["after"] = page["runs"][-1]["run_id"]

    async def inspect(self, run_id: str) -> dict[str, Any]:
        run: api.Run = await self._ask("GET", _path(run_id))
        return dict(run)


def _path(run_id: str, *more: str) -> str:
    return "/".join(["/v1/runs", quote(run_id, safe=""), *(quote(part, safe="") for part in more)])


class _Answer:
    """The answer to one request, on a connection of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status = 0
        self._chunked = False
        self._length: int | None = None

    async def head(self) -> None:
        first = (await self._reader.readline()).split(None, 2)
        if len(first) < 2 or not first[1].isdigit():
            raise EOFError("no answer")
        self.status, size = int(first[1]), 0
        while (line := await self._reader.readline()) not in (b"\r\n", b"\n", b""):
            size += len(line)
            if size > _HEAD:
                raise EOFError("an answer with too long a head")
            name, _, value = line.partition(b":")
            if name.lower() == b"transfer-encoding":
                self._chunked = b"chunked" in value.lower()
            elif name.lower() == b"content-length":
                self._length = int(value)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes; EOFError if it is cut off."""
        if self.status == 204:
            return
        if not self._chunked:
            left = self._length
            while left is None or left > 0:
                data = await self._reader.read(64 << 10 if left is None else min(left, 64 << 10))
                if not data:
                    if left is None:
                        return
                    raise EOFError("cut off")
                left = left if left is None else left - len(data)
                yield data
            return
        while True:
            line = await self._reader.readline()
            if not line.endswith(b"\n"):
                raise EOFError("cut off")
            size = int(line.split(b";")[0], 16)
            if size > _MOST_LINE:
                raise EOFError("a piece that is too large")
            data = await self._reader.readexactly(size + 2)
            if size == 0:
                return
            yield data[:-2]

    async def all(self) -> bytes:
        whole = bytearray()
        async for piece in self.pieces():
            whole += piece
            if len(whole) > _MOST_LINE:
                raise EOFError("an answer that is too long")
        return bytes(whole)

    def error(self, data: bytes) -> AmuxError:
        with contextlib.suppress(ValueError, AttributeError, TypeError):
            raw = json.loads(data)
            return AmuxError(str(raw["code"]), str(raw["message"]), hint=str(raw.get("hint", "")))
        return AmuxError("INTERNAL", f"amux answered with status {self.status}")

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class _Channel:
    """The events of one run, which go on behind the last one when the stream breaks."""

    def __init__(self, transport: HTTPTransport, run_id: str, after: int, *, owned: bool) -> None:
        self._transport, self._run_id, self._after, self._owned = transport, run_id, after, owned
        self._ready: asyncio.Queue[dict[str, Any] | AmuxError | None] = asyncio.Queue(1000)
        self._over = False
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        since = asyncio.get_running_loop().time()
        while True:
            before = self._after
            problem = AmuxError("HOST_GONE", "the stream of events broke, and does not come back", run_id=self._run_id)
            try:
                answer = await self._transport._open("GET", _path(self._run_id, "events"), headers={"Last-Event-ID": str(self._after)})
                try:
                    if await self._events(answer) or answer.status == 204:
                        await self._ready.put(None)
                        return
                finally:
                    await answer.close()
            except AmuxError as refused:
                if refused.code != "NETWORK_ERROR":
                    await self._ready.put(refused)
                    return
                problem = refused
            except (OSError, EOFError, ValueError):
                pass
            now = asyncio.get_running_loop().time()
            if self._after > before:
                since = now
            if now - since > _RETRY:
                await self._ready.put(problem)
                return
            await asyncio.sleep(0.1)

    async def _events(self, answer: _Answer) -> bool:
        """Read events until the stream ends; True if the run has."""
        rest = bytearray()
        async for piece in answer.pieces():
            rest += piece
            *lines, last = rest.split(b"\n")
            rest = bytearray(last)
            if len(rest) > _MOST_LINE:
                raise EOFError("an event that is too long")
            for line in lines:
                if not line.startswith(b"data: "):
                    continue
                event = json.loads(line[6:])
                await self._ready.put(event)
                self._after = event["seq"]
                if event["type"] == "run_end":
                    return True
        return False

    async def next(self) -> dict[str, Any] | None:
        if self._over:
            return None
        found = await self._ready.get()
        if isinstance(found, AmuxError):
            raise found
        self._over = found is None
        return found

    async def send(self, line: Mapping[str, Any]) -> None:
        ask, kind = self._transport._ask, line["type"]
        match kind:
            case "prompt":
                await ask("POST", _path(self._run_id, "prompts"), {"prompt": line["text"]})
            case "end":
                await ask("POST", _path(self._run_id, "prompts"), {"end": True})
            case "interrupt" | "stop":
                await ask("POST", _path(self._run_id, kind))
            case "set_model":
                await ask("PUT", _path(self._run_id, "model"), {"model": line["model"]})
            case "set_approve":
                await ask("PUT", _path(self._run_id, "approve"), {"approve": line["approve"]})
            case "approve" | "deny" | "answer":
                body = {"answer": kind, "text": line.get("reason", line.get("text")), "updated_input": line.get("updated_input")}
                question = line.get("interaction_id") or await self._only()
                await ask(
                    "POST", _path(self._run_id, "questions", question), {name: value for name, value in body.items() if value is not None}
                )
            case _:
                raise AmuxError("VALIDATION_ERROR", f"no input line of type {kind!r}")

    async def _only(self) -> str:
        """The id of the only open question."""
        questions = (await self._transport._ask("GET", _path(self._run_id, "questions")))["questions"]
        if len(questions) != 1:
            raise AmuxError(
                "NO_PENDING_INTERACTION" if not questions else "VALIDATION_ERROR",
                f"the run asks {len(questions)} questions",
                hint="give the interaction_id",
                run_id=self._run_id,
            )
        return str(questions[0]["interaction_id"])

    async def close(self) -> None:
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader
        if self._owned and not self._over:
            with contextlib.suppress(AmuxError):  # it has ended
                await self._transport._ask("POST", _path(self._run_id, "stop"))
