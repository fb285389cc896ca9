"""What the user's code sees in a call is what it sees without this library, in every form."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config, get_store, get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages, push_message
from langgraph.runtime import get_runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import RetryPolicy

from graph_retry import aretry_llm_call, create_retry_node, edit, respond, retry_llm_call
from graph_retry.agents import RetryMiddleware, RetryState
from tests.agents.scripted import ScriptedChat, asking
from tests.loops import answer, reviews, thread

OF_STEP = {
    "checkpoint_ns": "the state of a graph inside the function belongs to the attempt",
    "checkpoint_map": "so do the checkpoints around that state",
    "__pregel_task_id": "and the id of its interrupts",
    "__pregel_scratchpad": "which counts them",
    "__pregel_call": "and a `@task` that it starts",
    "__pregel_durability": "a finished attempt is saved at once",
    "__pregel_replay_state": "and is never replayed",
    "__pregel_send": "writes are kept until the call has succeeded (tests below)",
    "__graph_retry_run": "by it, a call inside a reviewed node is refused",
    "__pregel_checkpointer": "the savers of two runs are two objects",
}
"""The keys of `configurable` that differ, each with the reason."""


@dataclass
class Context:
    """The context of a run."""

    user: str = "ann"


class State(TypedDict, total=False):
    """The state of the graph around the call."""

    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]
    params: Any
    output: Any


class SameKeys(AgentMiddleware[Any, Any, Any]):
    """Middleware that only gives the agent's state the keys of ours."""

    state_schema = RetryState


def plain(value: Any) -> Any:
    """Return a value without the ids of one run."""
    return value if isinstance(value, str | int | float | bool | None) else type(value).__name__


def seen_here() -> dict[str, Any]:
    """List what code can see of its run, key by key."""
    config, runtime = get_config(), get_runtime()
    configurable: Any = config["configurable"]
    read = next(value for key, value in configurable.items() if key.endswith("pregel_read"))
    info = runtime.execution_info
    get_stream_writer()({"by": "user"})
    get_store().put(("seen",), "k", {"n": 1})
    assert info is not None
    assert info.checkpoint_ns == config["metadata"]["langgraph_checkpoint_ns"]
    metadata = {key: value for key, value in config["metadata"].items() if "_ns" not in key}
    return {
        **{f"config.{key}": plain(value) for key, value in config.items() if key != "metadata"},
        **{f"configurable.{key}": plain(value) for key, value in configurable.items()},
        "metadata": {**metadata, "langgraph_step": None},
        "tags": config["tags"],
        "state": read(["log"], True),
        "channels": sorted(key for key in read.args[1] if not key.startswith("branch:")),
        "context": runtime.context,
        "store": type(runtime.store).__name__,
        "heartbeat": callable(runtime.heartbeat),
        "attempt": info.node_attempt,
        "task": info.task_id in info.checkpoint_ns,
        "thread": info.thread_id,
    }


def seen_by(form: str, mode: Any, *, wrapped: bool, **node: Any) -> tuple[dict[str, Any], Any]:
    """Return what code of a form sees, with or without this library, and the custom events."""
    seen: list[dict[str, Any]] = []

    def look(_: Any = None, **__: Any) -> str:
        """Look around."""
        seen.append(seen_here())
        return "done"

    look_around: Any = mode.colour(look)
    if form in ("tool", "model"):
        middleware = [RetryMiddleware(tools=True) if wrapped else SameKeys()]
        graph = _agent(form, mode, look, middleware)
    else:
        builder = StateGraph(State, context_schema=Context)
        builder.add_node("around", _node(form, mode, look_around, wrapped=wrapped), **node)
        builder.add_edge(START, "around")
        graph = builder.compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    config = {**thread(), "tags": ["t"], "metadata": {"m": 1}, "recursion_limit": 33}
    config["configurable"]["user_id"] = "u"
    given = {"messages": [("user", "look")], "params": "x", "log": ["before"]}
    stream = {"context": Context("bob"), "stream_mode": "custom"}
    parts = mode.call(graph, "stream", given, config, **stream)
    (found,) = seen
    return found, [part for part in parts if "by" in part]


def _agent(form: str, mode: Any, look: Any, middleware: Any) -> Any:
    def answer_(messages: Any) -> Any:
        if form == "model":
            look()
        is_asked = form == "tool" and messages[-1].type != "tool"
        return asking({"name": "look", "args": {}, "id": "l"}) if is_asked else "end"

    def look_around() -> str:
        """Look around."""
        return str(look())

    tool: Any = mode.colour(look_around)
    tool.__name__ = "look"
    return create_agent(
        ScriptedChat(answer=answer_),
        [tool],
        middleware=middleware,
        context_schema=Context,
        checkpointer=InMemorySaver(),
        store=InMemoryStore(),
        state_schema=State,  # type: ignore[type-var]
    )


