"""Graphs in which nodes fail at first, one for each part of LangGraph that may surround a node."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from langchain.agents import create_agent
from langchain_core.messages import AnyMessage
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Command, RetryPolicy, Send, interrupt
from pydantic import BaseModel, Field

import graph_retry
from graph_retry import edit, respond
from graph_retry.nodes import review_nodes
from tests.agents.scripted import ScriptedChat, asking, weather_of
from tests.reviewed.nodes import State, waiting

Note = Callable[[str], Any]
Colour = Callable[[Any], Any]


class Chat(State, total=False):
    """The state of the graphs with messages."""

    messages: Annotated[list[AnyMessage], add_messages]


class Item(BaseModel):
    """The input of a branch, or of a node that reads a part of the state."""

    prompt: str = Field(max_length=9)


def louder(review: Any) -> Any:
    """Answer as a person who adds a `!` to the prompt, or to the first message."""
    if "messages" in review.params:
        first, *others = review.params["messages"]
        return edit(messages=[{**first, "content": first["content"] + "!"}, *others])
    return edit(prompt=review.params["prompt"] + "!")


@dataclass(frozen=True)
class Program:
    """A graph, the answers to its questions, and what it ends with.

    build: Makes the graph's builder. It is given a function that makes nodes async, and one that
        notes that a node runs.
    ends: Some keys of the state at the end.
    calls: How often each node ran.
    asked: The number of questions.
    """

    build: Callable[[Colour, Note], StateGraph[Any, Any, Any, Any]]
    ends: Mapping[str, Any]
    calls: Mapping[str, int]
    asked: int
    answer: Callable[[Any], Any] = louder


def played(mode: Any, graph: Any, config: Any, program: Program) -> tuple[Any, int]:
    """Bring a thread to its end, as a person does; return the state and the number of questions."""
    mode.invoke(graph, {"prompt": "x", "messages": [("user", "x")]}, config)
    asked = 0
    for _ in range(9):
        state = mode.call(graph, "get_state", config)
        reviews = waiting(mode, graph, config)
        asked += len(reviews)
        if reviews:
            answers = {one.review_id: program.answer(one) for one in reviews}
            mode.call(graph_retry, "resume", graph, config, answers=answers)
        elif state.interrupts:
            mode.invoke(graph, Command(resume=f"said {asked}"), config)
        else:
            break
    return state.values, asked


def node_of(note: Note, colour: Colour, name: str, needed: int, update: Any) -> Any:
    """Return a node that fails while its prompt has too few `!`."""

    def run(state: Any) -> Any:
        note(name)
        prompt = state.prompt if isinstance(state, Item) else state["prompt"]
        if prompt.count("!") < needed:
            message = f"{name} failed"
            raise ValueError(message)
        return update(state) if callable(update) else update

    return colour(run)


def joined(*, barrier: bool) -> Any:
    """Make the builder of three nodes side by side, and of one behind them."""

    def build(colour: Colour, note: Note) -> Any:
        builder, names = StateGraph(State), ["A", "B", "C"]
        for name, needed in zip(names, (2, 1, 0), strict=True):
            builder.add_node(name, node_of(note, colour, name, needed, {"log": [name]}))
            builder.add_edge(START, name)
        builder.add_node("end", node_of(note, colour, "end", 0, {"out": "joined"}))
        for source in [names] if barrier else names:
            builder.add_edge(source, "end")
        return review_nodes(builder, ["prompt"])

    return build


def sent(colour: Colour, note: Note) -> Any:
    """Build four branches, two of which fail, and a node that reduces them."""
    builder = StateGraph(State)
    work = node_of(note, colour, "work", 1, lambda item: {"log": [item["prompt"]]})
    builder.add_node("work", work)
    reduce = node_of(note, colour, "reduce", 0, lambda state: {"out": str(len(state["log"]))})
    builder.add_node("reduce", reduce).add_edge("work", "reduce")
    sends = [Send("work", {"prompt": item}) for item in ("a", "b!", "c", "d!")]
    builder.add_conditional_edges(START, lambda _: sends, ["work"])
    return review_nodes(builder, ["prompt"])


def subgraph(*, reviewed: Literal["outer", "inner"]) -> Any:
    """Make the builder of a graph of two nodes, the second of which fails, inside another graph."""

    def build(colour: Colour, note: Note) -> Any:
        inner = StateGraph(State).add_node("one", node_of(note, colour, "one", 0, {}))
        inner.add_node("two", node_of(note, colour, "two", 1, {"out": "done"}))
        inner.add_edge(START, "one").add_edge("one", "two")
        if reviewed == "inner":
            review_nodes(inner, ["prompt"])
        outer = StateGraph(State).add_node("sub", inner.compile()).add_edge(START, "sub")
        return review_nodes(outer, ["prompt"]) if reviewed == "outer" else outer

    return build


def agent(colour: Colour, note: Note) -> Any:
    """Build an agent of LangChain as a node; its second model call fails at first."""

    def weather(city: str) -> str:
        """Tell a city's weather."""
        note("tool")
        return f"sunny in {city}"

    def answer(messages: Any) -> Any:
        note("model")
        if messages[-1].type == "human":
            return asking(weather_of("Oslo"))
        return "done" if "!" in messages[0].content else ConnectionError("overloaded")

    builder = StateGraph(Chat).add_node(
        "agent", create_agent(ScriptedChat(answer=answer), [weather])
    )
    last = node_of(note, colour, "end", 0, lambda state: {"out": state["messages"][-1].content})
    builder.add_node("end", last).add_edge(START, "agent").add_edge("agent", "end")
    return review_nodes(builder, nodes={"agent": {"params": ["messages"]}})


