"""The user's function runs in the context of the node that made the call: streams, store."""

import contextvars
from dataclasses import dataclass

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config, get_store, get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from graph_retry import aretry_llm_call, create_retry_node, retry_llm_call
from tests.loops import State, reviews, thread

NODE = "writer"
WORDS = "one two three"


@dataclass
class Customer:
    """The run's context."""

    name: str


def speaking(mode):
    """Return a function that streams a chat model's answer and writes a custom event.

    It refuses an `n` of 0 after that, so that a person is asked.
    """

    def chat():
        return GenericFakeChatModel(messages=iter([AIMessage(WORDS)]))

    def speak(params):
        get_stream_writer()({"said": params["n"]})
        text = "".join(str(part.content) for part in chat().stream("hi"))
        return heard(params, text)

    async def aspeak(params):
        get_stream_writer()({"said": params["n"]})
        text = "".join([str(part.content) async for part in chat().astream("hi")])
        return heard(params, text)

    def heard(params, text):
        if params["n"] == 0:
            raise ValueError("not yet")
        return text

    return aspeak if mode.is_async else speak


def graph_of(kind, mode, llm_call, **compiled):
    """Compile a graph whose node is plain, or makes a call in one of the forms."""

    def plain(state):
        return {"output": llm_call(state["params"])}

    async def aplain(state):
        return {"output": await llm_call(state["params"])}

    def function(state):
        return {"output": retry_llm_call(llm_call, state["params"], name="speak")}

    async def afunction(state):
        return {"output": await aretry_llm_call(llm_call, state["params"], name="speak")}

    nodes = {
        "plain": aplain if mode.is_async else plain,
        "function": afunction if mode.is_async else function,
        "node": create_retry_node(llm_call, dict, name="speak"),
    }
    builder = StateGraph(State, context_schema=Customer).add_node(NODE, nodes[kind])
    builder.add_edge(START, NODE)
    return builder.compile(checkpointer=InMemorySaver(), **compiled)


def tokens(mode, graph, given):
    """Return the tokens of a run and the nodes they are said to come from."""
    parts = mode.call(graph, "stream", given, thread(), stream_mode="messages")
    return [(part.content, seen["langgraph_node"]) for part, seen in parts if part.content]


def custom(mode, graph, given):
    """Return the user's custom events of a run; ours tell of attempts."""
    parts = mode.call(graph, "stream", given, thread(), stream_mode="custom")
    return [part for part in parts if "said" in part]


@pytest.mark.parametrize("read", [tokens, custom])
def test_streams_are_those_of_a_plain_node(form, mode, read):
    """Protects chat interfaces: they see tokens and events with the default `subgraphs=False`."""
    given = {"params": {"n": 1}}
    expected = read(mode, graph_of("plain", mode, speaking(mode)), given)
    seen = read(mode, graph_of(form, mode, speaking(mode)), given)

    assert len(expected) >= 1
    assert seen == expected


def test_tokens_come_from_the_node_that_made_the_call_after_an_answer_too(form, mode):
    """Protects the stream of a run that was resumed with an answer."""
    graph = graph_of(form, mode, speaking(mode))
    assert "".join(text for text, _ in tokens(mode, graph, {"params": {"n": 0}})) == WORDS
    (review,) = reviews(mode, graph, thread())

    resumed = Command(resume={review.interrupt_id: {"type": "edit", "params": {"n": 1}}})
    seen = tokens(mode, graph, resumed)

    assert "".join(text for text, _ in seen) == WORDS
    assert {node for _, node in seen} == {NODE}
    assert reviews(mode, graph, thread()) == []


