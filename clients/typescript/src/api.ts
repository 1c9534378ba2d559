// Types of the HTTP API, made from docs/schema/openapi.json by make docs. Do not edit.

import type { Json } from "./types.js";

export interface Agent {
  agent: string;
  installed: boolean;
  /** that its adapter knows of; the agent may take others */
  models?: readonly Model[];
  name: string;
  plugin: string;
  /** why it cannot be used */
  problem?: string;
  signed_in: boolean;
  /** who vouches for the plugin */
  trust?: string;
  /** of its program */
  version?: string;
}

export interface AgentAnswer {
  agent: Agent;
  /** what it can do, by the names of docs/agents.md, with _ for a space */
  capabilities: readonly string[];
  /** the first is the default */
  drivers?: readonly string[];
  efforts?: readonly string[];
}

export interface AgentUsage {
  agent: string;
  /** of those runs whose agent names money; null: none does */
  cost_usd: number | null;
  input_tokens: number;
  output_tokens: number;
  priced_runs: number;
  runs: number;
}

export interface AgentsAnswer {
  agents: readonly Agent[];
}

export interface AnswerIn {
  /** with approve: these rules, for the rest of the run */
  allow_rules?: readonly string[];
  answer: "approve" | "deny" | "answer" | (string & {});
  /** the reason of a denial, or the answer to a question */
  text?: string;
  /** with approve: the input that the tool gets instead, where the question is editable */
  updated_input?: Json;
}

export interface ApproveIn {
  approve: "ask" | "auto" | "deny" | "rules" | (string & {});
}

export interface Change {
  added: number;
  binary?: boolean;
  deleted: number;
  old_path?: string;
  /** relative to root */
  path: string;
  status: "added" | "deleted" | "modified" | "renamed" | "retyped" | (string & {});
}

export interface DiffAnswer {
  files: readonly Change[];
  more_files?: number;
  patch?: string;
  root: string;
  /** the patch was cut */
  truncated?: boolean;
}

export interface HealthAnswer {
  /** runs that have not ended */
  live: number;
  version: string;
}

export interface LinkAnswer {
  expires: string;
  /** behind the address of this server; it works once */
  path: string;
}

export interface ListAnswer {
  /** there are older ones */
  more: boolean;
  /** the newest first */
  runs: readonly Run[];
}

export interface Model {
  default?: boolean;
  id: string;
  name?: string;
}

export interface ModelIn {
  model: string;
}

export interface NewRun {
  add_dirs?: readonly string[];
  /** left out: that of config.toml */
  agent?: string;
  /** rules of what is approved */
  allow?: readonly string[];
  /** who answers when the agent asks permission; left out: ask */
  approve?: "ask" | "auto" | "deny" | "rules" | (string & {});
  /** takes more prompts, until end */
  conversation?: boolean;
  /** the folder to work in, absolute */
  cwd: string;
  deny?: readonly string[];
  effort?: string;
  /** more variables for the agent */
  env?: Record<string, string>;
  /** files and images for the prompt */
  files?: readonly string[];
  max_cost_usd?: number;
  max_tokens?: number;
  max_turns?: number;
  model?: string;
  name?: string;
  /** needed unless it is a conversation */
  prompt?: string;
  /** a session of the agent to go on with */
  resume?: string;
  /** keep the agent in a sandbox: it writes to its work folder alone, and sees no more of the home */
  sandbox?: boolean;
  /** hosts that it may reach in the sandbox, or none alone; left out: all */
  sandbox_net?: readonly string[];
  system?: string;
  tags?: readonly string[];
  timeout_seconds?: number;
  /** work in a new git worktree */
  worktree?: boolean;
}

export interface Problem {
  /** one of the error codes of docs/events.md */
  code: string;
  /** the way out */
  hint?: string;
  /** one line */
  message: string;
}

export interface Question {
  agent: string;
  /** it asks for permission; else answer it with a text */
  approval: boolean;
  asked: string;
  cwd: string;
  /** what it would change in a file that it writes whole */
  diff?: string;
  /** the agent takes a changed input */
  editable?: boolean;
  /** the approval_request or input_required */
  event: Json;
  interaction_id: string;
  /** of the run */
  name?: string;
  /** that would allow this and others of its kind */
  rules?: readonly string[];
  run_id: string;
  /** which rule leaves it to people */
  why?: string;
}

export interface QuestionsAnswer {
  /** the first asked first */
  questions: readonly Question[];
}

export interface Run {
  agent: string;
  approve?: string;
  /** of the error it ended with */
  code?: string;
  /** it takes more prompts */
  conversation?: boolean;
  created: string;
  cwd: string;
  ended?: string;
  /** how many there are so far */
  events: number;
  /** of that error */
  message?: string;
  name?: string;
  plugin_version?: string;
  project?: string;
  prompt: string;
  /** why it ended */
  reason?: string;
  run_id: string;
  session_id?: string;
  state: "queued" | "starting" | "running" | "waiting" | "paused" | "completed" | "failed" | "canceled" | "timed_out" | "lost" | (string & {});
  tags?: readonly string[];
  /** of a run that has ended */
  usage?: Usage;
}

export interface SendIn {
  /** no prompt follows: the run ends when the agent has finished */
  end?: boolean;
  prompt?: string;
}

export interface Session {
  agent: string;
  bytes?: number;
  created?: string;
  cwd?: string;
  forked_from?: string;
  model?: string;
  path?: string;
  session_id: string;
  title?: string;
  turns?: number;
  updated?: string;
}

export interface SessionAnswer {
  /** what the session holds, as events */
  events: readonly Json[];
  /** it holds more */
  truncated?: boolean;
}

export interface SessionsAnswer {
  /** the newest first */
  sessions: readonly Session[];
}

export interface SignInAnswer {
  expires: string;
  /** each request has it as Amux-Key beside the cookie; a WebSocket offers the protocol amux.key.KEY */
  key: string;
}

export interface SignInIn {
  /** what a link has behind #sign-in= */
  code?: string;
  /** or the token */
  token?: string;
}

export interface Usage {
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
  /** as the agent says */
  cost_usd: number | null;
  input_tokens: number | null;
  output_tokens: number | null;
  turns: number;
}

export interface UsageAnswer {
  agents: readonly AgentUsage[];
}
