"""Types of the events, made from docs/schema/events.schema.json by make docs. Do not edit.

parse makes an event of a JSON object. None stands for an unknown figure; it is never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from ._decode import Field as _Field
from ._decode import Mismatch, any_json, array, boolean, decode, integer, nullable, number, part, string


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoItem:
    """todo_item is one line of a todo_update. status is pending, in_progress or completed."""

    text: str
    status: str  # (pending, in_progress, completed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """question is one of several that an agent asks at once. The answer to an input_required with questions is a JSON object: question → answer."""

    question: str
    header: str | None = None
    options: tuple[str, ...] | None = None
    multiple: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """tokens are the totals of a run; null is unknown."""

    input: int | None
    output: int | None
    thinking: int | None
    cache_read: int | None
    cache_write: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """origin is what an event was in the run of another amux, which this run has driven: the field origin of events of the agent amux-remote. Its session ids, and the ids of tools and questions, stay where they are."""

    run_id: str
    seq: int
    time: str  # RFC 3339, by the clock there
    agent: str
    origin: Origin | None = None  # where that amux drove another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event has. Fields that this client does not know are in json."""

    type: str  # One of the types below. Ignore an event whose type you do not know.
    run_id: str  # The run, a ULID.
    seq: int  # The event's number within its run, from 1, without gaps.
    time: str  # RFC 3339, UTC: when amux recorded what the event is made from.
    agent: str  # The agent's id.
    origin: Origin | None = None  # What the event was in the run of another amux, which this run has driven.
    json: Mapping[str, Any] = field(repr=False, compare=False)  # the whole object