def messages(colour: Colour, note: Note) -> Any:
    """Build a node that reads messages."""

    def ask(state: Chat) -> Any:
        note("ask")
        if "!" not in state["messages"][0].content:
            raise ValueError
        return {"messages": [("ai", "done")], "out": type(state["messages"][0]).__name__}

    return review_nodes(StateGraph(Chat).add_node("ask", colour(ask)).add_edge(START, "ask"))


def policy(colour: Colour, note: Note) -> Any:
    """Build a node with a retry policy of two tries."""

    def ask(state: State) -> Any:
        note("ask")
        if "!" not in state["prompt"]:
            raise ConnectionError
        return {"out": "done"}

    tries = RetryPolicy(max_attempts=2, initial_interval=0, jitter=False)
    builder = StateGraph(State).add_node("ask", colour(ask), retry_policy=tries)
    return review_nodes(builder.add_edge(START, "ask"), ["prompt"])


def timeout(colour: Colour, note: Note) -> Any:
    """Build a node that is too slow at first. LangGraph gives a timeout to async nodes only."""

    def ask(state: State) -> Any:
        note("ask")
        if "!" not in state["prompt"]:
            threading.Event().wait(0.3)
        return {"out": "done"}

    async def aask(state: State) -> Any:
        note("ask")
        if "!" not in state["prompt"]:
            await asyncio.Event().wait()
        return {"out": "done"}

    is_async = asyncio.iscoroutinefunction(colour(ask))
    builder = StateGraph(State)
    builder.add_node("ask", aask if is_async else ask, timeout=0.1 if is_async else None)
    options: Any = {} if is_async else {"timeout": 0.1}
    return review_nodes(builder.add_edge(START, "ask"), ["prompt"], **options)


def routed(colour: Colour, note: Note) -> Any:
    """Build a node with a conditional edge, and one that goes on by a command."""
    left = {"out": "left"}
    jump = node_of(note, colour, "jump", 2, Command(update={"log": ["jumped"]}, goto="last"))
    builder = StateGraph(State).add_node("ask", node_of(note, colour, "ask", 1, left))
    builder.add_node("left", jump, destinations=("last",))
    builder.add_node("right", node_of(note, colour, "right", 0, {}))
    builder.add_node("last", node_of(note, colour, "last", 0, {"log": ["last"]}))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda state: state["out"], ["left", "right"])
    return review_nodes(builder, ["prompt"])


def parent(colour: Colour, note: Note) -> Any:
    """Build a node in a subgraph that goes on in the outer graph."""
    command = Command(graph=Command.PARENT, goto="last", update={"log": ["jumped"]})
    inner = StateGraph(State).add_node("ask", node_of(note, colour, "ask", 1, command))
    inner.add_node("never", node_of(note, colour, "never", 0, {})).add_edge("ask", "never")
    sub = review_nodes(inner.add_edge(START, "ask"), ["prompt"]).compile()
    builder = StateGraph(State).add_node("sub", sub, destinations=("last",))
    builder.add_node("last", node_of(note, colour, "last", 0, {"log": ["last"]}))
    return review_nodes(builder.add_edge(START, "sub"), ["prompt"])