def test_no_values_are_streamed_but_those_of_the_users_own_graphs(form, mode):
    """Protects chat pages, which take any `values` for the whole state: ours have no messages."""

    def call(params):
        agent = StateGraph(State).add_node("think", lambda state: {"output": 1})
        agent.add_edge(START, "think").compile().invoke({"params": {"inner": True}})
        if params["n"] == 0:
            raise ValueError("not yet")
        return "done"

    graph = graph_of(form, mode, mode.colour(call))
    modes = {"stream_mode": ["values", "updates"], "subgraphs": True}
    resumed = Command(resume={"type": "edit", "params": {"n": 1}})

    for given in ({"params": {"n": 0}}, resumed):
        parts = list(mode.call(graph, "stream", given, thread(), **modes))
        values = [(bool(place), state) for place, kind, state in parts if kind == "values"]
        inner = [state["params"] for is_inner, state in values if is_inner]
        assert inner == [{"inner": True}, {"inner": True}]
        assert all("retry_loop" not in state for _, state in values)
        steps = [step for place, kind, update in parts for step in update if kind == "updates"]
        assert {"call", "think", "revise" if given is not resumed else "review"} <= {*steps}


class Listener(BaseCallbackHandler):
    """Notes the tags and metadata of each start of a chat model."""

    run_inline = True

    def __init__(self):
        self.starts = []

    def on_chat_model_start(self, serialized, messages, *, tags=None, metadata=None, **kwargs):
        told = metadata or {}
        self.starts.append((tags or [], told.get("customer"), told.get("langgraph_node")))


def test_callbacks_tags_and_metadata_reach_the_model(form, mode):
    """Protects tracing: the model's run has the caller's callbacks, tags and metadata, once."""

    def starts(kind):
        listener = Listener()
        config = {
            **thread(),
            "callbacks": [listener],
            "tags": ["checkout"],
            "metadata": {"customer": "Ada"},
        }
        mode.invoke(graph_of(kind, mode, speaking(mode)), {"params": {"n": 1}}, config)
        return [(sorted(set(tags) & {"checkout"}), *rest) for tags, *rest in listener.starts]

    assert starts("plain") == [(["checkout"], "Ada", NODE)]
    assert starts(form) == starts("plain")


def test_store_and_runtime_context_are_available(form, mode):
    """Protects functions that read memory or know the customer, before and after an answer."""
    store, seen = InMemoryStore(), []
    store.put(("prices",), "tax", {"rate": 20})

    def read(params):
        runtime = get_runtime(Customer)
        in_config = get_config()["configurable"]["thread_id"]
        rate = get_store().get(("prices",), "tax").value["rate"]
        seen.append((runtime.context.name, runtime.store is not None, rate, in_config))
        get_store().put(("calls",), str(len(seen)), {"n": params["n"]})
        if params["n"] == 0:
            raise ValueError("not yet")
        return rate

    graph = graph_of(form, mode, mode.colour(read), store=store)
    mode.invoke(graph, {"params": {"n": 0}}, thread(), context=Customer("Ada"))
    (review,) = reviews(mode, graph, thread())

    resumed = Command(resume={review.interrupt_id: {"type": "edit", "params": {"n": 1}}})
    state = mode.invoke(graph, resumed, thread(), context=Customer("Bob"))

    assert state["output"] == 20
    assert seen == [("Ada", True, 20, "1"), ("Bob", True, 20, "1")]
    assert len(store.search(("calls",))) == 2


def test_context_variables_of_the_node_are_seen(mode):
    """Protects tracing and request ids that a node sets in a context variable before its call."""
    request = contextvars.ContextVar("request", default="none")
    seen = []

    def read(params):
        seen.append(request.get())
        return "ok"

    llm_call = mode.colour(read)

    def node(state):
        request.set("r-1")
        return {"output": retry_llm_call(llm_call, state["params"], name="read")}

    async def anode(state):
        request.set("r-1")
        return {"output": await aretry_llm_call(llm_call, state["params"], name="read")}

    builder = StateGraph(State).add_node(NODE, anode if mode.is_async else node)
    graph = builder.add_edge(START, NODE).compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"params": {"n": 1}}, thread())

    assert seen == ["r-1"]
