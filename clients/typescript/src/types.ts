// Types of events and input lines, made from docs/schema by make docs. Do not edit.

/** What JSON can hold. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** todo_item is one line of a todo_update. status is pending, in_progress or completed. */
export interface TodoItem {
  text: string;
  status: "pending" | "in_progress" | "completed" | (string & {});
}

export interface Money {
  usd: number;
}

/** question is one of several that an agent asks at once. The answer to an input_required with questions is a JSON object: question → answer. */
export interface Question {
  question: string;
  header?: string;
  options?: string[];
  multiple?: boolean;
}

/** tokens are the totals of a run; null is unknown. */
export interface Tokens {
  input: number | null;
  output: number | null;
  thinking: number | null;
  cache_read: number | null;
  cache_write: number | null;
}

/** origin is what an event was in the run of another amux, which this run has driven: the field origin of events of the agent amux-remote. Its session ids, and the ids of tools and questions, stay where they are. */
export interface Origin {
  run_id: string;
  seq: number;
  /** RFC 3339, by the clock there */
  time: string;
  agent: string;
  /** where that amux drove another one */
  origin?: Origin | null;
}

/** What every event has. */
export interface EventBase {
  /** One of the types below. Ignore an event whose type you do not know. */
  type: string;
  /** The run, a ULID. */
  run_id: string;
  /** The event's number within its run, from 1, without gaps. */
  seq: number;
  /** RFC 3339, UTC: when amux recorded what the event is made from. */
  time: string;
  /** The agent's id. */
  agent: string;
  /** What the event was in the run of another amux, which this run has driven. */
  origin?: Origin;
}

/** session_start is the first event about the agent's own conversation. */
export interface SessionStart extends EventBase {
  type: "session_start";
  session_id: string;
  resumed: boolean;
  forked_from?: string;
  model?: string;
  /** the agent program's */
  version?: string;
  tools?: string[];
}

export interface SessionResume extends EventBase {
  type: "session_resume";
  session_id: string;
  prior_turn_count: number | null;
}

export interface SessionFork extends EventBase {
  type: "session_fork";
  session_id: string;
  forked_from: string;
}

export interface SessionCheckpoint extends EventBase {
  type: "session_checkpoint";
  session_id: string;
  checkpoint_id: string;
}

export interface SessionEnd extends EventBase {
  type: "session_end";
  session_id: string;
  turn_count: number;
  cost?: Money | null;
}

export interface SessionTitle extends EventBase {
  type: "session_title";
  title: string;
}

/** user_message is a prompt on its way to the agent. The host writes it for prompts given through amux; an adapter for those it did not come through. */
export interface UserMessage extends EventBase {
  type: "user_message";
  id?: string;
  text: string;
  parent_id?: string;
}

export interface TurnStart extends EventBase {
  type: "turn_start";
  turn_index: number;
}

export interface TurnEnd extends EventBase {
  type: "turn_end";
  turn_index: number;
  /** of this turn */
  cost?: Money | null;
}

export interface StepStart extends EventBase {
  type: "step_start";
  turn_index: number;
  step_index: number;
  step_type: string;
  parent_id?: string;
}

export interface StepEnd extends EventBase {
  type: "step_end";
  turn_index: number;
  step_index: number;
  parent_id?: string;
}

export interface MessageStart extends EventBase {
  type: "message_start";
  message_id?: string;
  parent_id?: string;
}

export interface TextDelta extends EventBase {
  type: "text_delta";
  delta: string;
  parent_id?: string;
}

/** message_stop carries the whole text of the message. */
export interface MessageStop extends EventBase {
  type: "message_stop";
  message_id?: string;
  text: string;
  aborted?: boolean;
  parent_id?: string;
}

export interface ThinkingStart extends EventBase {
  type: "thinking_start";
  effort?: string;
  parent_id?: string;
}

