"""Types of the HTTP API, made from docs/schema/openapi.json by make docs. Do not edit."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class Agent(TypedDict):
    agent: str
    installed: bool
    models: NotRequired[list[Model]]
    """that its adapter knows of; the agent may take others"""
    name: str
    plugin: str
    problem: NotRequired[str]
    """why it cannot be used"""
    signed_in: bool
    trust: NotRequired[str]
    """who vouches for the plugin"""
    version: NotRequired[str]
    """of its program"""


class AgentAnswer(TypedDict):
    agent: Agent
    capabilities: list[str]
    """what it can do, by the names of docs/agents.md, with _ for a space"""
    drivers: NotRequired[list[str]]
    """the first is the default"""
    efforts: NotRequired[list[str]]


class AgentUsage(TypedDict):
    agent: str
    cost_usd: float | None
    """of those runs whose agent names money; null: none does"""
    input_tokens: int
    output_tokens: int
    priced_runs: int
    runs: int


class AgentsAnswer(TypedDict):
    agents: list[Agent]


class AnswerIn(TypedDict):
    allow_rules: NotRequired[list[str]]
    """with approve: these rules, for the rest of the run"""
    answer: str
    text: NotRequired[str]
    """the reason of a denial, or the answer to a question"""
    updated_input: NotRequired[Any]
    """with approve: the input that the tool gets instead, where the question is editable"""


class ApproveIn(TypedDict):
    approve: str


class Change(TypedDict):
    added: int
    binary: NotRequired[bool]
    deleted: int
    old_path: NotRequired[str]
    path: str
    """relative to root"""
    status: str


class DiffAnswer(TypedDict):
    files: list[Change]
    more_files: NotRequired[int]
    patch: NotRequired[str]
    root: str
    truncated: NotRequired[bool]
    """the patch was cut"""


class HealthAnswer(TypedDict):
    live: int
    """runs that have not ended"""
    version: str


class LinkAnswer(TypedDict):
    expires: str
    path: str
    """behind the address of this server; it works once"""


class ListAnswer(TypedDict):
    more: bool
    """there are older ones"""
    runs: list[Run]
    """the newest first"""


class Model(TypedDict):
    default: NotRequired[bool]
    id: str
    name: NotRequired[str]


class ModelIn(TypedDict):
    model: str


class NewRun(TypedDict):
    add_dirs: NotRequired[list[str]]
    agent: NotRequired[str]
    """left out: that of config.toml"""
    allow: NotRequired[list[str]]
    """rules of what is approved"""
    approve: NotRequired[str]
    """who answers when the agent asks permission; left out: ask"""
    conversation: NotRequired[bool]
    """takes more prompts, until end"""
    cwd: str
    """the folder to work in, absolute"""
    deny: NotRequired[list[str]]
    effort: NotRequired[str]
    env: NotRequired[dict[str, str]]
    """more variables for the agent"""
    files: NotRequired[list[str]]
    """files and images for the prompt"""
    max_cost_usd: NotRequired[float]
    max_tokens: NotRequired[int]
    max_turns: NotRequired[int]
    model: NotRequired[str]
    name: NotRequired[str]
    prompt: NotRequired[str]
    """needed unless it is a conversation"""
    resume: NotRequired[str]
    """a session of the agent to go on with"""
    sandbox: NotRequired[bool]
    """keep the agent in a sandbox: it writes to its work folder alone, and sees no more of the home"""
    sandbox_net: NotRequired[list[str]]
    """hosts that it may reach in the sandbox, or none alone; left out: all"""
    system: NotRequired[str]
    tags: NotRequired[list[str]]
    timeout_seconds: NotRequired[float]
    worktree: NotRequired[bool]
    """work in a new git worktree"""


class Problem(TypedDict):
    code: str
    """one of the error codes of docs/events.md"""
    hint: NotRequired[str]
    """the way out"""
    message: str
    """one line"""


class Question(TypedDict):
    agent: str
    approval: bool
    """it asks for permission; else answer it with a text"""
    asked: str
    cwd: str
    diff: NotRequired[str]
    """what it would change in a file that it writes whole"""
    editable: NotRequired[bool]
    """the agent takes a changed input"""
    event: Any
    """the approval_request or input_required"""
    interaction_id: str
    name: NotRequired[str]
    """of the run"""
    rules: NotRequired[list[str]]
    """that would allow this and others of its kind"""
    run_id: str
    why: NotRequired[str]
    """which rule leaves it to people"""


class QuestionsAnswer(TypedDict):
    questions: list[Question]
    """the first asked first"""


class Run(TypedDict):
    agent: str
    approve: NotRequired[str]
    code: NotRequired[str]
    """of the error it ended with"""
    conversation: NotRequired[bool]
    """it takes more prompts"""
    created: str
    cwd: str
    ended: NotRequired[str]
    events: int
    """how many there are so far"""
    message: NotRequired[str]
    """of that error"""
    name: NotRequired[str]
    plugin_version: NotRequired[str]
    project: NotRequired[str]
    prompt: str
    reason: NotRequired[str]
    """why it ended"""
    run_id: str
    session_id: NotRequired[str]
    state: str
    tags: NotRequired[list[str]]
    usage: NotRequired[Usage]
    """of a run that has ended"""


class SendIn(TypedDict):
    end: NotRequired[bool]
    """no prompt follows: the run ends when the agent has finished"""
    prompt: NotRequired[str]


class Session(TypedDict):
    agent: str
    bytes: NotRequired[int]
    created: NotRequired[str]
    cwd: NotRequired[str]
    forked_from: NotRequired[str]
    model: NotRequired[str]
    path: NotRequired[str]
    session_id: str
    title: NotRequired[str]
    turns: NotRequired[int]
    updated: NotRequired[str]


class SessionAnswer(TypedDict):
    events: list[Any]
    """what the session holds, as events"""
    truncated: NotRequired[bool]
    """it holds more"""


class SessionsAnswer(TypedDict):
    sessions: list[Session]
    """the newest first"""


class SignInAnswer(TypedDict):
    expires: str
    key: str
    """each request has it as Amux-Key beside the cookie; a WebSocket offers the protocol amux.key.KEY"""


class SignInIn(TypedDict):
    code: NotRequired[str]
    """what a link has behind #sign-in="""
    token: NotRequired[str]
    """or the token"""


class Usage(TypedDict):
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    cost_usd: float | None
    """as the agent says"""
    input_tokens: int | None
    output_tokens: int | None
    turns: int


class UsageAnswer(TypedDict):
    agents: list[AgentUsage]
