"""Find the reviews a thread waits for, and answer them so that no answer is lost."""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from weakref import WeakValueDictionary

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.pregel import Pregel
from langgraph.types import Command, Durability, StateSnapshot

from graph_retry.engine.state import ANSWER, LOOP, OpenReview, loop_of
from graph_retry.errors import StaleDecision
from graph_retry.flow import Ask, Flow, Pause, adrive, drive
from graph_retry.params.jsonlike import is_array
from graph_retry.records import Attempt
from graph_retry.review.shown import Review, parts_of

_runners: WeakValueDictionary[str, Any] = WeakValueDictionary()
_POLL_S = 0.005


@dataclass(frozen=True, kw_only=True)
class PendingReview(Review):
    """A review a thread waits for; `answer` decides it."""

    interrupt_id: str
    graph: Any = field(repr=False)
    config: RunnableConfig = field(repr=False)
    call_config: RunnableConfig | None = field(repr=False)

    def answer(self, decision: Any) -> Any:
        """Answer this review and run the thread on; see `resume`."""
        return resume(self.graph, self.config, answers={self.review_id: decision})


def pending_reviews(graph: Any, config: RunnableConfig) -> list[PendingReview]:
    """List the reviews a thread waits for, in the order they were asked.

    Works for node-form and function-form calls, several at once, and on a `RemoteGraph`.

    Example:
        >>> from graph_retry import create_retry_node
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.graph import StateGraph
        >>> from typing import Any, TypedDict
        >>> class State(TypedDict):
        ...     params: dict[str, Any]
        >>> builder = StateGraph(State)
        >>> node = create_retry_node(lambda params: "no", dict, output=int, name="count")
        >>> _ = builder.add_node("count", node).set_entry_point("count")
        >>> graph = builder.compile(checkpointer=InMemorySaver())
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> _ = graph.invoke({"params": {"prompt": "how many?"}}, config)
        >>> [(review.function_name, review.attempt) for review in pending_reviews(graph, config)]
        [('count', 1)]
    """
    return drive(_find(graph, config))


async def apending_reviews(graph: Any, config: RunnableConfig) -> list[PendingReview]:
    """Do what `pending_reviews` does, from async code; see `aresume` for an example.

    Example:
        >>> import asyncio
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... async def idle(given):
        ...     return given
        >>> asyncio.run(apending_reviews(idle, {"configurable": {"thread_id": "1"}}))
        []
    """
    return await adrive(_find(graph, config))


def _find(graph: Any, config: RunnableConfig) -> Flow[list[PendingReview]]:
    """Read a thread's state and return its open reviews."""
    snapshot: StateSnapshot = yield Ask(graph, "get_state", (config,), {"subgraphs": True})
    calls = dict(_calls(snapshot)) if isinstance(graph, Pregel) else {}
    reviews: list[PendingReview] = []
    for question in snapshot.interrupts:
        if not isinstance(question.value, dict):
            continue
        value = cast("dict[str, Any]", question.value)
        if value.get("type") != "llm_intervention":
            continue
        call = calls.get(question.id)
        values = call.values if call else (yield from _saved_call(graph, config, value))
        # LangGraph shows a question until its node has ended: an answered one while its answer
        # is applied, too, and after a crash on the way.
        if values is not None and not _is_open(values, value["review_id"]):
            continue
        review = PendingReview(
            interrupt_id=question.id,
            graph=graph,
            config=config,
            call_config=None if call is None else call.config,
            **parts_of(value, _ledger(values or {})),
        )
        reviews.append(review)
    return reviews


def _calls(snapshot: StateSnapshot) -> Iterator[tuple[str, StateSnapshot]]:
    """Walk down to the node-form calls, whose state a decision can be written to."""
    for task in snapshot.tasks:
        inner = task.state if isinstance(task.state, StateSnapshot) else snapshot
        if isinstance(inner.values, dict) and LOOP in inner.values:
            for question in task.interrupts:
                yield question.id, inner
        elif inner is not snapshot:
            yield from _calls(inner)


def _saved_call(
    graph: Any, config: RunnableConfig, value: dict[str, Any]
) -> Flow[dict[str, Any] | None]:
    """Read a function-form call's state, which the graph itself does not show."""
    local = isinstance(graph, Pregel) and isinstance(graph.checkpointer, BaseCheckpointSaver)
    if not local:
        return None
    thread_id = config.get("configurable", {}).get("thread_id")
    place = {"thread_id": thread_id, "checkpoint_ns": value["checkpoint_ns"]}
    saved: CheckpointTuple | None = yield Ask(
        graph.checkpointer, "get_tuple", ({"configurable": place},)
    )
    return None if saved is None else saved.checkpoint["channel_values"]


def _is_open(values: Mapping[str, Any], review_id: str) -> bool:
    asked: OpenReview | None = loop_of(values)["review"]
    return values.get(ANSWER) is None and asked is not None and asked["review_id"] == review_id


def _ledger(values: dict[str, Any]) -> list[Attempt]:
    """Find the ledger among state values, whatever its key is called."""
    for value in values.values():
        records = value if is_array(value) else []
        if records and isinstance(records[-1], dict) and "params_patch" in records[-1]:
            return records
    return []


