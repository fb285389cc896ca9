"""Nodes of an existing graph ask a person when they fail, and the graph runs as it did before."""

from typing import Any, Literal

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

import graph_retry
from graph_retry import AnswerRefused, CallCancelled, edit, reject, respond
from graph_retry.nodes import review_nodes, reviewed
from tests.loops import reviews, thread
from tests.reviewed.nodes import Calls, State, answered, waiting


def lacks(text):
    """Return a rule: a node fails while its prompt lacks a text."""
    return lambda state: text not in state["prompt"]


def test_a_bare_value_in_a_send_is_the_param(mode):
    """A `Send` of a text has one param, `value`."""
    calls = Calls()
    builder = StateGraph(State)

    def work(item: str) -> Any:
        calls[item] += 1
        if item == "bad":
            raise ValueError(item)
        return {"log": [item]}

    builder.add_node("work", mode.colour(work))
    builder.add_conditional_edges(START, lambda _: [Send("work", "bad")], ["work"])
    graph = review_nodes(builder).compile(checkpointer=InMemorySaver())

    state, _ = answered(mode, graph, lambda *_: {"value": "good"})

    assert state["log"] == ["good"]
    assert calls == {"bad": 1, "good": 1}


def test_a_subgraph_as_a_node_stays_visible(mode, checkpointer):
    """`xray` and `get_subgraphs` find the subgraph of a reviewed node, which runs again whole."""
    calls = Calls()
    inner = StateGraph(State)
    inner.add_node("one", calls.node(mode, "one", lambda _: False, {}))
    inner.add_node("two", calls.node(mode, "two", lacks("JSON"), {"out": "ok"}))
    inner.add_edge(START, "one")
    inner.add_edge("one", "two")
    builder = StateGraph(State).add_node("sub", inner.compile()).add_edge(START, "sub")
    before = sorted(builder.compile().get_graph(xray=1).nodes)
    graph = review_nodes(builder, ["prompt"]).compile(checkpointer=checkpointer)

    assert sorted(graph.get_graph(xray=1).nodes) == before
    assert [name for name, _ in graph.get_subgraphs()] == ["sub"]
    state, asked = answered(mode, graph, lambda *_: {"prompt": "JSON"})
    assert (state["out"], asked) == ("ok", 1)
    assert calls == {"one": 2, "two": 2}


@pytest.mark.parametrize("how", ["subgraph", "function"])
def test_the_state_of_a_subgraph_is_that_of_its_newest_attempt(mode, checkpointer, how):
    """`get_state` shows a subgraph as without the review: while it asks, has failed, and ended."""

    def two(state):
        said = interrupt("sure?")
        if "JSON" not in state["prompt"]:
            message = "no JSON"
            raise ValueError(message)
        return {"out": said + state["log"][-1]}

    inner = StateGraph(State).add_node("one", lambda _: {"log": ["one"]})
    inner = inner.add_node("two", mode.colour(two)).add_edge(START, "one").add_edge("one", "two")
    sub = inner.compile()

    def run(state):
        return {"out": sub.invoke({"prompt": state["prompt"]})["out"]}

    async def arun(state):
        return {"out": (await sub.ainvoke({"prompt": state["prompt"]}))["out"]}

    node = sub if how == "subgraph" else arun if mode.is_async else run

    def shown(graph, place=None, **options):
        return mode.call(graph, "get_state", place or thread(), **options)

    def seen(graph):
        (task,) = shown(graph, subgraphs=True).tasks
        asked = [each.value for one in task.state.tasks for each in one.interrupts]
        return task.state.values, task.state.next, asked

    def looks(change, saver):
        builder = StateGraph(State).add_node("sub", node).add_edge(START, "sub")
        graph = change(builder).compile(checkpointer=saver)
        mode.invoke(graph, {"prompt": "x"}, thread())
        place = shown(graph).tasks[0].state
        asking = seen(graph)
        mode.call(graph, "update_state", place, {"log": ["told"]})
        told = seen(graph)
        try:
            mode.invoke(graph, Command(resume="yes"), thread())
        except ValueError:
            assert change is not review_nodes
        return graph, place, [asking, told, seen(graph)]

    _, _, plain = looks(lambda builder: builder, InMemorySaver())
    graph, place, ours = looks(review_nodes, checkpointer)

    assert ours == plain
    assert ours[0] == ({"prompt": "x", "log": ["one"]}, ("two",), ["sure?"])
    earlier = mode.call(graph, "get_state_history", place)
    assert [each.values.get("log") for each in earlier] == [["one", "told"], ["one"], [], []]
    assert shown(graph, earlier[1].config).values["log"] == ["one"]
    with pytest.raises(ValueError, match="`sub` waits for an answer"):
        mode.call(graph, "update_state", place, {"log": ["lost"]})
    mode.call(graph_retry, "resume", graph, thread(), edit(prompt="JSON"))
    state = mode.invoke(graph, Command(resume="no"), thread())
    assert state["out"] == shown(graph, place).values["out"] == "noone"
    assert shown(graph, earlier[1].config).values["prompt"] == "x"