export interface ThinkingDelta extends EventBase {
  type: "thinking_delta";
  delta: string;
  parent_id?: string;
}

export interface ThinkingStop extends EventBase {
  type: "thinking_stop";
  thinking: string;
  parent_id?: string;
}

export interface ToolCallStart extends EventBase {
  type: "tool_call_start";
  tool_call_id: string;
  tool_name: string;
  parent_id?: string;
}

export interface ToolInputDelta extends EventBase {
  type: "tool_input_delta";
  tool_call_id: string;
  delta: string;
  parent_id?: string;
}

export interface ToolCallReady extends EventBase {
  type: "tool_call_ready";
  tool_call_id: string;
  tool_name: string;
  input: Json;
  parent_id?: string;
}

export interface ToolResult extends EventBase {
  type: "tool_result";
  tool_call_id: string;
  tool_name: string;
  output: Json;
  duration_ms: number | null;
  parent_id?: string;
}

export interface ToolError extends EventBase {
  type: "tool_error";
  tool_call_id: string;
  tool_name: string;
  error: string;
  parent_id?: string;
}

export interface FileRead extends EventBase {
  type: "file_read";
  tool_call_id?: string;
  path: string;
  parent_id?: string;
}

export interface FileWrite extends EventBase {
  type: "file_write";
  tool_call_id?: string;
  path: string;
  byte_count: number | null;
  parent_id?: string;
}

export interface FileCreate extends EventBase {
  type: "file_create";
  tool_call_id?: string;
  path: string;
  byte_count: number | null;
  parent_id?: string;
}

export interface FileDelete extends EventBase {
  type: "file_delete";
  tool_call_id?: string;
  path: string;
  parent_id?: string;
}

export interface FilePatch extends EventBase {
  type: "file_patch";
  tool_call_id?: string;
  path: string;
  diff: string;
  parent_id?: string;
}

export interface ShellStart extends EventBase {
  type: "shell_start";
  tool_call_id?: string;
  command: string;
  cwd?: string;
  parent_id?: string;
}

export interface ShellStdoutDelta extends EventBase {
  type: "shell_stdout_delta";
  tool_call_id?: string;
  delta: string;
  parent_id?: string;
}

export interface ShellStderrDelta extends EventBase {
  type: "shell_stderr_delta";
  tool_call_id?: string;
  delta: string;
  parent_id?: string;
}

export interface ShellExit extends EventBase {
  type: "shell_exit";
  tool_call_id?: string;
  exit_code: number | null;
  duration_ms: number | null;
  parent_id?: string;
}

export interface McpToolCallStart extends EventBase {
  type: "mcp_tool_call_start";
  tool_call_id: string;
  server: string;
  tool_name: string;
  input: Json;
  parent_id?: string;
}

export interface McpToolResult extends EventBase {
  type: "mcp_tool_result";
  tool_call_id: string;
  server: string;
  tool_name: string;
  output: Json;
  parent_id?: string;
}

export interface McpToolError extends EventBase {
  type: "mcp_tool_error";
  tool_call_id: string;
  server: string;
  tool_name: string;
  error: string;
  parent_id?: string;
}

export interface SubagentSpawn extends EventBase {
  type: "subagent_spawn";
  /** the tool_call_id that started it */
  subagent_id: string;
  agent_name: string;
  prompt: string;
  parent_id?: string;
}

export interface SubagentResult extends EventBase {
  type: "subagent_result";
  subagent_id: string;
  agent_name: string;
  summary: string;
  cost?: Money | null;
  parent_id?: string;
}

export interface SubagentError extends EventBase {
  type: "subagent_error";
  subagent_id: string;
  agent_name: string;
  error: string;
  parent_id?: string;
}

export interface PluginLoaded extends EventBase {
  type: "plugin_loaded";
  plugin_id: string;
  plugin_name: string;
  version?: string;
}

export interface PluginInvoked extends EventBase {
  type: "plugin_invoked";
  plugin_id: string;
  plugin_name: string;
}

