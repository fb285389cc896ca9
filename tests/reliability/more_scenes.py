"""More scenes of `every_write`: other graphs around the calls, and other ways to go on."""

from typing import Any

from langgraph.cache.memory import InMemoryCache
from langgraph.graph import START, StateGraph
from langgraph.types import CachePolicy, Command, Send, interrupt

import graph_retry
from graph_retry.nodes import review_nodes
from tests.agents.journey import traveller
from tests.conftest import Mode
from tests.reliability.scenes import (
    ONE,
    SCENES,
    Note,
    Scene,
    State,
    caller,
    forward,
    one,
    params,
    results,
)

_WIDTH = 8


class _Compiled:
    """A builder that is compiled with more than a checkpointer."""

    def __init__(self, builder: Any, **options: Any) -> None:
        self._builder, self._options = builder, options

    def compile(self, *, checkpointer: Any) -> Any:
        """Compile it."""
        return self._builder.compile(checkpointer=checkpointer, **self._options)


def threads_own(form: str) -> Any:
    """Make the builder of a call in a subgraph that keeps one history per thread."""

    def build(mode: Mode, note: Note) -> Any:
        inner = one(form)(mode, note).compile(checkpointer=True)
        return StateGraph(State).add_node("inner", inner).add_edge(START, "inner")

    return build


def halted(form: str) -> Any:
    """Make the builder of a call before whose node the graph halts."""
    return lambda mode, note: _Compiled(one(form)(mode, note), interrupt_before=["ask"])


def cached(mode: Mode, note: Note) -> Any:
    """Build a call in a node whose result is cached."""
    graph = StateGraph(State)
    graph.add_node("ask", results("function", mode, note), cache_policy=CachePolicy())
    return _Compiled(graph.add_edge(START, "ask"), cache=InMemoryCache())


def own_questions(mode: Mode, note: Note) -> Any:
    """Build a node that asks by itself before and after its call."""
    call = caller(mode, note)

    async def aask(_: State) -> State:
        first = interrupt("before")
        return {"results": [first, await call(params("a", 1)), interrupt("after")]}

    def ask(_: State) -> State:
        first = interrupt("before")
        return {"results": [first, call(params("a", 1)), interrupt("after")]}

    return StateGraph(State).add_node("ask", aask if mode.is_async else ask).add_edge(START, "ask")


def joined(form: str) -> Any:
    """Make the builder of eight branches, two of which ask, and of a joiner that calls again."""

    def build(mode: Mode, note: Note) -> Any:
        graph = StateGraph(State).add_node("branch", results(form, mode, note))
        names = [f"b{number}" for number in range(_WIDTH)]
        made = [params(name, 1 if name in ("b2", "b5") else 2) for name in names]
        sent = [Send("branch", {"params": each}) for each in made]
        join = results("function", mode, note, name="join")
        graph.add_node("join", join)
        graph.add_edge("branch", "join")
        return graph.add_conditional_edges(START, lambda _: sent, ["branch"])

    return build


def twice(mode: Mode, note: Note) -> Any:
    """Build a node that makes the same call twice."""
    call = caller(mode, note)

    async def aask(_: State) -> State:
        return {"results": [await call(params("a", 1)), await call(params("a", 1))]}

    def ask(_: State) -> State:
        return {"results": [call(params("a", 1)), call(params("a", 1))]}

    return StateGraph(State).add_node("ask", aask if mode.is_async else ask).add_edge(START, "ask")


