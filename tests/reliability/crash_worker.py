"""One life of a worker: it opens the database, takes a thread up where it is, answers, goes on.

A thread's call needs four attempts: the caller's, a hook's, and two that a person's edits make.
Every edit carries the mark of the attempt it answers, and every call notes the params it was made
with, so an answer that lands anywhere else is seen. A person who is asked again gives the same
answer again.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, Send
from typing_extensions import TypedDict

import graph_retry
from graph_retry import (
    AnswerRefused,
    AttemptContext,
    PendingReview,
    aretry_llm_call,
    create_retry_node,
    edit,
    history,
    retry_llm_call,
)
from tests.conftest import Mode
from tests.loops import Fanned, State, thread
from tests.reliability.journal import Journal, telling

GOAL = 3
LATENCY_S = 0.003
QUICK = 9
"""The item of a call that succeeds at once, in front of the one that does not."""

STYLES: dict[str, Callable[[PendingReview], dict[str, Any]]] = {
    "plain": lambda review: {},
    "attempt": lambda review: {"attempt": review.attempt},
    "review_id": lambda review: {"review_id": review.review_id},
    "title": lambda review: {"action": f"count failed (attempt {review.attempt}): ValueError"},
}
"""How a client marks an answer that it sends with `Command(resume=...)` itself."""


@dataclass(frozen=True)
class Setting:
    """One configuration of the matrix.

    `answers` is `library`, or one of `STYLES`. In a shape that begins with `retried` the node's own
    code fails at each of its places once a life, and a `RetryPolicy` runs the node again; in one
    that begins with `streamed` the answers stream.
    """

    store: str
    mode: str
    durability: str
    shape: str
    answers: str = "library"

    def __str__(self) -> str:
        parts = (self.store, self.mode, self.durability, self.shape, self.answers)
        return " ".join(parts).removesuffix(" library")


def live(setting: Setting, location: str, name: str, journal: Journal, seed: int) -> None:
    """Bring one thread to its end, unless something happens."""
    with asyncio.Runner() as runner:
        mode = Mode(setting.mode, runner)
        saver_class = telling(setting.store, setting.mode)
        saver_class.journal = journal
        journal.note("life")
        with mode.opened(saver_class.from_conn_string(location)) as saver:
            graph = _graph(setting, mode, journal, name).compile(checkpointer=saver)
            _work(setting, mode, graph, thread(name), journal, random.Random(seed))


def _work(
    setting: Setting, mode: Mode, graph: Any, config: Any, journal: Journal, draw: random.Random
) -> None:
    """Start the thread or continue it, then answer until nothing is asked any more."""
    how: Any = {"durability": setting.durability}
    own = setting.answers == "library"
    if not mode.call(graph, "get_state", config).metadata:
        journal.note("start")
        state = mode.invoke(graph, {"params": {"item": 0, "n": 0, "answer": ""}}, config, **how)
    elif own:
        state = mode.call(graph_retry, "resume", graph, config, **how)
    else:
        state = mode.invoke(graph, None, config, **how)
    while open_ := mode.call(graph_retry, "pending_reviews", graph, config):
        chosen = draw.sample(open_, draw.randint(1, len(open_)))
        answers = {review.review_id: _decide(review) for review in chosen}
        told = [{"item": review.params["item"], "attempt": review.attempt} for review in chosen]
        for each, review in zip(told, chosen, strict=True):
            journal.note("sent", **each, refused=bool(review.problem))
        if own:
            with suppress(AnswerRefused):
                state = mode.call(graph_retry, "resume", graph, config, answers=answers, **how)
        else:
            marked = {**_decide(open_[0]), **STYLES[setting.answers](open_[0])}
            state = mode.invoke(graph, Command(resume=marked), config, **how)
        for each in told:
            journal.note("acknowledged", **each)
    ledgers = mode.call(history, "attempts_of", graph, config)
    views = [[each.params_at(a["number"]) for a in each.attempts] for each in ledgers]
    journal.note("end", results=state["results"], ledgers=views, moments=journal.moments)


def _decide(review: PendingReview) -> Any:
    mark = f"answer-{review.params['item']}-{review.attempt}"
    return edit(n=review.attempt, answer=mark)


class _Branch(State, total=False):
    results: list[Any]


class _Results(TypedDict):
    results: list[Any]


class _Output(TypedDict):
    n: int
    item: int
    mark: str


def _graph(setting: Setting, mode: Mode, journal: Journal, name: str) -> Any:  # noqa: C901, PLR0915
    """Build the graph of a shape; in `send`, every other thread has branches of the node form."""

    def begin(params: dict[str, Any], context: AttemptContext) -> None:
        journal.note("call", attempt=context.attempt, key=context.idempotency_key, params=params)

    def finish(params: dict[str, Any], context: AttemptContext) -> Any:
        journal.pass_by()
        mark = f"call-{params['item']}-{context.attempt}"
        if params["n"] < GOAL:
            raise ValueError(f"{mark} is not there yet")
        return {"n": params["n"], "item": params["item"], "mark": mark}

    def model(params: dict[str, Any], context: AttemptContext) -> Any:
        begin(params, context)
        time.sleep(LATENCY_S)
        return finish(params, context)

    async def amodel(params: dict[str, Any], context: AttemptContext) -> Any:
        begin(params, context)
        await asyncio.sleep(LATENCY_S)
        return finish(params, context)

    def pieces(params: dict[str, Any], context: AttemptContext) -> Iterator[str]:
        begin(params, context)
        yield "{"
        for piece in json.dumps(finish(params, context))[1:].partition(", "):
            yield piece
            journal.pass_by()

    def stream(params: dict[str, Any], context: AttemptContext) -> Iterator[str]:
        for piece in pieces(params, context):
            yield piece
            time.sleep(LATENCY_S / 4)

    async def astream(params: dict[str, Any], context: AttemptContext) -> AsyncIterator[str]:
        for piece in pieces(params, context):
            yield piece
            await asyncio.sleep(LATENCY_S / 4)

    retried, failed = setting.shape.startswith("retried"), set[Any]()
    streamed = setting.shape.startswith("streamed")

    def fail_once(place: Any) -> None:
        """Raise, the first time that this life comes to a place where the node has own code."""
        if retried and place not in failed:
            failed.add(place)
            raise ConnectionError(f"the node's own code, after {place}")

    def hook(error: Exception, attempt: int, params: dict[str, Any]) -> Any:
        if setting.shape == "retried-node":
            fail_once(f"attempt {attempt}")
        return {**params, "n": 1, "answer": "hook"} if attempt == 1 else None

    options: Any = {"output": _Output, "name": "count", "auto_retries": 1}
    answering: list[Any] = [stream, astream] if streamed else [model, amodel]
    llm_call = answering[mode.is_async]

    def once(state: Fanned) -> Any:
        return {"results": [retry_llm_call(llm_call, state["params"], hook, **options)]}

    async def aonce(state: Fanned) -> Any:
        return {"results": [await aretry_llm_call(llm_call, state["params"], hook, **options)]}

    def twice(state: Fanned) -> Any:
        quick = retry_llm_call(llm_call, {"item": QUICK, "n": GOAL, "answer": ""}, **options)
        fail_once("the first call")
        results = [quick, *once(state)["results"]]
        fail_once("the last call")
        return {"results": results}

    async def atwice(state: Fanned) -> Any:
        first = {"item": QUICK, "n": GOAL, "answer": ""}
        quick = await aretry_llm_call(llm_call, first, **options)
        fail_once("the first call")
        results = [quick, *(await aonce(state))["results"]]
        fail_once("the last call")
        return {"results": results}

    def spread(state: Fanned) -> Any:
        width = 3 if setting.shape == "send" else 1
        return [Send("ask", {"params": {**state["params"], "item": i}}) for i in range(width)]

    branch = StateGraph(_Branch, output_schema=_Results)
    branch.add_node("ask", create_retry_node(llm_call, dict, hook, **options))
    branch.add_node("hand", lambda state: {"results": [state["output"]]})
    branch.add_edge(START, "ask")
    branch.add_edge("ask", "hand")
    node: Any = branch.compile()
    builder = StateGraph(Fanned)
    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ConnectionError)
    given: Any = {"retry_policy": policy} if retried else {}
    if setting.shape.endswith("node"):
        flat: Any = StateGraph(_Branch)
        flat.add_node("ask", create_retry_node(llm_call, dict, hook, **options), **given)
        flat.add_node("hand", lambda state: {"results": [state["output"]]})
        return flat.add_edge(START, "ask").add_edge("ask", "hand")
    if setting.shape.endswith("function"):
        node = atwice if mode.is_async else twice
    elif int(name[-1]) % 2:
        node = aonce if mode.is_async else once
    builder.add_node("ask", node, **given)
    builder.add_conditional_edges(START, spread, ["ask"])
    return builder