_COMMON: tuple[_Field, ...] = (
    _Field("type", "type", string, True),
    _Field("run_id", "run_id", string, True),
    _Field("seq", "seq", integer, True),
    _Field("time", "time", string, True),
    _Field("agent", "agent", string, True),
    _Field("origin", "origin", lambda v: _origin(v), False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart(Event):
    """session_start is the first event about the agent's own conversation."""

    type: Literal["session_start"] = "session_start"
    session_id: str
    resumed: bool
    forked_from: str | None = None
    model: str | None = None
    version: str | None = None  # the agent program's
    tools: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResume(Event):
    type: Literal["session_resume"] = "session_resume"
    session_id: str
    prior_turn_count: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFork(Event):
    type: Literal["session_fork"] = "session_fork"
    session_id: str
    forked_from: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCheckpoint(Event):
    type: Literal["session_checkpoint"] = "session_checkpoint"
    session_id: str
    checkpoint_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd(Event):
    type: Literal["session_end"] = "session_end"
    session_id: str
    turn_count: int
    cost: Money | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTitle(Event):
    type: Literal["session_title"] = "session_title"
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage(Event):
    """user_message is a prompt on its way to the agent. The host writes it for prompts given through amux; an adapter for those it did not come through."""

    type: Literal["user_message"] = "user_message"
    id: str | None = None
    text: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStart(Event):
    type: Literal["turn_start"] = "turn_start"
    turn_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd(Event):
    type: Literal["turn_end"] = "turn_end"
    turn_index: int
    cost: Money | None = None  # of this turn


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStart(Event):
    type: Literal["step_start"] = "step_start"
    turn_index: int
    step_index: int
    step_type: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnd(Event):
    type: Literal["step_end"] = "step_end"
    turn_index: int
    step_index: int
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStart(Event):
    type: Literal["message_start"] = "message_start"
    message_id: str | None = None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Event):
    type: Literal["text_delta"] = "text_delta"
    delta: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStop(Event):
    """message_stop carries the whole text of the message."""

    type: Literal["message_stop"] = "message_stop"
    message_id: str | None = None
    text: str
    aborted: bool | None = None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingStart(Event):
    type: Literal["thinking_start"] = "thinking_start"
    effort: str | None = None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDelta(Event):
    type: Literal["thinking_delta"] = "thinking_delta"
    delta: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingStop(Event):
    type: Literal["thinking_stop"] = "thinking_stop"
    thinking: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStart(Event):
    type: Literal["tool_call_start"] = "tool_call_start"
    tool_call_id: str
    tool_name: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInputDelta(Event):
    type: Literal["tool_input_delta"] = "tool_input_delta"
    tool_call_id: str
    delta: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallReady(Event):
    type: Literal["tool_call_ready"] = "tool_call_ready"
    tool_call_id: str
    tool_name: str
    input: Any
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Event):
    type: Literal["tool_result"] = "tool_result"
    tool_call_id: str
    tool_name: str
    output: Any
    duration_ms: int | None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolError(Event):
    type: Literal["tool_error"] = "tool_error"
    tool_call_id: str
    tool_name: str
    error: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead(Event):
    type: Literal["file_read"] = "file_read"
    tool_call_id: str | None = None
    path: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrite(Event):
    type: Literal["file_write"] = "file_write"
    tool_call_id: str | None = None
    path: str
    byte_count: int | None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCreate(Event):
    type: Literal["file_create"] = "file_create"
    tool_call_id: str | None = None
    path: str
    byte_count: int | None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDelete(Event):
    type: Literal["file_delete"] = "file_delete"
    tool_call_id: str | None = None
    path: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch(Event):
    type: Literal["file_patch"] = "file_patch"
    tool_call_id: str | None = None
    path: str
    diff: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellStart(Event):
    type: Literal["shell_start"] = "shell_start"
    tool_call_id: str | None = None
    command: str
    cwd: str | None = None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellStdoutDelta(Event):
    type: Literal["shell_stdout_delta"] = "shell_stdout_delta"
    tool_call_id: str | None = None
    delta: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellStderrDelta(Event):
    type: Literal["shell_stderr_delta"] = "shell_stderr_delta"
    tool_call_id: str | None = None
    delta: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellExit(Event):
    type: Literal["shell_exit"] = "shell_exit"
    tool_call_id: str | None = None
    exit_code: int | None
    duration_ms: int | None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolCallStart(Event):
    type: Literal["mcp_tool_call_start"] = "mcp_tool_call_start"
    tool_call_id: str
    server: str
    tool_name: str
    input: Any
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolResult(Event):
    type: Literal["mcp_tool_result"] = "mcp_tool_result"
    tool_call_id: str
    server: str
    tool_name: str
    output: Any
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class McpToolError(Event):
    type: Literal["mcp_tool_error"] = "mcp_tool_error"
    tool_call_id: str
    server: str
    tool_name: str
    error: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentSpawn(Event):
    type: Literal["subagent_spawn"] = "subagent_spawn"
    subagent_id: str  # the tool_call_id that started it
    agent_name: str
    prompt: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentResult(Event):
    type: Literal["subagent_result"] = "subagent_result"
    subagent_id: str
    agent_name: str
    summary: str
    cost: Money | None = None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentError(Event):
    type: Literal["subagent_error"] = "subagent_error"
    subagent_id: str
    agent_name: str
    error: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginLoaded(Event):
    type: Literal["plugin_loaded"] = "plugin_loaded"
    plugin_id: str
    plugin_name: str
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInvoked(Event):
    type: Literal["plugin_invoked"] = "plugin_invoked"
    plugin_id: str
    plugin_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginError(Event):
    type: Literal["plugin_error"] = "plugin_error"
    plugin_id: str
    plugin_name: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillLoaded(Event):
    type: Literal["skill_loaded"] = "skill_loaded"
    skill_name: str
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillInvoked(Event):
    type: Literal["skill_invoked"] = "skill_invoked"
    skill_name: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentdocRead(Event):
    type: Literal["agentdoc_read"] = "agentdoc_read"
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageOutput(Event):
    type: Literal["image_output"] = "image_output"
    tool_call_id: str | None = None
    mime_type: str
    base64: str | None = None
    file_path: str | None = None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageInputAck(Event):
    type: Literal["image_input_ack"] = "image_input_ack"
    mime_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoUpdate(Event):
    """todo_update is the agent's list of what it means to do, whole."""

    type: Literal["todo_update"] = "todo_update"
    items: tuple[TodoItem, ...]
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost(Event):
    type: Literal["cost"] = "cost"
    cost: Money


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage(Event):
    """token_usage: input_tokens without cache reads and writes, which have their own fields; output_tokens with thinking. null is unknown."""

    type: Literal["token_usage"] = "token_usage"
    input_tokens: int | None
    output_tokens: int | None
    thinking_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputRequired(Event):
    type: Literal["input_required"] = "input_required"
    interaction_id: str
    question: str
    context: str | None = None
    source: str  # (agent, tool)
    questions: tuple[Question, ...] | None = None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest(Event):
    type: Literal["approval_request"] = "approval_request"
    interaction_id: str
    action: str
    detail: str
    tool_name: str | None = None
    tool_call_id: str | None = None
    input: Any | None = None
    risk_level: str  # (low, medium, high)
    tool_kind: str | None = None  # How to read detail: shell is a command, word for word, for a POSIX shell; command is about a command; file is about paths, or else detail; fetch is an address. Absent for any other tool. (shell, command, file, fetch)
    paths: tuple[str, ...] | None = None  # The files that the tool will touch, all of them; absent if detail is the only one.
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalGranted(Event):
    type: Literal["approval_granted"] = "approval_granted"
    interaction_id: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPreview(Event):
    """approval_preview comes after the approval_request of a file that is written whole, if people are to answer it: what it would change in the file as it was then. diff is a unified diff; truncated says that it was longer and ends at a line. The host makes it, of text files of at most 1 MiB inside the folder of the run."""

    type: Literal["approval_preview"] = "approval_preview"
    interaction_id: str
    path: str
    diff: str
    truncated: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDenied(Event):
    """approval_denied also says that the agent withdrew its request, or refused by a rule of its own (then interaction_id may be the tool_call_id)."""

    type: Literal["approval_denied"] = "approval_denied"
    interaction_id: str
    reason: str | None = None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAnswered(Event):
    """input_answered closes an input_required."""

    type: Literal["input_answered"] = "input_answered"
    interaction_id: str
    cancelled: bool | None = None
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsChanged(Event):
    """approvals_changed: somebody has decided who answers from now on when the agent asks before it acts: ask, auto, deny or rules."""

    type: Literal["approvals_changed"] = "approvals_changed"
    approve: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeChanged(Event):
    type: Literal["mode_changed"] = "mode_changed"
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimited(Event):
    type: Literal["rate_limited"] = "rate_limited"
    retry_after_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLimitWarning(Event):
    type: Literal["context_limit_warning"] = "context_limit_warning"
    used_tokens: int | None
    max_tokens: int | None
    pct_used: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompacted(Event):
    type: Literal["context_compacted"] = "context_compacted"
    summary: str
    tokens_saved: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry(Event):
    """retry is one more try of a model request by the agent, or of the run by amux: then attempt is the number of the start of the agent that follows in delay_ms, and code, which the agent's tries do not have, is what the last one failed with."""

    type: Literal["retry"] = "retry"
    attempt: int
    max_attempts: int | None
    reason: str
    delay_ms: int | None
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted(Event):
    type: Literal["interrupted"] = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aborted(Event):
    type: Literal["aborted"] = "aborted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(Event):
    type: Literal["paused"] = "paused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Event):
    type: Literal["resumed"] = "resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFallback(Event):
    """stream_fallback says that the agent takes back what it has streamed of an answer, and asks the model again. capability is what was cut off: text, thinking (the message before it is aborted), or tool_calls, which takes back the message that ended before the call too."""

    type: Literal["stream_fallback"] = "stream_fallback"
    capability: str  # (text, thinking, tool_calls)
    reason: str
    parent_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeout(Event):
    type: Literal["timeout"] = "timeout"
    kind: str  # (run, inactivity)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLimit(Event):
    type: Literal["turn_limit"] = "turn_limit"
    max_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthError(Event):
    type: Literal["auth_error"] = "auth_error"
    message: str
    guidance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitError(Event):
    type: Literal["rate_limit_error"] = "rate_limit_error"
    message: str
    retry_after_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextExceeded(Event):
    type: Literal["context_exceeded"] = "context_exceeded"
    used_tokens: int | None
    max_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash(Event):
    type: Literal["crash"] = "crash"
    exit_code: int | None
    signal: str | None = None
    stderr: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEvent(Event):
    """error is the event 'error'."""

    type: Literal["error"] = "error"
    code: str
    message: str
    hint: str | None = None
    recoverable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Debug(Event):
    type: Literal["debug"] = "debug"
    level: str  # (verbose, info, warn)
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Log(Event):
    """log is a line of the agent that is no event. offset and length are given instead of line where it is longer than 128 MiB: the place of its bytes in the stream source."""

    type: Literal["log"] = "log"
    source: str  # A stream of the agent, its terminal, or a stored session. (stdout, stderr, screen, session)
    line: str
    offset: int | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown(Event):
    """unknown is native data that the adapter recognised as an event but has no name for."""

    type: Literal["unknown"] = "unknown"
    raw: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState(Event):
    type: Literal["run_state"] = "run_state"
    from_: str  # (queued, starting, running, waiting, paused, completed, failed, canceled, timed_out, lost)
    to: str  # (queued, starting, running, waiting, paused, completed, failed, canceled, timed_out, lost)
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd(Event):
    """run_end is the last event of every run, once."""

    type: Literal["run_end"] = "run_end"
    state: str  # (completed, failed, canceled, timed_out, lost)
    reason: str
    code: str  # empty on success
    message: str | None = None
    hint: str | None = None  # the way out, where it is not that of the code
    exit_code: int | None  # the agent's
    signal: str | None = None
    session_id: str | None = None
    turns: int
    tokens: Tokens
    cost: Money | None
    duration_ms: int
    unknown_lines: int | None = None  # unknown_lines are those of its stdout that the adapter did not know.


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherEvent(Event):
    """An event of a type that this client does not know, or that lacks what its type should have."""

    type: str