class _InnerAgent:
    """An agent as a node of a graph that calls a model before it."""

    def __init__(self, mode: Mode, note: Note) -> None:
        self._mode, self._note = mode, note

    def compile(self, *, checkpointer: Any) -> Any:
        """Compile it, as a builder."""

        def log(told: dict[str, Any]) -> None:
            ((kind, what),) = told.items()
            mark = {"Oslo": "about Oslo"}.get(what, f"sunny in {what}")
            self._note("call", told=[f"{kind} {what}"], mark=mark, attempt=0, key="")

        call = caller(self._mode, self._note)

        async def abefore(state: State) -> State:
            return {"output": await call(state["params"])}

        def before(state: State) -> State:
            return {"output": call(state["params"])}

        def after(state: State) -> State:
            return {"results": [state["output"], state["messages"][-1].content]}

        graph = StateGraph(State).add_node("before", abefore if self._mode.is_async else before)
        graph.add_node("agent", traveller(log)).add_node("after", after)
        graph.add_edge(START, "before").add_edge("before", "agent").add_edge("agent", "after")
        return graph.compile(checkpointer=checkpointer)


def own_answered(mode: Mode, graph: Any, config: Any, state: Any, _open: list[Any]) -> bool:
    """Answer the questions of the user's own code."""
    own = {each.id: f"to {each.value}" for each in state.interrupts if isinstance(each.value, str)}
    if own:
        mode.invoke(graph, Command(resume=own), config)
    return bool(own)


def by_halves(mode: Mode, graph: Any, config: Any, _state: Any, open_: list[Any]) -> bool:
    """Answer the first half of several open reviews; the others are answered after that run."""
    half = {each.review_id: forward(each) for each in open_[: len(open_) // 2]}
    if half:
        mode.call(graph_retry, "resume", graph, config, answers=half)
    return bool(half)


def sent(form: str) -> Any:
    """Make the builder of four branches, all of which ask."""

    def build(mode: Mode, note: Note) -> Any:
        graph = StateGraph(State).add_node("branch", results(form, mode, note))
        made = [Send("branch", {"params": params(name, 1)}) for name in "abcd"]
        return graph.add_conditional_edges(START, lambda _: made, ["branch"])

    return build


def reviewed(shape: str) -> Any:
    """Make the builder of reviewed plain nodes: two side by side and their join, or a `Command`."""

    def build(mode: Mode, note: Note) -> Any:
        def node_of(name: str) -> Any:
            def ask(state: State) -> Any:
                given = state["params"]
                mark = f"<{name} {given['n']} {given['answered']}>"
                told = [name, given["n"], given["answered"]]
                note("call", told=told, mark=mark, attempt=0, key="")
                if given["n"] < 2:
                    raise ValueError(f"the call {mark} failed")
                update = {"results": [{"n": given["n"], "name": name, "mark": mark}]}
                return Command(goto="end", update=update) if shape == "command" else update

            return mode.colour(ask)

        names = ["left"] if shape == "command" else ["left", "right"]
        graph = StateGraph(State).add_node("end", lambda _: {"touched": "end"})
        for name in names:
            graph.add_node(name, node_of(name), destinations=("end",)).add_edge(START, name)
        if shape == "joined":
            graph.add_edge(names, "end")
        return review_nodes(graph, ["params"], nodes={name: {} for name in names})

    return build


__all__ = ["SCENES", "Scene"]

SCENES = {
    **SCENES,
    "own questions": Scene(own_questions, ONE, forward, first=own_answered),
    "twice": Scene(twice, ONE, forward),
    "inner agent": Scene(_InnerAgent, {**ONE, "messages": [("user", "Where?")]}, forward),
    "cached": Scene(cached, ONE, forward),
    "reviewed joined": Scene(reviewed("joined"), ONE, forward, whole=2),
    "reviewed command": Scene(reviewed("command"), ONE, forward),
}
for _form in ("node", "function"):
    SCENES[f"thread's own {_form}"] = Scene(threads_own(_form), ONE, forward)
    SCENES[f"halted {_form}"] = Scene(halted(_form), ONE, forward)
    SCENES[f"joined {_form}"] = Scene(joined(_form), ONE, forward, whole=_WIDTH + 1)
    SCENES[f"by halves {_form}"] = Scene(sent(_form), ONE, forward, first=by_halves)