def resume(
    graph: Any,
    config: RunnableConfig,
    decision: Any = None,
    *,
    answers: Mapping[str, Any] | None = None,
    durability: Durability | None = None,
) -> Any:
    """Answer a thread's review and run the thread on.

    The decision is written to the thread before it is applied: if the process dies, calling
    `resume(graph, config)` without a decision continues where it stopped. One answer at a time is
    applied to a thread by this process; an unusable decision is asked again and never raises.

    Args:
        graph: The compiled graph, or a `RemoteGraph`.
        config: The config with the `thread_id`.
        decision: What `approve()`, `edit()`, `reject()` or `respond()` make, or any other accepted
            form. Needs exactly one open review, unless it names its `review_id`.
        answers: Decisions by `review_id` (or interrupt id) instead, for some or all open reviews.
        durability: LangGraph's `durability` for the run; with `sync` not even a call finished in
            the last milliseconds before a crash is repeated.

    Returns:
        The graph's state, as `graph.invoke` returns it.

    Raises:
        StaleDecision: If the review is no longer open.
        ValueError: If `decision` could mean more than one open review.

    Example:
        >>> from graph_retry import create_retry_node, edit, resume
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.graph import StateGraph
        >>> from typing import Any, TypedDict
        >>> class State(TypedDict):
        ...     params: dict[str, Any]
        ...     output: Any
        >>> builder = StateGraph(State)
        >>> node = create_retry_node(lambda params: params["prompt"], dict, output=int)
        >>> _ = builder.add_node("count", node).set_entry_point("count")
        >>> graph = builder.compile(checkpointer=InMemorySaver())
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> _ = graph.invoke({"params": {"prompt": "many"}}, config)
        >>> resume(graph, config, edit(prompt="3"))["output"]
        3
    """
    return drive(_resume(graph, config, decision, answers, durability))


async def aresume(
    graph: Any,
    config: RunnableConfig,
    decision: Any = None,
    *,
    answers: Mapping[str, Any] | None = None,
    durability: Durability | None = None,
) -> Any:
    """Do what `resume` does, from async code.

    Example:
        >>> import asyncio
        >>> from graph_retry import aretry_llm_call, edit
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... async def count(prompt):
        ...     return await aretry_llm_call(lambda given: given, prompt, output=int)
        >>> async def review():
        ...     config = {"configurable": {"thread_id": "1"}}
        ...     await count.ainvoke("many", config)
        ...     print([review.attempt for review in await apending_reviews(count, config)])
        ...     return await aresume(count, config, edit(value="3"))
        >>> asyncio.run(review())
        [1]
        3
    """
    return await adrive(_resume(graph, config, decision, answers, durability))


def _resume(
    graph: Any,
    config: RunnableConfig,
    decision: Any,
    answers: Mapping[str, Any] | None,
    durability: Durability | None,
) -> Flow[Any]:
    if decision is not None and answers is not None:
        msg = "give `decision` for one review or `answers` for several, not both."
        raise TypeError(msg)
    thread_id = str(config.get("configurable", {}).get("thread_id"))
    runner = _runners.setdefault(thread_id, threading.Lock())
    while not runner.acquire(blocking=False):
        yield Pause(_POLL_S)
    try:
        by_id: dict[str, Any] = {}
        if decision is not None or answers is not None:
            reviews: list[PendingReview] = yield from _find(graph, config)
            for review, given in _match(thread_id, reviews, decision, answers):
                marked = _marked(given, review)
                if review.call_config is None:
                    by_id[review.interrupt_id] = marked
                else:
                    update = {ANSWER: {"value": marked}}
                    place = (review.call_config, update)
                    yield Ask(graph, "update_state", place, {"as_node": "review"})
        go_on: Command[Any] | None = Command(resume=by_id) if by_id else None
        options = {} if durability is None else {"durability": durability}
        return (yield Ask(graph, "invoke", (go_on, config), options))
    finally:
        runner.release()


def _match(
    thread_id: str,
    reviews: list[PendingReview],
    decision: Any,
    answers: Mapping[str, Any] | None,
) -> list[tuple[PendingReview, Any]]:
    """Pair decisions with open reviews, before any of them is written down."""
    if answers is None:
        named = cast("Any", decision).get("review_id") if isinstance(decision, Mapping) else None
        if named is None and len(reviews) > 1:
            ids = ", ".join(f"{review.review_id} ({review.function_name})" for review in reviews)
            msg = (
                f"thread {thread_id!r} has {len(reviews)} open reviews: give "
                f"`answers={{review_id: decision}}` for some of {ids}."
            )
            raise ValueError(msg)
        if named is None and not reviews:
            msg = f"thread {thread_id!r} has no open review: it was answered, or never asked."
            raise StaleDecision(msg)
        answers = {named or reviews[0].review_id: decision}
    places = {review.interrupt_id: review for review in reviews}
    places |= {review.review_id: review for review in reviews}
    for name in answers:
        if name not in places:
            open_ = ", ".join(review.review_id for review in reviews) or "none"
            msg = (
                f"review {name!r} is not open on thread {thread_id!r} (open: {open_}); it was "
                "answered already, or belongs to another thread."
            )
            raise StaleDecision(msg)
    return [(places[name], given) for name, given in answers.items()]


def _marked(decision: Any, review: PendingReview) -> Any:
    """Bind a canonical decision to its review, so that it can never be taken for another's."""
    if isinstance(decision, Mapping) and "type" in decision:
        return {"review_id": review.review_id, **cast("Mapping[str, Any]", decision)}
    return cast("Any", decision)