@pytest.mark.parametrize("outer", [lambda builder: builder, review_nodes])
def test_a_node_in_a_subgraph(mode, checkpointer, outer):
    """The node asks, also if a line reviews the outer graph: its subgraph asks already."""
    calls = Calls()
    inner = StateGraph(State).add_node("ask", calls.node(mode, "ask", lacks("JSON"), {"out": "ok"}))
    inner.add_edge(START, "ask")
    sub = review_nodes(inner, ["prompt"]).compile()
    builder = outer(StateGraph(State).add_node("sub", sub).add_edge(START, "sub"))
    graph = builder.compile(checkpointer=checkpointer)

    state, asked = answered(mode, graph, lambda *_: {"prompt": "JSON"})

    assert (state["out"], asked, calls["ask"]) == ("ok", 1, 2)


@pytest.mark.parametrize("way", ["graph", "one"])
def test_edges_and_commands_go_on_as_before(mode, checkpointer, way):
    """A conditional edge and a `Command` of the node lead on, whoever mended the call."""
    calls, went = Calls(), []

    def jump(state: State) -> Command[Literal["last"]]:
        calls["jump"] += 1
        if state["prompt"].count("JSON") < 2:
            message = "again"
            raise ValueError(message)
        return Command(update={"log": ["jumped"]}, goto="last")

    ask = calls.node(mode, "ask", lacks("JSON"), {"out": "left"})
    jump = mode.colour(jump)
    one = (lambda node: reviewed(node, ["prompt"], schema=State)) if way == "one" else lambda n: n
    builder = StateGraph(State)
    builder.add_node("ask", one(ask))
    builder.add_node("left", one(jump))
    builder.add_node("right", lambda _: went.append("right"))
    builder.add_node("last", lambda _: went.append("last"))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda state: state["out"], ["left", "right"])
    if way == "graph":
        review_nodes(builder, ["prompt"], nodes=["ask", "left"])
    graph = builder.compile(checkpointer=checkpointer)
    drawn = {(edge.source, edge.target) for edge in graph.get_graph().edges}

    state, _ = answered(mode, graph, lambda _, params: {"prompt": params["prompt"] + " JSON"})

    assert ("left", "last") in drawn
    assert went == ["last"]
    assert state["log"] == ["jumped"]
    assert calls == {"ask": 2, "jump": 3}


def test_a_response_takes_the_place_of_the_update(mode, checkpointer):
    """What a person responds is checked as an update of the state, and the edges lead on."""
    went = []
    builder = StateGraph(State)
    builder.add_node("ask", Calls().node(mode, "ask", lambda _: True, {}))
    builder.add_node("good", lambda _: {"log": ["good"]})
    builder.add_node("end", lambda state: went.append((state["out"], state["log"])))
    builder.add_edge(START, "ask")
    builder.add_edge(START, "good")
    builder.add_edge(["ask", "good"], "end")
    graph = review_nodes(builder, ["prompt"], nodes=["ask"]).compile(checkpointer=checkpointer)
    mode.invoke(graph, {"prompt": "x"}, thread())

    for wrong in ("text", {"nokey": 1}, {"out": 7}, 7):
        with pytest.raises(AnswerRefused):
            mode.call(graph_retry, "resume", graph, thread(), respond(wrong))
    mode.call(graph_retry, "resume", graph, thread(), respond({"out": "by hand"}))

    assert went == [("by hand", ["good"])]


def test_a_rejection_ends_the_node_with_its_error(mode, checkpointer):
    """A rejected node raises `CallCancelled`, and runs no more if the thread is continued."""
    calls = Calls()
    builder = StateGraph(State).add_node("ask", calls.node(mode, "ask", lambda _: True, {}))
    builder.add_edge(START, "ask")
    graph = review_nodes(builder, ["prompt"], labels={"team": "a"}).compile(
        checkpointer=checkpointer
    )
    mode.invoke(graph, {"prompt": "x"}, thread())
    assert waiting(mode, graph)[0].value["labels"] == {"team": "a"}

    with pytest.raises(CallCancelled):
        mode.call(graph_retry, "resume", graph, thread(), reject("no"))
    with pytest.raises(CallCancelled):
        mode.invoke(graph, None, thread())
    assert calls["ask"] == 1


