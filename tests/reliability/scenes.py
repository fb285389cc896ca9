"""The scenes of `every_write`: small programs, each with the answers that bring it to its end."""

import asyncio
import operator
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy, Send
from typing_extensions import TypedDict

from graph_retry import (
    AttemptContext,
    PendingReview,
    approve,
    aretry_llm_call,
    create_retry_node,
    edit,
    gather_calls,
    respond,
    retry_llm_call,
    threads,
)
from graph_retry.nodes import review_nodes
from tests.agents.journey import traveller
from tests.conftest import Mode

Note = Callable[..., None]
"""Notes what user code does; the process may end there."""


class Output(TypedDict):
    """What a call returns."""

    n: int
    name: str
    mark: str


class State(TypedDict, total=False):
    """The state around the calls."""

    params: Any
    output: Any
    status: Any
    attempts: Any
    results: Annotated[list[Any], operator.add]
    messages: Annotated[list[Any], operator.add]
    touched: str


class _Results(TypedDict):
    results: Annotated[list[Any], operator.add]


@dataclass(frozen=True)
class Scene:
    """A program and how it is brought to its end.

    `first` comes before any answer; it is told the state and returns whether it did something.
    `after` comes once the thread has ended, in the same way. `whole` is the number of results that
    a thread has at its end, if it has some before.
    """

    build: Callable[[Mode, Note], Any]
    given: Any
    answer: Callable[[PendingReview], Any]
    first: Callable[..., bool] = lambda *_: False
    after: Callable[..., bool] = lambda *_: False
    whole: int = 1


def forward(review: PendingReview) -> Any:
    """Answer as a person who brings a call one step nearer to success."""
    if "city" in review.params:
        return edit(city="Bergen")
    if "system_prompt" in review.params:
        return edit(system_prompt="Be exact.")
    if "params" in review.params:  # those of a reviewed node
        given = review.params["params"]
        return edit({"params": {**given, "n": given["n"] + 1, "answered": review.attempt}})
    if review.failure is None:  # a valid output
        return approve()
    return edit(n=review.params["n"] + 1, answered=review.attempt)


def params(name: str, n: int = 0) -> dict[str, Any]:
    """Return the first params of a call; it fails while `n` is less than 2."""
    return {"name": name, "n": n, "answered": 0}


def model(mode: Mode, note: Note, *, streamed: bool = False) -> Any:
    """Return a model that fails at `n` 0, answers no JSON at 1, and is right from 2 on."""

    def begin(given: dict[str, Any], context: AttemptContext) -> None:
        told = [given["name"], given["n"], given["answered"]]
        mark, key = mark_of(context), context.idempotency_key
        note("call", told=told, mark=mark, attempt=context.attempt, key=key)

    def answer(given: dict[str, Any], context: AttemptContext) -> str:
        mark = mark_of(context)
        if given["n"] == 0:
            raise ValueError(f"the call {mark} failed")
        if given["n"] == 1:
            return f"no JSON {mark}"
        return f'{{"n": {given["n"]}, "name": "{given["name"]}", "mark": "{mark}"}}'

    def whole(given: dict[str, Any], context: AttemptContext) -> str:
        begin(given, context)
        return answer(given, context)

    async def awhole(given: dict[str, Any], context: AttemptContext) -> str:
        begin(given, context)
        await asyncio.sleep(0)
        return answer(given, context)

    def pieces(given: dict[str, Any], context: AttemptContext) -> Iterator[str]:
        begin(given, context)
        text = answer(given, context)
        for at in range(0, len(text), 20):
            note("piece")
            yield text[at : at + 20]

    async def apieces(given: dict[str, Any], context: AttemptContext) -> AsyncIterator[str]:
        for piece in pieces(given, context):
            yield piece

    kinds = {(False, False): whole, (False, True): awhole, (True, False): pieces}
    return {**kinds, (True, True): apieces}[streamed, mode.is_async]


def mark_of(context: AttemptContext) -> str:
    """Return what stands in the output of a call, by which a write is known to hold it."""
    return f"<{context.idempotency_key}>"


def caller(mode: Mode, note: Note, *, streamed: bool = False, **options: Any) -> Any:
    """Return a function, sync or async, that makes a call of the function form."""
    called = model(mode, note, streamed=streamed)
    options = {"output": Output, "max_attempts": 9, "name": "ask", **options}

    async def acall(given: dict[str, Any], **more: Any) -> Any:
        return await aretry_llm_call(called, given, **options, **more)

    def call(given: dict[str, Any], **more: Any) -> Any:
        return retry_llm_call(called, given, **options, **more)

    return acall if mode.is_async else call