def question(colour: Colour, note: Note) -> Any:
    """Build a node that asks by itself, and then fails."""

    def ask(state: State) -> Any:
        said = interrupt("own")
        note("ask")
        if "!" not in state["prompt"]:
            raise ValueError
        return {"out": said}

    return review_nodes(StateGraph(State).add_node("ask", colour(ask)).add_edge(START, "ask"))


def hooked(colour: Colour, note: Note) -> Any:
    """Build a node whose params a hook corrects before a person is asked."""

    def hook(error: Exception, attempt: int, params: Any) -> Any:
        return {**params, "prompt": params["prompt"] + "!"}

    builder = StateGraph(State).add_node("ask", node_of(note, colour, "ask", 3, {"out": "done"}))
    return review_nodes(builder.add_edge(START, "ask"), ["prompt"], hook, auto_retries=1)


def typed(colour: Colour, note: Note) -> Any:
    """Build a node whose input is a pydantic model."""
    builder = StateGraph(State)
    ask = node_of(note, colour, "ask", 1, lambda item: {"out": type(item).__name__})
    builder.add_node("ask", ask, input_schema=Item).add_edge(START, "ask")
    return review_nodes(builder)


def round_and_round(colour: Colour, note: Note) -> Any:
    """Build a node that runs three times."""
    builder = StateGraph(State).add_node("ask", node_of(note, colour, "ask", 1, {"log": ["x"]}))
    again = lambda state: "ask" if len(state["log"]) < 3 else END  # noqa: E731
    builder.add_edge(START, "ask").add_conditional_edges("ask", again, ["ask", END])
    return review_nodes(builder, ["prompt"])


def supplied(colour: Colour, note: Note) -> Any:
    """Build a node that never succeeds, beside another one, and a node behind both."""
    builder = StateGraph(State).add_node("ask", node_of(note, colour, "ask", 99, {}))
    builder.add_node("good", node_of(note, colour, "good", 0, {"log": ["good"]}))
    builder.add_node("end", node_of(note, colour, "end", 0, {"log": ["end"]}))
    builder.add_edge(START, "ask").add_edge(START, "good").add_edge(["ask", "good"], "end")
    return review_nodes(builder, ["prompt"])


_THREE = {"A": 3, "B": 2, "C": 1, "end": 1}
PROGRAMS = {
    "edges": Program(joined(barrier=False), {"log": ["A", "B", "C"], "out": "joined"}, _THREE, 3),
    "barrier": Program(joined(barrier=True), {"log": ["A", "B", "C"], "out": "joined"}, _THREE, 3),
    "send": Program(sent, {"out": "4"}, {"work": 6, "reduce": 1}, 2),
    "subgraph": Program(subgraph(reviewed="outer"), {"out": "done"}, {"one": 2, "two": 2}, 1),
    "in a subgraph": Program(subgraph(reviewed="inner"), {"out": "done"}, {"one": 1, "two": 2}, 1),
    "agent": Program(agent, {"out": "done"}, {"model": 4, "tool": 2, "end": 1}, 1),
    "messages": Program(messages, {"out": "HumanMessage"}, {"ask": 2}, 1),
    "policy": Program(policy, {"out": "done"}, {"ask": 3}, 1),
    "timeout": Program(timeout, {"out": "done"}, {"ask": 2}, 1),
    "routes": Program(routed, {"log": ["jumped", "last"]}, {"ask": 2, "jump": 3, "last": 1}, 3),
    "parent": Program(parent, {"log": ["jumped", "last"]}, {"ask": 2, "last": 1}, 1),
    "question": Program(question, {"out": "said 1"}, {"ask": 2}, 1),
    "hook": Program(hooked, {"out": "done"}, {"ask": 3}, 1, lambda _: edit(prompt="!!!")),
    "model": Program(typed, {"out": "Item"}, {"ask": 2}, 1),
    "loop": Program(round_and_round, {"log": ["x"] * 3}, {"ask": 6}, 3),
    "response": Program(
        supplied,
        {"out": "by hand", "log": ["good", "end"]},
        {"ask": 1, "good": 1, "end": 1},
        1,
        lambda _: respond({"out": "by hand"}),
    ),
}