export interface PluginError extends EventBase {
  type: "plugin_error";
  plugin_id: string;
  plugin_name: string;
  error: string;
}

export interface SkillLoaded extends EventBase {
  type: "skill_loaded";
  skill_name: string;
  source?: string;
}

export interface SkillInvoked extends EventBase {
  type: "skill_invoked";
  skill_name: string;
  parent_id?: string;
}

export interface AgentdocRead extends EventBase {
  type: "agentdoc_read";
  path: string;
}

export interface ImageOutput extends EventBase {
  type: "image_output";
  tool_call_id?: string;
  mime_type: string;
  base64?: string;
  file_path?: string;
  parent_id?: string;
}

export interface ImageInputAck extends EventBase {
  type: "image_input_ack";
  mime_type: string;
}

/** todo_update is the agent's list of what it means to do, whole. */
export interface TodoUpdate extends EventBase {
  type: "todo_update";
  items: TodoItem[];
  parent_id?: string;
}

export interface Cost extends EventBase {
  type: "cost";
  cost: Money;
}

/** token_usage: input_tokens without cache reads and writes, which have their own fields; output_tokens with thinking. null is unknown. */
export interface TokenUsage extends EventBase {
  type: "token_usage";
  input_tokens: number | null;
  output_tokens: number | null;
  thinking_tokens: number | null;
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
  model?: string;
}

export interface InputRequired extends EventBase {
  type: "input_required";
  interaction_id: string;
  question: string;
  context?: string;
  source: "agent" | "tool" | (string & {});
  questions?: Question[];
  parent_id?: string;
}

export interface ApprovalRequest extends EventBase {
  type: "approval_request";
  interaction_id: string;
  action: string;
  detail: string;
  tool_name?: string;
  tool_call_id?: string;
  input?: Json;
  risk_level: "low" | "medium" | "high" | (string & {});
  /** How to read detail: shell is a command, word for word, for a POSIX shell; command is about a command; file is about paths, or else detail; fetch is an address. Absent for any other tool. */
  tool_kind?: "shell" | "command" | "file" | "fetch" | (string & {});
  /** The files that the tool will touch, all of them; absent if detail is the only one. */
  paths?: string[];
  parent_id?: string;
}

export interface ApprovalGranted extends EventBase {
  type: "approval_granted";
  interaction_id: string;
  parent_id?: string;
}

/** approval_preview comes after the approval_request of a file that is written whole, if people are to answer it: what it would change in the file as it was then. diff is a unified diff; truncated says that it was longer and ends at a line. The host makes it, of text files of at most 1 MiB inside the folder of the run. */
export interface ApprovalPreview extends EventBase {
  type: "approval_preview";
  interaction_id: string;
  path: string;
  diff: string;
  truncated?: boolean;
}

/** approval_denied also says that the agent withdrew its request, or refused by a rule of its own (then interaction_id may be the tool_call_id). */
export interface ApprovalDenied extends EventBase {
  type: "approval_denied";
  interaction_id: string;
  reason?: string;
  parent_id?: string;
}

/** input_answered closes an input_required. */
export interface InputAnswered extends EventBase {
  type: "input_answered";
  interaction_id: string;
  cancelled?: boolean;
  parent_id?: string;
}

/** approvals_changed: somebody has decided who answers from now on when the agent asks before it acts: ask, auto, deny or rules. */
export interface ApprovalsChanged extends EventBase {
  type: "approvals_changed";
  approve: string;
}

export interface ModeChanged extends EventBase {
  type: "mode_changed";
  mode: string;
}

export interface RateLimited extends EventBase {
  type: "rate_limited";
  retry_after_ms: number | null;
}

export interface ContextLimitWarning extends EventBase {
  type: "context_limit_warning";
  used_tokens: number | null;
  max_tokens: number | null;
  pct_used: number | null;
}

