"""Errors of amux."""

from __future__ import annotations

import json


class AmuxError(Exception):
    """Something that amux refused or could not do.

    code is one of the error codes in docs/events.md, and a few of the client's own:
    PROGRAM_NOT_FOUND. hint is the way out, or empty. exit_code is that of the amux
    command, if one ended. input_line is the number of the input line, from 1, that amux
    did not accept, or None.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        run_id: str | None = None,
        exit_code: int | None = None,
        input_line: int | None = None,
    ) -> None:
        super().__init__(f"{message} ({code})" + (f"; {hint}" if hint else ""))
        self.code = code
        self.message = message
        self.hint = hint
        self.run_id = run_id
        self.exit_code = exit_code
        self.input_line = input_line

    @classmethod
    def from_json(cls, raw: object, *, exit_code: int | None = None) -> AmuxError | None:
        """Make an error of a line of type error; None if raw is none."""
        if not isinstance(raw, dict) or raw.get("type") != "error" or "seq" in raw:
            return None

        def text(name: str) -> str:
            value = raw.get(name)
            return value if isinstance(value, str) else ""

        line = raw.get("input_line")
        return cls(
            text("code") or "INTERNAL",
            text("message") or "amux reported an error",
            hint=text("hint"),
            run_id=text("run_id") or None,
            exit_code=exit_code,
            input_line=line if isinstance(line, int) else None,
        )

    @classmethod
    def from_line(cls, line: bytes) -> AmuxError | None:
        """Make an error of a line of amux's stderr; None if the line is something else."""
        if not line.startswith(b"{"):
            return None
        try:
            return cls.from_json(json.loads(line))
        except (ValueError, RecursionError):
            return None