def parse(raw: Mapping[str, Any]) -> AnyEvent:
    """Make an event of a line's JSON object.

    Raise ValueError if the object lacks what every event has.
    """
    try:
        head = decode(raw, _COMMON)
    except Mismatch as problem:
        raise ValueError(f"not an event: {problem}") from None
    known = _EVENTS.get(head["type"])
    if known is not None:
        kind, fields = known
        try:
            body = decode(raw, fields)
        except Mismatch:
            pass
        else:
            return kind(**{**head, **body}, json=raw)  # type: ignore[return-value]
    return OtherEvent(**head, json=raw)


AnyEvent = Union[
    SessionStart,
    SessionResume,
    SessionFork,
    SessionCheckpoint,
    SessionEnd,
    SessionTitle,
    UserMessage,
    TurnStart,
    TurnEnd,
    StepStart,
    StepEnd,
    MessageStart,
    TextDelta,
    MessageStop,
    ThinkingStart,
    ThinkingDelta,
    ThinkingStop,
    ToolCallStart,
    ToolInputDelta,
    ToolCallReady,
    ToolResult,
    ToolError,
    FileRead,
    FileWrite,
    FileCreate,
    FileDelete,
    FilePatch,
    ShellStart,
    ShellStdoutDelta,
    ShellStderrDelta,
    ShellExit,
    McpToolCallStart,
    McpToolResult,
    McpToolError,
    SubagentSpawn,
    SubagentResult,
    SubagentError,
    PluginLoaded,
    PluginInvoked,
    PluginError,
    SkillLoaded,
    SkillInvoked,
    AgentdocRead,
    ImageOutput,
    ImageInputAck,
    TodoUpdate,
    Cost,
    TokenUsage,
    InputRequired,
    ApprovalRequest,
    ApprovalGranted,
    ApprovalPreview,
    ApprovalDenied,
    InputAnswered,
    ApprovalsChanged,
    ModeChanged,
    RateLimited,
    ContextLimitWarning,
    ContextCompacted,
    Retry,
    Interrupted,
    Aborted,
    Paused,
    Resumed,
    StreamFallback,
    Timeout,
    TurnLimit,
    AuthError,
    RateLimitError,
    ContextExceeded,
    Crash,
    ErrorEvent,
    Debug,
    Log,
    Unknown,
    RunState,
    RunEnd,
    OtherEvent,
]
"""One of all events; match on its class."""