def test_messages_are_edited_with_their_types(mode, checkpointer):
    """Messages are params by their type, so that a node gets message objects again."""
    seen = []

    def ask(state: MessagesState):
        seen.append([type(message) for message in state["messages"]])
        if "JSON" not in str(state["messages"][-1].content):
            message = "no JSON"
            raise ValueError(message)
        return {"messages": [AIMessage("done")]}

    builder = StateGraph(MessagesState).add_node("ask", mode.colour(ask)).add_edge(START, "ask")
    graph = review_nodes(builder).compile(checkpointer=checkpointer)
    mode.invoke(graph, {"messages": [HumanMessage("hi", id="1")]}, thread())
    changed = [{"type": "human", "content": "hi, as JSON", "id": "1"}]

    state = mode.call(graph_retry, "resume", graph, thread(), edit(messages=changed))

    assert seen == [[HumanMessage], [HumanMessage]]
    assert [message.content for message in state["messages"]] == ["hi", "done"]


def test_tokens_and_events_stream_in_the_name_of_the_node(mode):
    """Tokens, custom events and updates look as they do without a review."""

    def ask(state):
        get_stream_writer()({"prompt": state["prompt"]})
        return {"out": FakeListChatModel(responses=["ok"]).invoke(state["prompt"]).content}

    def streamed(change):
        builder = StateGraph(State).add_node("ask", ask).add_edge(START, "ask")
        graph = change(builder).compile(checkpointer=InMemorySaver())
        parts = mode.call(
            graph,
            "stream",
            {"prompt": "x"},
            thread(),
            stream_mode=["updates", "custom", "messages"],
        )
        return [
            (kind, (part[0].content, part[1]["langgraph_node"]) if kind == "messages" else part)
            for kind, part in parts
        ]

    plain, ours = streamed(lambda builder: builder), streamed(review_nodes)

    assert [part for part in ours if "graph_retry" not in str(part)] == plain


def test_a_node_that_comes_too_late_is_told(caplog):
    """It asks nobody. A choice of nodes, or a node that asks by itself, is no mistake."""
    for late in ({"asks": False}, {"asks": True}):
        builder = StateGraph(State).add_node("ask", lambda _: {}).add_edge(START, "ask")
        node = reviewed(lambda _: {}, ["prompt"]) if late["asks"] else lambda _: {}
        review_nodes(builder).add_node("late", node)
        review_nodes(StateGraph(State).add_node("ask", node), nodes=[]).add_node("b", node)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("node `late` was added after `review_nodes`, so it asks nobody")


def test_a_review_after_compile_is_told(caplog):
    """The graph that was compiled before keeps its nodes."""
    builder = StateGraph(State).add_node("ask", lambda _: {}).add_edge(START, "ask")
    builder.compile()
    review_nodes(builder)
    assert "`review_nodes` came after `compile`" in caplog.text


def test_a_node_that_came_too_late_can_be_reviewed(caplog):
    """The warning says how. The nodes that ask already keep the options of their own."""
    builder = review_nodes(StateGraph(State).add_node("ask", lambda _: {}).add_edge(START, "ask"))
    first = builder.nodes["ask"].runnable
    review_nodes(builder.add_node("late", lambda _: {}))
    assert builder.nodes["ask"].runnable is first
    with pytest.raises(ValueError, match="only nodes that ask already"):
        review_nodes(builder)


def test_a_whole_graph_or_entrypoint_in_place_of_a_node_is_told_before_it_runs(mode):
    """`@reviewed` is for the nodes and tasks of a graph; the text says where it belongs."""
    made = []

    def flow(n: int) -> float:
        made.append(n)
        return 1 / n

    told = "In an `@entrypoint`, write `@reviewed` above each `@task`"
    with pytest.raises(TypeError, match=f"`flow` is a node: add it with `add_node`. {told}"):
        entrypoint(checkpointer=InMemorySaver())(reviewed(flow))

    whole = entrypoint(checkpointer=InMemorySaver())(mode.colour(flow))
    with pytest.raises(TypeError, match=f"another graph around it: add it with .*{told}"):
        mode.invoke(reviewed(whole), 0, thread())
    assert made == []

    builder = StateGraph(State).add_node("inner", reviewed(whole)).add_edge(START, "inner")
    graph = builder.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {"prompt": "x"}, thread())
    assert len(made) == 1
    assert len(reviews(mode, graph, thread())) == 1
