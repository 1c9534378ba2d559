"""How a client reaches amux: the interface that every way implements.

ProcessTransport (amux.process) starts the amux command. HTTPTransport (amux.http) asks
amux serve --http.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """What to run, and how. None leaves the choice to the settings of amux."""

    agent: str
    prompt: str | None = None
    conversation: bool = False  # take more prompts, until end
    model: str | None = None
    effort: str | None = None
    system: str | None = None
    resume: str | None = None  # session of the agent
    approve: str | None = None  # ask, auto, deny or rules
    allow: Sequence[str] = ()
    deny: Sequence[str] = ()
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)  # added to the agent's environment
    files: Sequence[str] = ()
    max_turns: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None  # seconds
    idle_timeout: float | None = None  # seconds
    name: str | None = None
    run_id: str | None = None
    tags: Sequence[str] = ()
    flags: Sequence[str] = ()  # more flags of amux run, as --retry=3


class Channel(Protocol):
    """The connection to one run. One task reads."""

    async def next(self) -> dict[str, Any] | None:
        """Return the next line's object; None if the run has ended and there are no more.

        Raise AmuxError if the stream ends before the run. Safe to cancel.
        """
        ...

    async def send(self, line: Mapping[str, Any]) -> None:
        """Send an input line, as docs/schema/input.schema.json has it."""
        ...

    async def close(self) -> None:
        """Let go of the connection. A run that belongs to it is stopped."""
        ...


class Transport(Protocol):
    async def start(self, spec: RunSpec) -> Channel:
        """Start a run that ends with this connection."""
        ...

    async def detach(self, spec: RunSpec) -> str:
        """Start a run that goes on without a client, and return its id."""
        ...

    async def open(self, run_id: str, after: int) -> Channel:
        """Watch a run, from the event behind number after."""
        ...

    async def list(self, *, ended: bool, tags: Sequence[str], filters: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the runs, newest first."""
        ...

    async def inspect(self, run_id: str) -> dict[str, Any]:
        """Return one run."""
        ...