_todo_item = part(TodoItem, (
    _Field("text", "text", string, True),
    _Field("status", "status", string, True),
))
_money = part(Money, (
    _Field("usd", "usd", number, True),
))
_question = part(Question, (
    _Field("question", "question", string, True),
    _Field("header", "header", string, False),
    _Field("options", "options", array(string), False),
    _Field("multiple", "multiple", boolean, False),
))
_tokens = part(Tokens, (
    _Field("input", "input", nullable(integer), True),
    _Field("output", "output", nullable(integer), True),
    _Field("thinking", "thinking", nullable(integer), True),
    _Field("cache_read", "cache_read", nullable(integer), True),
    _Field("cache_write", "cache_write", nullable(integer), True),
))
_origin: Callable[[Any], Any] = part(Origin, (
    _Field("run_id", "run_id", string, True),
    _Field("seq", "seq", integer, True),
    _Field("time", "time", string, True),
    _Field("agent", "agent", string, True),
    _Field("origin", "origin", nullable(lambda v: _origin(v)), False),
))
_EVENTS: dict[str, tuple[type[Event], tuple[_Field, ...]]] = {
    "session_start": (SessionStart, (
        _Field("session_id", "session_id", string, True),
        _Field("resumed", "resumed", boolean, True),
        _Field("forked_from", "forked_from", string, False),
        _Field("model", "model", string, False),
        _Field("version", "version", string, False),
        _Field("tools", "tools", array(string), False),
    )),
    "session_resume": (SessionResume, (
        _Field("session_id", "session_id", string, True),
        _Field("prior_turn_count", "prior_turn_count", nullable(integer), True),
    )),
    "session_fork": (SessionFork, (
        _Field("session_id", "session_id", string, True),
        _Field("forked_from", "forked_from", string, True),
    )),
    "session_checkpoint": (SessionCheckpoint, (
        _Field("session_id", "session_id", string, True),
        _Field("checkpoint_id", "checkpoint_id", string, True),
    )),
    "session_end": (SessionEnd, (
        _Field("session_id", "session_id", string, True),
        _Field("turn_count", "turn_count", integer, True),
        _Field("cost", "cost", nullable(_money), False),
    )),
    "session_title": (SessionTitle, (
        _Field("title", "title", string, True),
    )),
    "user_message": (UserMessage, (
        _Field("id", "id", string, False),
        _Field("text", "text", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "turn_start": (TurnStart, (
        _Field("turn_index", "turn_index", integer, True),
    )),
    "turn_end": (TurnEnd, (
        _Field("turn_index", "turn_index", integer, True),
        _Field("cost", "cost", nullable(_money), False),
    )),
    "step_start": (StepStart, (
        _Field("turn_index", "turn_index", integer, True),
        _Field("step_index", "step_index", integer, True),
        _Field("step_type", "step_type", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "step_end": (StepEnd, (
        _Field("turn_index", "turn_index", integer, True),
        _Field("step_index", "step_index", integer, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "message_start": (MessageStart, (
        _Field("message_id", "message_id", string, False),
        _Field("parent_id", "parent_id", string, False),
    )),
    "text_delta": (TextDelta, (
        _Field("delta", "delta", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "message_stop": (MessageStop, (
        _Field("message_id", "message_id", string, False),
        _Field("text", "text", string, True),
        _Field("aborted", "aborted", boolean, False),
        _Field("parent_id", "parent_id", string, False),
    )),
    "thinking_start": (ThinkingStart, (
        _Field("effort", "effort", string, False),
        _Field("parent_id", "parent_id", string, False),
    )),
    "thinking_delta": (ThinkingDelta, (
        _Field("delta", "delta", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "thinking_stop": (ThinkingStop, (
        _Field("thinking", "thinking", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "tool_call_start": (ToolCallStart, (
        _Field("tool_call_id", "tool_call_id", string, True),
        _Field("tool_name", "tool_name", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "tool_input_delta": (ToolInputDelta, (
        _Field("tool_call_id", "tool_call_id", string, True),
        _Field("delta", "delta", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "tool_call_ready": (ToolCallReady, (
        _Field("tool_call_id", "tool_call_id", string, True),
        _Field("tool_name", "tool_name", string, True),
        _Field("input", "input", any_json, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "tool_result": (ToolResult, (
        _Field("tool_call_id", "tool_call_id", string, True),
        _Field("tool_name", "tool_name", string, True),
        _Field("output", "output", any_json, True),
        _Field("duration_ms", "duration_ms", nullable(integer), True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "tool_error": (ToolError, (
        _Field("tool_call_id", "tool_call_id", string, True),
        _Field("tool_name", "tool_name", string, True),
        _Field("error", "error", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "file_read": (FileRead, (
        _Field("tool_call_id", "tool_call_id", string, False),
        _Field("path", "path", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "file_write": (FileWrite, (
        _Field("tool_call_id", "tool_call_id", string, False),
        _Field("path", "path", string, True),
        _Field("byte_count", "byte_count", nullable(integer), True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "file_create": (FileCreate, (
        _Field("tool_call_id", "tool_call_id", string, False),
        _Field("path", "path", string, True),
        _Field("byte_count", "byte_count", nullable(integer), True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "file_delete": (FileDelete, (
        _Field("tool_call_id", "tool_call_id", string, False),
        _Field("path", "path", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "file_patch": (FilePatch, (
        _Field("tool_call_id", "tool_call_id", string, False),
        _Field("path", "path", string, True),
        _Field("diff", "diff", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "shell_start": (ShellStart, (
        _Field("tool_call_id", "tool_call_id", string, False),
        _Field("command", "command", string, True),
        _Field("cwd", "cwd", string, False),
        _Field("parent_id", "parent_id", string, False),
    )),
    "shell_stdout_delta": (ShellStdoutDelta, (
        _Field("tool_call_id", "tool_call_id", string, False),
        _Field("delta", "delta", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "shell_stderr_delta": (ShellStderrDelta, (
        _Field("tool_call_id", "tool_call_id", string, False),
        _Field("delta", "delta", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "shell_exit": (ShellExit, (
        _Field("tool_call_id", "tool_call_id", string, False),
        _Field("exit_code", "exit_code", nullable(integer), True),
        _Field("duration_ms", "duration_ms", nullable(integer), True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "mcp_tool_call_start": (McpToolCallStart, (
        _Field("tool_call_id", "tool_call_id", string, True),
        _Field("server", "server", string, True),
        _Field("tool_name", "tool_name", string, True),
        _Field("input", "input", any_json, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "mcp_tool_result": (McpToolResult, (
        _Field("tool_call_id", "tool_call_id", string, True),
        _Field("server", "server", string, True),
        _Field("tool_name", "tool_name", string, True),
        _Field("output", "output", any_json, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "mcp_tool_error": (McpToolError, (
        _Field("tool_call_id", "tool_call_id", string, True),
        _Field("server", "server", string, True),
        _Field("tool_name", "tool_name", string, True),
        _Field("error", "error", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "subagent_spawn": (SubagentSpawn, (
        _Field("subagent_id", "subagent_id", string, True),
        _Field("agent_name", "agent_name", string, True),
        _Field("prompt", "prompt", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "subagent_result": (SubagentResult, (
        _Field("subagent_id", "subagent_id", string, True),
        _Field("agent_name", "agent_name", string, True),
        _Field("summary", "summary", string, True),
        _Field("cost", "cost", nullable(_money), False),
        _Field("parent_id", "parent_id", string, False),
    )),
    "subagent_error": (SubagentError, (
        _Field("subagent_id", "subagent_id", string, True),
        _Field("agent_name", "agent_name", string, True),
        _Field("error", "error", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "plugin_loaded": (PluginLoaded, (
        _Field("plugin_id", "plugin_id", string, True),
        _Field("plugin_name", "plugin_name", string, True),
        _Field("version", "version", string, False),
    )),
    "plugin_invoked": (PluginInvoked, (
        _Field("plugin_id", "plugin_id", string, True),
        _Field("plugin_name", "plugin_name", string, True),
    )),
    "plugin_error": (PluginError, (
        _Field("plugin_id", "plugin_id", string, True),
        _Field("plugin_name", "plugin_name", string, True),
        _Field("error", "error", string, True),
    )),
    "skill_loaded": (SkillLoaded, (
        _Field("skill_name", "skill_name", string, True),
        _Field("source", "source", string, False),
    )),
    "skill_invoked": (SkillInvoked, (
        _Field("skill_name", "skill_name", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "agentdoc_read": (AgentdocRead, (
        _Field("path", "path", string, True),
    )),
    "image_output": (ImageOutput, (
        _Field("tool_call_id", "tool_call_id", string, False),
        _Field("mime_type", "mime_type", string, True),
        _Field("base64", "base64", string, False),
        _Field("file_path", "file_path", string, False),
        _Field("parent_id", "parent_id", string, False),
    )),
    "image_input_ack": (ImageInputAck, (
        _Field("mime_type", "mime_type", string, True),
    )),
    "todo_update": (TodoUpdate, (
        _Field("items", "items", array(_todo_item), True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "cost": (Cost, (
        _Field("cost", "cost", _money, True),
    )),
    "token_usage": (TokenUsage, (
        _Field("input_tokens", "input_tokens", nullable(integer), True),
        _Field("output_tokens", "output_tokens", nullable(integer), True),
        _Field("thinking_tokens", "thinking_tokens", nullable(integer), True),
        _Field("cache_read_tokens", "cache_read_tokens", nullable(integer), True),
        _Field("cache_write_tokens", "cache_write_tokens", nullable(integer), True),
        _Field("model", "model", string, False),
    )),
    "input_required": (InputRequired, (
        _Field("interaction_id", "interaction_id", string, True),
        _Field("question", "question", string, True),
        _Field("context", "context", string, False),
        _Field("source", "source", string, True),
        _Field("questions", "questions", array(_question), False),
        _Field("parent_id", "parent_id", string, False),
    )),
    "approval_request": (ApprovalRequest, (
        _Field("interaction_id", "interaction_id", string, True),
        _Field("action", "action", string, True),
        _Field("detail", "detail", string, True),
        _Field("tool_name", "tool_name", string, False),
        _Field("tool_call_id", "tool_call_id", string, False),
        _Field("input", "input", any_json, False),
        _Field("risk_level", "risk_level", string, True),
        _Field("tool_kind", "tool_kind", string, False),
        _Field("paths", "paths", array(string), False),
        _Field("parent_id", "parent_id", string, False),
    )),
    "approval_granted": (ApprovalGranted, (
        _Field("interaction_id", "interaction_id", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "approval_preview": (ApprovalPreview, (
        _Field("interaction_id", "interaction_id", string, True),
        _Field("path", "path", string, True),
        _Field("diff", "diff", string, True),
        _Field("truncated", "truncated", boolean, False),
    )),
    "approval_denied": (ApprovalDenied, (
        _Field("interaction_id", "interaction_id", string, True),
        _Field("reason", "reason", string, False),
        _Field("parent_id", "parent_id", string, False),
    )),
    "input_answered": (InputAnswered, (
        _Field("interaction_id", "interaction_id", string, True),
        _Field("cancelled", "cancelled", boolean, False),
        _Field("parent_id", "parent_id", string, False),
    )),
    "approvals_changed": (ApprovalsChanged, (
        _Field("approve", "approve", string, True),
    )),
    "mode_changed": (ModeChanged, (
        _Field("mode", "mode", string, True),
    )),
    "rate_limited": (RateLimited, (
        _Field("retry_after_ms", "retry_after_ms", nullable(integer), True),
    )),
    "context_limit_warning": (ContextLimitWarning, (
        _Field("used_tokens", "used_tokens", nullable(integer), True),
        _Field("max_tokens", "max_tokens", nullable(integer), True),
        _Field("pct_used", "pct_used", nullable(number), True),
    )),
    "context_compacted": (ContextCompacted, (
        _Field("summary", "summary", string, True),
        _Field("tokens_saved", "tokens_saved", nullable(integer), True),
    )),
    "retry": (Retry, (
        _Field("attempt", "attempt", integer, True),
        _Field("max_attempts", "max_attempts", nullable(integer), True),
        _Field("reason", "reason", string, True),
        _Field("delay_ms", "delay_ms", nullable(integer), True),
        _Field("code", "code", string, False),
    )),
    "interrupted": (Interrupted, ()),
    "aborted": (Aborted, ()),
    "paused": (Paused, ()),
    "resumed": (Resumed, ()),
    "stream_fallback": (StreamFallback, (
        _Field("capability", "capability", string, True),
        _Field("reason", "reason", string, True),
        _Field("parent_id", "parent_id", string, False),
    )),
    "timeout": (Timeout, (
        _Field("kind", "kind", string, True),
    )),
    "turn_limit": (TurnLimit, (
        _Field("max_turns", "max_turns", integer, True),
    )),
    "auth_error": (AuthError, (
        _Field("message", "message", string, True),
        _Field("guidance", "guidance", string, True),
    )),
    "rate_limit_error": (RateLimitError, (
        _Field("message", "message", string, True),
        _Field("retry_after_ms", "retry_after_ms", nullable(integer), True),
    )),
    "context_exceeded": (ContextExceeded, (
        _Field("used_tokens", "used_tokens", nullable(integer), True),
        _Field("max_tokens", "max_tokens", nullable(integer), True),
    )),
    "crash": (Crash, (
        _Field("exit_code", "exit_code", nullable(integer), True),
        _Field("signal", "signal", string, False),
        _Field("stderr", "stderr", string, True),
    )),
    "error": (ErrorEvent, (
        _Field("code", "code", string, True),
        _Field("message", "message", string, True),
        _Field("hint", "hint", string, False),
        _Field("recoverable", "recoverable", boolean, True),
    )),
    "debug": (Debug, (
        _Field("level", "level", string, True),
        _Field("message", "message", string, True),
    )),
    "log": (Log, (
        _Field("source", "source", string, True),
        _Field("line", "line", string, True),
        _Field("offset", "offset", nullable(integer), False),
        _Field("length", "length", nullable(integer), False),
    )),
    "unknown": (Unknown, (
        _Field("raw", "raw", any_json, True),
    )),
    "run_state": (RunState, (
        _Field("from", "from_", string, True),
        _Field("to", "to", string, True),
        _Field("reason", "reason", string, False),
    )),
    "run_end": (RunEnd, (
        _Field("state", "state", string, True),
        _Field("reason", "reason", string, True),
        _Field("code", "code", string, True),
        _Field("message", "message", string, False),
        _Field("hint", "hint", string, False),
        _Field("exit_code", "exit_code", nullable(integer), True),
        _Field("signal", "signal", string, False),
        _Field("session_id", "session_id", string, False),
        _Field("turns", "turns", integer, True),
        _Field("tokens", "tokens", _tokens, True),
        _Field("cost", "cost", nullable(_money), True),
        _Field("duration_ms", "duration_ms", integer, True),
        _Field("unknown_lines", "unknown_lines", integer, False),
    )),
}