def _node(mode: Mode, note: Note, *, streamed: bool = False, **options: Any) -> Any:
    called = model(mode, note, streamed=streamed)
    options = {"output": Output, "max_attempts": 9, "name": "ask", **options}
    return create_retry_node(called, dict, **options)


def results(form: str, mode: Mode, note: Note, **options: Any) -> Any:
    """Return a node that puts one call's output into `results`."""
    if form == "node":
        graph = StateGraph(State, output_schema=_Results)
        graph.add_node("ask", _node(mode, note, **options))
        graph.add_node("end", lambda state: {"results": [state["output"]]})
        return graph.add_edge(START, "ask").add_edge("ask", "end").compile()
    call = caller(mode, note, **options)

    async def acalling(state: State) -> State:
        return {"results": [await call(state["params"])]}

    return acalling if mode.is_async else lambda state: {"results": [call(state["params"])]}


def one(form: str, policy: RetryPolicy | None = None, **options: Any) -> Any:
    """Make the builder of one call in one of the forms."""

    def build(mode: Mode, note: Note) -> Any:
        graph = StateGraph(State)
        if form == "node":
            graph.add_node("ask", _node(mode, note, **options), retry_policy=policy)
            graph.add_node("end", lambda state: {"results": [state["output"]]})
            return graph.add_edge(START, "ask").add_edge("ask", "end")
        graph.add_node("ask", results(form, mode, note, **options), retry_policy=policy)
        return graph.add_edge(START, "ask")

    return build


def several(mode: Mode, note: Note) -> Any:
    """Build three calls of one node, one after the other; the second succeeds at once."""
    call = caller(mode, note)
    made = [params("a", 1), params("b", 2), params("c", 1)]

    async def aask(_: State) -> State:
        return {"results": [await call(each) for each in made]}

    def ask(_: State) -> State:
        return {"results": [call(each) for each in made]}

    return StateGraph(State).add_node("ask", aask if mode.is_async else ask).add_edge(START, "ask")


def by_hand(mode: Mode, note: Note) -> Any:
    """Build a node whose code invokes two retry nodes."""
    first, second = (_node(mode, note, name=name) for name in ("draft", "critique"))
    made = [(first, {"params": params("a", 1)}), (second, {"params": params("b", 1)})]

    async def aask(_: State) -> State:
        return {"results": [(await each.ainvoke(given))["output"] for each, given in made]}

    def ask(_: State) -> State:
        return {"results": [each.invoke(given)["output"] for each, given in made]}

    return StateGraph(State).add_node("ask", aask if mode.is_async else ask).add_edge(START, "ask")


def gathered(mode: Mode, note: Note) -> Any:
    """Build a node that makes three calls at once: only async code can."""
    call = caller(mode, note)

    async def ask(_: State) -> State:
        made = [call(params(name, 1 if name != "b" else 2)) for name in "abc"]
        return {"results": list(await gather_calls(*made))}

    if not mode.is_async:
        return several(mode, note)
    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


def sent(form: str) -> Any:
    """Make the builder of three branches; the second succeeds at once."""

    def build(mode: Mode, note: Note) -> Any:
        graph = StateGraph(State).add_node("branch", results(form, mode, note))
        made = [Send("branch", {"params": params(n, 1 if n != "b" else 2)}) for n in "abc"]
        return graph.add_conditional_edges(START, lambda _: made, ["branch"])

    return build


def nested(form: str) -> Any:
    """Make the builder of a call two graphs deep."""

    def build(mode: Mode, note: Note) -> Any:
        inner = one(form)(mode, note).compile()
        middle = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile()
        return StateGraph(State).add_node("middle", middle).add_edge(START, "middle")

    return build


def tools(mode: Mode, note: Note) -> Any:
    """Build LangGraph's `ToolNode` with two calls of a tool that calls a model."""
    call = caller(mode, note)

    @tool
    async def acount(name: str) -> str:
        """Count."""
        return str(await call(params(name, 1)))

    @tool
    def count(name: str) -> str:
        """Count."""
        return str(call(params(name, 1)))

    made = acount if mode.is_async else count
    calls: list[Any] = [{"name": made.name, "args": {"name": n}, "id": n} for n in "ab"]
    graph = StateGraph(State)
    graph.add_node("ask", lambda _: {"messages": [AIMessage("", tool_calls=calls)]})
    graph.add_node("tools", ToolNode([made]))
    graph.add_node("end", lambda state: {"results": [m.content for m in state["messages"][1:]]})
    return graph.add_edge(START, "ask").add_edge("ask", "tools").add_edge("tools", "end")