export interface ContextCompacted extends EventBase {
  type: "context_compacted";
  summary: string;
  tokens_saved: number | null;
}

/** retry is one more try of a model request by the agent, or of the run by amux: then attempt is the number of the start of the agent that follows in delay_ms, and code, which the agent's tries do not have, is what the last one failed with. */
export interface Retry extends EventBase {
  type: "retry";
  attempt: number;
  max_attempts: number | null;
  reason: string;
  delay_ms: number | null;
  code?: "CAPABILITY_ERROR" | "VALIDATION_ERROR" | "AUTH_ERROR" | "AGENT_NOT_FOUND" | "AGENT_NOT_INSTALLED" | "AGENT_CRASH" | "SPAWN_ERROR" | "TIMEOUT" | "INACTIVITY_TIMEOUT" | "PARSE_ERROR" | "CONFIG_ERROR" | "CONFIG_LOCK_ERROR" | "SESSION_NOT_FOUND" | "PROFILE_NOT_FOUND" | "PLUGIN_ERROR" | "PLUGIN_NOT_FOUND" | "PLUGIN_INVALID" | "PLUGIN_INCOMPATIBLE" | "PLUGIN_UNTRUSTED" | "PLUGIN_CRASHED" | "PLUGIN_CHANGED" | "RATE_LIMITED" | "OVERLOADED" | "NETWORK_ERROR" | "BILLING_ERROR" | "AGENT_FAILED" | "TURN_LIMIT" | "BUDGET_EXCEEDED" | "CONTEXT_EXCEEDED" | "ABORTED" | "RUN_NOT_ACTIVE" | "STDIN_NOT_AVAILABLE" | "NO_PENDING_INTERACTION" | "INTERACTION_NOT_FOUND" | "ALREADY_ANSWERED" | "INVALID_STATE_TRANSITION" | "PTY_NOT_AVAILABLE" | "HOST_GONE" | "LOST" | "DISK_FULL" | "RECORD_DAMAGED" | "INTERNAL" | (string & {});
}

export interface Interrupted extends EventBase {
  type: "interrupted";
}

export interface Aborted extends EventBase {
  type: "aborted";
}

export interface Paused extends EventBase {
  type: "paused";
}

export interface Resumed extends EventBase {
  type: "resumed";
}

/** stream_fallback says that the agent takes back what it has streamed of an answer, and asks the model again. capability is what was cut off: text, thinking (the message before it is aborted), or tool_calls, which takes back the message that ended before the call too. */
export interface StreamFallback extends EventBase {
  type: "stream_fallback";
  capability: "text" | "thinking" | "tool_calls" | (string & {});
  reason: string;
  parent_id?: string;
}

export interface Timeout extends EventBase {
  type: "timeout";
  kind: "run" | "inactivity" | (string & {});
}

export interface TurnLimit extends EventBase {
  type: "turn_limit";
  max_turns: number;
}

export interface AuthError extends EventBase {
  type: "auth_error";
  message: string;
  guidance: string;
}

export interface RateLimitError extends EventBase {
  type: "rate_limit_error";
  message: string;
  retry_after_ms: number | null;
}

export interface ContextExceeded extends EventBase {
  type: "context_exceeded";
  used_tokens: number | null;
  max_tokens: number | null;
}

export interface Crash extends EventBase {
  type: "crash";
  exit_code: number | null;
  signal?: string;
  stderr: string;
}

