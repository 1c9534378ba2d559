"""Start runs of coding agents, and follow them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from .errors import AmuxError
from .events import AnyEvent, MessageStop, RunEnd, parse
from .process import ProcessTransport
from .transport import Channel, RunSpec, Transport


@dataclass(frozen=True, kw_only=True)
class Result:
    """How a run ended. text is the last message that was read of the main conversation."""

    run_id: str
    end: RunEnd
    text: str

    @property
    def ok(self) -> bool:
        return self.end.code == ""

    def check(self) -> Self:
        """Return the result; raise AmuxError if the run did not complete."""
        if not self.ok:
            raise AmuxError(
                self.end.code, self.end.message or f"the run ended {self.end.state}", hint=self.end.hint or "", run_id=self.run_id
            )
        return self


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """A run in a list. json has all that amux says of it."""

    run_id: str
    agent: str
    state: str
    name: str | None = None
    prompt: str = ""
    created: str = ""
    ended: str | None = None
    events: int = 0
    json: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> RunInfo:
        try:
            return cls(
                run_id=raw["run_id"],
                agent=raw["agent"],
                state=raw["state"],
                name=raw.get("name"),
                prompt=raw.get("prompt", ""),
                created=raw.get("created", ""),
                ended=raw.get("ended"),
                events=raw.get("events", 0),
                json=raw,
            )
        except (KeyError, TypeError, AttributeError):
            raise AmuxError("PARSE_ERROR", "amux listed a run without run_id, agent or state") from None


class Run:
    """A run and the place in its events. One task reads; any may send.

    As an async context manager it closes the connection at the end. That stops a run
    started by Client.run; one that was detached goes on.
    """

    def __init__(self, channel: Channel, run_id: str | None, after: int = 0) -> None:
        self._channel = channel
        self._reading = False
        self._over = False
        self._text = ""
        self._error: AmuxError | None = None
        self.id: str | None = run_id
        """The run's id; None until the first event of a run started by Client.run."""
        self.seq: int = after
        """The number of the last event that was read. Client.open(id, after=seq) goes on behind it."""
        self.end: RunEnd | None = None
        """The last event, once it was read."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[AnyEvent]:
        return self

    async def __anext__(self) -> AnyEvent:
        event = await self._next()
        if event is None:
            raise StopAsyncIteration
        return event

    def events(self) -> AsyncIterator[AnyEvent]:
        """Iterate over the events that were not read yet, to the end of the run.

        Raise AmuxError if the run cannot start, or the stream ends before the run.
        """
        return self

    async def _next(self) -> AnyEvent | None:
        if self.end is not None or self._over:
            return None
        if self._error is not None:
            raise self._error
        if self._reading:
            raise RuntimeError("another task reads the events of this run")
        self._reading = True
        try:
            raw = await self._channel.next()
            if raw is None:
                self._over = True
                return None
            try:
                event = parse(raw)
            except ValueError as problem:
                raise AmuxError("PARSE_ERROR", f"amux printed a line that is no event: {problem}", run_id=self.id) from None
            if event.seq != self.seq + 1:
                raise AmuxError("PARSE_ERROR", f"event {event.seq} came after event {self.seq}", run_id=self.id)
        except AmuxError as problem:
            problem.run_id = problem.run_id or self.id
            self._error = problem
            raise
        finally:
            self._reading = False
        self.id, self.seq = event.run_id, event.seq
        match event:
            case MessageStop(parent_id=None, text=text, aborted=None | False):
                self._text = text
            case RunEnd():
                self.end = event
        return event

    async def wait(self) -> Result:
        """Read the remaining events and return how the run ended."""
        while await self._next() is not None:
            pass
        if self.end is None or self.id is None:
            raise AmuxError(
                "RUN_NOT_ACTIVE", "the run ended before the event that this reader begins with", hint="see Client.inspect", run_id=self.id
            )
        return Result(run_id=self.id, end=self.end, text=self._text)

    async def send(self, text: str) -> None:
        """Send a prompt."""
        await self._channel.send({"type": "prompt", "text": text})

    async def approve(self, interaction_id: str | None = None, *, updated_input: Any = None) -> None:
        """Approve a request. Without an id it is the only one that is open."""
        await self._send("approve", interaction_id=interaction_id, updated_input=updated_input)

    async def deny(self, interaction_id: str | None = None, *, reason: str | None = None) -> None:
        """Deny a request."""
        await self._send("deny", interaction_id=interaction_id, reason=reason)

    async def answer(self, text: str, interaction_id: str | None = None) -> None:
        """Answer a question."""
        await self._send("answer", interaction_id=interaction_id, text=text)

    async def interrupt(self) -> None:
        """Cancel the current turn."""
        await self._send("interrupt")

    async def set_model(self, model: str) -> None:
        """Change the model."""
        await self._send("set_model", model=model)

    async def set_approve(self, approve: str) -> None:
        """Change who answers from now on: ask, auto, deny or rules."""
        await self._send("set_approve", approve=approve)

    async def finish(self) -> None:
        """End the conversation when the agent has finished."""
        await self._send("end")

    async def stop(self) -> None:
        """Stop the run. It ends in state canceled."""
        await self._send("stop")

    async def _send(self, kind: str, **members: Any) -> None:
        await self._channel.send({"type": kind, **{name: value for name, value in members.items() if value is not None}})

    async def close(self) -> None:
        """Close the connection; a run started by Client.run ends with it."""
        await self._channel.close()


class Client:
    """amux, reached by a transport; by default by starting the amux command."""

    def __init__(self, transport: Transport | None = None) -> None:
        self.transport: Transport = transport or ProcessTransport()

    async def run(self, agent: str, prompt: str | None = None, **options: Any) -> Run:
        """Start a run that ends with this client. The options are the fields of RunSpec."""
        return Run(await self.transport.start(RunSpec(agent=agent, prompt=prompt, **options)), None)

    async def detach(self, agent: str, prompt: str, **options: Any) -> Run:
        """Start a run that goes on when this client ends."""
        run_id = await self.transport.detach(RunSpec(agent=agent, prompt=prompt, **options))
        return await self.open(run_id)

    async def open(self, run_id: str, *, after: int = 0) -> Run:
        """Watch and control a run of any process, from the event behind number after."""
        return Run(await self.transport.open(run_id, after), run_id, after)

    async def list(self, *, ended: bool = False, tags: Sequence[str] = (), **filters: str) -> list[RunInfo]:
        """List live runs, or all; filters are those of amux ps --filter, as agent="claude"."""
        return [RunInfo.from_json(raw) for raw in await self.transport.list(ended=ended, tags=tags, filters=filters)]

    async def inspect(self, run_id: str) -> RunInfo:
        """Return one run."""
        return RunInfo.from_json(await self.transport.inspect(run_id))