def reviewed(shape: str) -> Any:
    """Make the builder of a graph of plain nodes, which `review_nodes` lets ask."""

    def build(mode: Mode, note: Note) -> Any:
        def ask(state: State) -> State:
            return calling(state["params"], state["params"]["name"])

        def ask_too(state: State) -> State:
            return calling(state["params"], "too")

        def calling(given: dict[str, Any], name: str) -> State:
            mark = f"<{name} {given['n']} {given['answered']}>"
            note("call", told=[name, given["n"], given["answered"]], mark=mark, attempt=0, key="")
            if given["n"] < 2:
                raise ValueError(f"the call {mark} failed")
            return {"results": [{"n": given["n"], "name": name, "mark": mark}]}

        node = mode.colour(ask)
        if shape == "nested":
            node = StateGraph(State).add_node("inner", node).add_edge(START, "inner").compile()
        graph = StateGraph(State).add_node("ask", node)
        if shape == "send":
            made = [Send("ask", {"params": params(n, 1 if n != "b" else 2)}) for n in "abc"]
            graph.add_conditional_edges(START, lambda _: made, ["ask"])
        else:
            graph.add_edge(START, "ask")
        if shape == "parallel":
            graph.add_node("ask too", mode.colour(ask_too)).add_edge(START, "ask too")
        return review_nodes(graph, ["params"])

    return build


class _Agent:
    """An agent of LangChain, with broken arguments, a failing tool and a wrong final answer."""

    def __init__(self, note: Note) -> None:
        self._note = note

    def compile(self, *, checkpointer: Any) -> Any:
        """Compile it, as a builder."""

        def log(told: dict[str, Any]) -> None:
            ((kind, what),) = told.items()
            mark = {"Oslo": "about Oslo"}.get(what, f"sunny in {what}")
            self._note("call", told=[f"{kind} {what}"], mark=mark, attempt=0, key="")

        return traveller(log, checkpointer=checkpointer)


def touch(mode: Mode, graph: Any, config: Any, state: Any, open_: list[Any]) -> bool:
    """Update the state around a call that waits, once."""
    if "touched" in state.values or not open_:
        return False
    mode.call(graph, "update_state", config, {"touched": "yes"})
    return True


def expire(mode: Mode, graph: Any, _config: Any, _state: Any, open_: list[Any]) -> bool:
    """Let all open reviews expire."""
    if open_:
        mode.call(threads, "expire_reviews", graph)
    return bool(open_)


def _rewind(mode: Mode, graph: Any, config: Any, **to: Any) -> None:
    """Rewind the newest call: one of a process that died before may be told beside it."""
    *_, ledger = mode.call(threads, "attempts_of", graph, config)
    mode.call(threads, "rewind", graph, config, ledger=ledger, **to)


def go_back(mode: Mode, graph: Any, config: Any, _state: Any, open_: list[Any]) -> bool:
    """Rewind the first attempt, once, where the second one waits."""
    if not open_ or open_[0].attempt == 1:
        return False
    _rewind(mode, graph, config, attempt=1, params=params("a", 3))
    return True


def begin_again(mode: Mode, graph: Any, config: Any, results: list[Any]) -> bool:
    """Rewind the second attempt of a call that is over, once."""
    if results[0]["n"] != 2:
        return False
    _rewind(mode, graph, config, attempt=2, params=params("a", 5))
    return True


ONE = {"params": params("a")}
_LATE: Any = {"expires_after": 1e-6, "default_decision": respond(Output(n=0, name="", mark=""))}
_POLICY = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=KeyError)
_FORMS: dict[str, Any] = {
    "": {},
    "streamed ": {"streamed": True},
    "always ": {"review": "always"},
    "retried ": {"policy": _POLICY},
}

SCENES = {
    **{
        f"{kind}{form}": Scene(one(form, **options), ONE, forward)
        for kind, options in _FORMS.items()
        for form in ("node", "function")
    },
    **{f"nested {form}": Scene(nested(form), ONE, forward) for form in ("node", "function")},
    **{f"send {form}": Scene(sent(form), ONE, forward) for form in ("node", "function")},
    "several": Scene(several, ONE, forward),
    "by hand": Scene(by_hand, ONE, forward),
    "gather": Scene(gathered, ONE, forward),
    "tools": Scene(tools, ONE, forward),
    **{
        f"reviewed {how}": Scene(reviewed(how), ONE, forward)
        for how in ("one", "send", "nested", "parallel")
    },
    "agent": Scene(lambda _, note: _Agent(note), {"messages": [("user", "Where?")]}, forward),
}
for _form in ("node", "function"):
    SCENES[f"touched {_form}"] = Scene(one(_form), ONE, forward, first=touch)
    SCENES[f"expired {_form}"] = Scene(one(_form, **_LATE), ONE, forward, first=expire)
    SCENES[f"rewound {_form}"] = Scene(one(_form), ONE, forward, first=go_back)
    SCENES[f"begun again {_form}"] = Scene(one(_form), ONE, forward, after=begin_again)