/** error is the event "error". */
export interface ErrorEvent extends EventBase {
  type: "error";
  code: "CAPABILITY_ERROR" | "VALIDATION_ERROR" | "AUTH_ERROR" | "AGENT_NOT_FOUND" | "AGENT_NOT_INSTALLED" | "AGENT_CRASH" | "SPAWN_ERROR" | "TIMEOUT" | "INACTIVITY_TIMEOUT" | "PARSE_ERROR" | "CONFIG_ERROR" | "CONFIG_LOCK_ERROR" | "SESSION_NOT_FOUND" | "PROFILE_NOT_FOUND" | "PLUGIN_ERROR" | "PLUGIN_NOT_FOUND" | "PLUGIN_INVALID" | "PLUGIN_INCOMPATIBLE" | "PLUGIN_UNTRUSTED" | "PLUGIN_CRASHED" | "PLUGIN_CHANGED" | "RATE_LIMITED" | "OVERLOADED" | "NETWORK_ERROR" | "BILLING_ERROR" | "AGENT_FAILED" | "TURN_LIMIT" | "BUDGET_EXCEEDED" | "CONTEXT_EXCEEDED" | "ABORTED" | "RUN_NOT_ACTIVE" | "STDIN_NOT_AVAILABLE" | "NO_PENDING_INTERACTION" | "INTERACTION_NOT_FOUND" | "ALREADY_ANSWERED" | "INVALID_STATE_TRANSITION" | "PTY_NOT_AVAILABLE" | "HOST_GONE" | "LOST" | "DISK_FULL" | "RECORD_DAMAGED" | "INTERNAL" | (string & {});
  message: string;
  hint?: string;
  recoverable: boolean;
}

export interface Debug extends EventBase {
  type: "debug";
  level: "verbose" | "info" | "warn" | (string & {});
  message: string;
}

/** log is a line of the agent that is no event. offset and length are given instead of line where it is longer than 128 MiB: the place of its bytes in the stream source. */
export interface Log extends EventBase {
  type: "log";
  /** A stream of the agent, its terminal, or a stored session. */
  source: "stdout" | "stderr" | "screen" | "session" | (string & {});
  line: string;
  offset?: number | null;
  length?: number | null;
}

/** unknown is native data that the adapter recognised as an event but has no name for. */
export interface Unknown extends EventBase {
  type: "unknown";
  raw: Json;
}

export interface RunState extends EventBase {
  type: "run_state";
  from: "" | "queued" | "starting" | "running" | "waiting" | "paused" | "completed" | "failed" | "canceled" | "timed_out" | "lost" | (string & {});
  to: "queued" | "starting" | "running" | "waiting" | "paused" | "completed" | "failed" | "canceled" | "timed_out" | "lost" | (string & {});
  reason?: string;
}

/** run_end is the last event of every run, once. */
export interface RunEnd extends EventBase {
  type: "run_end";
  state: "completed" | "failed" | "canceled" | "timed_out" | "lost" | (string & {});
  reason: "completed" | "stopped" | "killed" | "interrupted" | "signal" | "parent_gone" | "timeout" | "inactivity" | "agent" | "crash" | "schema" | "spawn" | "plugin" | "stdin" | "host_gone" | "abandoned" | "disk_full" | "damaged" | "lost" | "budget" | (string & {});
  /** empty on success */
  code: "" | "CAPABILITY_ERROR" | "VALIDATION_ERROR" | "AUTH_ERROR" | "AGENT_NOT_FOUND" | "AGENT_NOT_INSTALLED" | "AGENT_CRASH" | "SPAWN_ERROR" | "TIMEOUT" | "INACTIVITY_TIMEOUT" | "PARSE_ERROR" | "CONFIG_ERROR" | "CONFIG_LOCK_ERROR" | "SESSION_NOT_FOUND" | "PROFILE_NOT_FOUND" | "PLUGIN_ERROR" | "PLUGIN_NOT_FOUND" | "PLUGIN_INVALID" | "PLUGIN_INCOMPATIBLE" | "PLUGIN_UNTRUSTED" | "PLUGIN_CRASHED" | "PLUGIN_CHANGED" | "RATE_LIMITED" | "OVERLOADED" | "NETWORK_ERROR" | "BILLING_ERROR" | "AGENT_FAILED" | "TURN_LIMIT" | "BUDGET_EXCEEDED" | "CONTEXT_EXCEEDED" | "ABORTED" | "RUN_NOT_ACTIVE" | "STDIN_NOT_AVAILABLE" | "NO_PENDING_INTERACTION" | "INTERACTION_NOT_FOUND" | "ALREADY_ANSWERED" | "INVALID_STATE_TRANSITION" | "PTY_NOT_AVAILABLE" | "HOST_GONE" | "LOST" | "DISK_FULL" | "RECORD_DAMAGED" | "INTERNAL" | (string & {});
  message?: string;
  /** the way out, where it is not that of the code */
  hint?: string;
  /** the agent's */
  exit_code: number | null;
  signal?: string;
  session_id?: string;
  turns: number;
  tokens: Tokens;
  cost: Money | null;
  duration_ms: number;
  /** unknown_lines are those of its stdout that the adapter did not know. */
  unknown_lines?: number;
}