def _node(form: str, mode: Any, look: Any, *, wrapped: bool) -> Any:
    if form == "node" and wrapped:
        return create_retry_node(look, str, name="around")

    def node(_: State) -> Any:
        return {"log": [retry_llm_call(look, "x") if wrapped else look()]}

    async def anode(_: State) -> Any:
        return {"log": [await aretry_llm_call(look, "x") if wrapped else await look()]}

    return anode if mode.is_async else node


@pytest.mark.parametrize("called", ["function", "node", "tool", "model"])
def test_each_key_of_the_config_and_the_runtime_is_the_same(called, mode):
    """The config, the runtime and the events of a call are those of the code without the call."""
    without, events = seen_by(called, mode, wrapped=False)
    within, events_within = seen_by(called, mode, wrapped=True)
    hidden = {f"configurable.{key}" for key in OF_STEP}
    for key in sorted({*without, *within} - hidden):
        assert within.get(key, "missing") == without.get(key, "missing"), key
    assert events == events_within == [{"by": "user"}]


def test_a_node_that_langgraph_tries_again_sees_the_number_of_its_attempt():
    """The second try of the node is attempt 2 for the function, too."""
    numbers: list[int] = []

    def ask(_: str) -> str:
        info = get_runtime().execution_info
        assert info is not None
        numbers.append(info.node_attempt)
        return "done"

    def node(_: State) -> Any:
        said = retry_llm_call(ask, f"try {len(numbers)}")
        if len(numbers) == 1:
            raise ConnectionError("down")
        return {"log": [said]}

    builder = StateGraph(State)
    policy = RetryPolicy(max_attempts=2, initial_interval=0.001, jitter=False)
    builder.add_node("around", node, retry_policy=policy)
    builder.add_edge(START, "around")
    builder.compile(checkpointer=InMemorySaver()).invoke({"log": []}, thread())
    assert numbers == [1, 2]


def pushing(mode: Any, failing: list[str], *, later: Any = None) -> Any:
    """Compile a graph whose call pushes a message and then fails for some params."""

    def ask(city: str) -> str:
        said = push_message(AIMessage(f"looking at {city}", id=f"m-{city}"))
        read = next(v for k, v in get_config()["configurable"].items() if k.endswith("pregel_read"))
        assert said in read("messages", True)
        if city in failing:
            raise ValueError(city)
        return city

    def node(_: State) -> Any:
        said = retry_llm_call(ask, "Olso")
        if later is not None:
            later()
        return {"log": [said]}

    async def anode(_: State) -> Any:
        said = await aretry_llm_call(mode.colour(ask), "Olso")
        if later is not None:
            later()
        return {"log": [said]}

    builder = StateGraph(State)
    builder.add_node("around", anode if mode.is_async else node)
    builder.add_edge(START, "around")
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize(
    ("decision", "kept"),
    [(edit(value="Oslo"), ["looking at Oslo"]), (respond("Rome"), [])],
)
def test_what_a_function_pushes_into_state_is_that_of_the_attempt_that_counts(mode, decision, kept):
    """A failed attempt leaves nothing in the caller's state, and the one that succeeded all."""
    graph = pushing(mode, ["Olso"])
    mode.invoke(graph, {"log": []}, thread())
    state = answer(mode, graph, thread(), decision)
    assert [message.content for message in state["messages"]] == kept


def test_what_a_finished_call_pushed_survives_a_crash_of_its_node(mode):
    """The node fails after the call; the next run makes no call, and the message is there."""
    fails = [True]

    def later() -> None:
        if fails.pop() if fails else False:
            raise ConnectionError("down")

    graph = pushing(mode, [], later=later)
    with pytest.raises(ConnectionError):
        mode.invoke(graph, {"log": []}, thread())
    state = mode.invoke(graph, None, thread())
    assert [message.content for message in state["messages"]] == ["looking at Olso"]


def test_a_tool_of_an_attempt_gets_the_config_of_the_attempt(mode):
    """An agent that a tool calls with `runtime.config` starts afresh in the next attempt."""
    asked: list[str] = []

    def ask(messages: Any) -> Any:
        asked.append(str(messages[-1].content))
        return f"about {messages[-1].content}"

    inner = create_agent(ScriptedChat(answer=ask), [], checkpointer=None)

    def task(about: str, runtime: ToolRuntime) -> str:
        """Ask the other agent."""
        said = inner.invoke({"messages": [("user", about)]}, runtime.config)["messages"]
        if about == "bad":
            raise ValueError(f"{len(said)} messages")
        return f"{len(said)} messages"

    def call(messages: Any) -> Any:
        if messages[-1].type == "tool":
            return str(messages[-1].content)
        return asking({"name": "task", "args": {"about": "bad"}, "id": "t"})

    middleware: Any = [RetryMiddleware(tools=True)]
    agent = create_agent(
        ScriptedChat(answer=call), [task], middleware=middleware, checkpointer=InMemorySaver()
    )
    mode.invoke(agent, {"messages": [("user", "go")]}, thread())
    (review,) = reviews(mode, agent, thread())
    assert "2 messages" in review.error
    state = answer(mode, agent, thread(), edit(about="good"))
    assert state["messages"][-1].content.endswith("2 messages")
    assert asked == ["bad", "good"]