/**
 * An event. A later amux may emit types that are not listed here; they arrive as they
 * are, so give a switch over type a default. isKnown tells them apart.
 */
export type Event =
  | SessionStart
  | SessionResume
  | SessionFork
  | SessionCheckpoint
  | SessionEnd
  | SessionTitle
  | UserMessage
  | TurnStart
  | TurnEnd
  | StepStart
  | StepEnd
  | MessageStart
  | TextDelta
  | MessageStop
  | ThinkingStart
  | ThinkingDelta
  | ThinkingStop
  | ToolCallStart
  | ToolInputDelta
  | ToolCallReady
  | ToolResult
  | ToolError
  | FileRead
  | FileWrite
  | FileCreate
  | FileDelete
  | FilePatch
  | ShellStart
  | ShellStdoutDelta
  | ShellStderrDelta
  | ShellExit
  | McpToolCallStart
  | McpToolResult
  | McpToolError
  | SubagentSpawn
  | SubagentResult
  | SubagentError
  | PluginLoaded
  | PluginInvoked
  | PluginError
  | SkillLoaded
  | SkillInvoked
  | AgentdocRead
  | ImageOutput
  | ImageInputAck
  | TodoUpdate
  | Cost
  | TokenUsage
  | InputRequired
  | ApprovalRequest
  | ApprovalGranted
  | ApprovalPreview
  | ApprovalDenied
  | InputAnswered
  | ApprovalsChanged
  | ModeChanged
  | RateLimited
  | ContextLimitWarning
  | ContextCompacted
  | Retry
  | Interrupted
  | Aborted
  | Paused
  | Resumed
  | StreamFallback
  | Timeout
  | TurnLimit
  | AuthError
  | RateLimitError
  | ContextExceeded
  | Crash
  | ErrorEvent
  | Debug
  | Log
  | Unknown
  | RunState
  | RunEnd;

export const eventTypes = [
  "session_start",
  "session_resume",
  "session_fork",
  "session_checkpoint",
  "session_end",
  "session_title",
  "user_message",
  "turn_start",
  "turn_end",
  "step_start",
  "step_end",
  "message_start",
  "text_delta",
  "message_stop",
  "thinking_start",
  "thinking_delta",
  "thinking_stop",
  "tool_call_start",
  "tool_input_delta",
  "tool_call_ready",
  "tool_result",
  "tool_error",
  "file_read",
  "file_write",
  "file_create",
  "file_delete",
  "file_patch",
  "shell_start",
  "shell_stdout_delta",
  "shell_stderr_delta",
  "shell_exit",
  "mcp_tool_call_start",
  "mcp_tool_result",
  "mcp_tool_error",
  "subagent_spawn",
  "subagent_result",
  "subagent_error",
  "plugin_loaded",
  "plugin_invoked",
  "plugin_error",
  "skill_loaded",
  "skill_invoked",
  "agentdoc_read",
  "image_output",
  "image_input_ack",
  "todo_update",
  "cost",
  "token_usage",
  "input_required",
  "approval_request",
  "approval_granted",
  "approval_preview",
  "approval_denied",
  "input_answered",
  "approvals_changed",
  "mode_changed",
  "rate_limited",
  "context_limit_warning",
  "context_compacted",
  "retry",
  "interrupted",
  "aborted",
  "paused",
  "resumed",
  "stream_fallback",
  "timeout",
  "turn_limit",
  "auth_error",
  "rate_limit_error",
  "context_exceeded",
  "crash",
  "error",
  "debug",
  "log",
  "unknown",
  "run_state",
  "run_end",
] as const;

/** The last line of --json where there is no run_end: the run could not start (no run_id), or its record cannot take or give its last events. It is no event, and has no seq. */
export interface Failure {
  type: "error";
  /** The run, if there is one. */
  run_id?: string;
  code: "CAPABILITY_ERROR" | "VALIDATION_ERROR" | "AUTH_ERROR" | "AGENT_NOT_FOUND" | "AGENT_NOT_INSTALLED" | "AGENT_CRASH" | "SPAWN_ERROR" | "TIMEOUT" | "INACTIVITY_TIMEOUT" | "PARSE_ERROR" | "CONFIG_ERROR" | "CONFIG_LOCK_ERROR" | "SESSION_NOT_FOUND" | "PROFILE_NOT_FOUND" | "PLUGIN_ERROR" | "PLUGIN_NOT_FOUND" | "PLUGIN_INVALID" | "PLUGIN_INCOMPATIBLE" | "PLUGIN_UNTRUSTED" | "PLUGIN_CRASHED" | "PLUGIN_CHANGED" | "RATE_LIMITED" | "OVERLOADED" | "NETWORK_ERROR" | "BILLING_ERROR" | "AGENT_FAILED" | "TURN_LIMIT" | "BUDGET_EXCEEDED" | "CONTEXT_EXCEEDED" | "ABORTED" | "RUN_NOT_ACTIVE" | "STDIN_NOT_AVAILABLE" | "NO_PENDING_INTERACTION" | "INTERACTION_NOT_FOUND" | "ALREADY_ANSWERED" | "INVALID_STATE_TRANSITION" | "PTY_NOT_AVAILABLE" | "HOST_GONE" | "LOST" | "DISK_FULL" | "RECORD_DAMAGED" | "INTERNAL" | (string & {});
  message: string;
  /** The way out. */
  hint?: string;
  recoverable: boolean;
}

/** Sends a prompt. */
export interface PromptLine {
  type: "prompt";
  text: string;
}

/** Approves a request. */
export interface ApproveLine {
  type: "approve";
  /** The request; may be left out where one is open. */
  interaction_id?: string;
  /** Replaces the tool's input, where the agent can take that. */
  updated_input?: Json;
}

/** Denies a request. */
export interface DenyLine {
  type: "deny";
  /** The request; may be left out where one is open. */
  interaction_id?: string;
  /** Told to the agent. */
  reason?: string;
}

/** Answers a question. The text for several questions at once is a JSON object: question → answer. */
export interface AnswerLine {
  type: "answer";
  /** The request; may be left out where one is open. */
  interaction_id?: string;
  text: string;
}

/** Cancels the current turn. */
export interface InterruptLine {
  type: "interrupt";
}

/** Changes the model. */
export interface SetModelLine {
  type: "set_model";
  model: string;
}

/** Changes who answers from now on when the agent asks before it acts: ask, auto, deny or rules. */
export interface SetApproveLine {
  type: "set_approve";
  approve: string;
}

/** Ends the conversation when the agent has finished. */
export interface EndLine {
  type: "end";
}

/** Stops the run. */
export interface StopLine {
  type: "stop";
}

/** A line of --input ndjson. */
export type InputLine =
  | PromptLine
  | ApproveLine
  | DenyLine
  | AnswerLine
  | InterruptLine
  | SetModelLine
  | SetApproveLine
  | EndLine
  | StopLine;
