"""Answer the reviews of a thread so that no answer is lost, doubled or taken for another's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, Durability

from graph_retry.deadline import EXPIRE, is_over, now
from graph_retry.engine.state import ANSWER
from graph_retry.errors import StaleDecision
from graph_retry.flow import Ask, Flow, Pause, adrive, drive
from graph_retry.hidden import unhide
from graph_retry.history import is_local
from graph_retry.params.jsonlike import is_object
from graph_retry.runner import Runner
from graph_retry.waiting import Waiting, find_reviews, thread_of, who_answered

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.5


class PendingReview(Waiting):
    """A review a thread waits for; `answer` decides it."""

    def answer(self, decision: Any) -> Any:
        """Answer this review and run the thread on; see `resume`."""
        return resume(self.graph, self.config, answers={self.review_id: decision})

    async def aanswer(self, decision: Any) -> Any:
        """Answer this review and run the thread on, from async code; see `aresume`."""
        return await aresume(self.graph, self.config, answers={self.review_id: decision})


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
    return drive(find_reviews(graph, config, PendingReview))


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
    return await adrive(find_reviews(graph, config, PendingReview))


def resume(
    graph: Any,
    config: RunnableConfig,
    decision: Any = None,
    *,
    answers: Mapping[str, Any] | None = None,
    durability: Durability | None = None,
    wait: float = 600.0,
) -> Any:
    """Answer a thread's review and run the thread on.

    The decision is written to the thread before it is applied: if the process dies, calling
    `resume(graph, config)` without a decision continues where it stopped. The first answer wins:
    a lock on the thread (in this process, beside a SQLite file, in PostgreSQL, on a server) is
    held until the graph stops again. An unusable decision is asked again and never raises.

    Args:
        graph: The compiled graph, or a `RemoteGraph`.
        config: The config with the `thread_id`.
        decision: What `approve()`, `edit()`, `reject()` or `respond()` make, or any other accepted
            form. Needs exactly one open review, unless it names its `review_id`.
        answers: Decisions by `review_id` (or interrupt id) instead, for some or all open reviews.
        durability: LangGraph's `durability` for the run; with `sync` not even a call finished in
            the last milliseconds before a crash is repeated.
        wait: Seconds to wait while somebody else runs the thread and the review is still open.

    Returns:
        The graph's state, as `graph.invoke` returns it.

    Raises:
        StaleDecision: If the review is no longer open: somebody else answered it, or it expired.
        TimeoutError: If the thread is still run by somebody else after `wait` seconds.
        ValueError: If `decision` could mean more than one open review, or there is no graph.

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
    return drive(resuming(graph, config, decision, answers, durability, wait))


async def aresume(
    graph: Any,
    config: RunnableConfig,
    decision: Any = None,
    *,
    answers: Mapping[str, Any] | None = None,
    durability: Durability | None = None,
    wait: float = 600.0,
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
    return await adrive(resuming(graph, config, decision, answers, durability, wait))


def resuming(
    graph: Any,
    config: RunnableConfig,
    decision: Any,
    answers: Mapping[str, Any] | None,
    durability: Durability | None,
    wait: float,
) -> Flow[Any]:
    """Do what `resume` does, inside a flow."""
    thread_id = thread_of(config)
    if decision is not None and answers is not None:
        raise TypeError("give `decision` for one review or `answers` for several, not both.")
    if thread_id is None:
        raise ValueError('`config` names no thread: pass {"configurable": {"thread_id": …}}.')
    if graph is None:
        raise ValueError(
            "`graph` is None, as in a review that was listed from a checkpointer alone: "
            "pass the graph that asked."
        )
    if decision is not None:  # it is for the review open now, not for one that follows it
        answers = yield from _bound(graph, config, decision)
    runner = Runner(getattr(graph, "checkpointer", None), thread_id)
    try:
        pause, waited = _FIRST_PAUSE_S, 0.0
        while not (yield from runner.take()):
            yield from _match(graph, config, answers)
            if waited >= wait:
                raise TimeoutError(
                    f"thread {thread_id!r} is still run by somebody else after `wait` = {wait} s; "
                    "nothing was written."
                )
            yield Pause(pause)
            pause, waited = min(2 * pause, _LONGEST_PAUSE_S), waited + pause
        chosen = yield from _match(graph, config, answers)
        if any(review.hidden for review, _ in chosen) or not chosen:
            yield from unhide(graph, config)
            chosen = yield from _match(graph, config, answers)
        state = yield from _apply(graph, config, chosen, durability)
    finally:
        runner.leave()
    late = [review for review, given in chosen if is_over(review.expires_at) and not _sweeps(given)]
    if late:
        raise StaleDecision(
            f"review {late[0].review_id!r} expired at {late[0].expires_at}: its default decision "
            "was applied, not your answer."
        )
    return state


def _apply(
    graph: Any,
    config: RunnableConfig,
    chosen: Sequence[tuple[Waiting, Any]],
    durability: Durability | None,
) -> Flow[Any]:
    """Write the answers down, then run the thread on."""
    by_id: dict[str, Any] = {}
    for review, given in chosen:
        marked = _marked(given, review)
        if review.call_config is None:
            by_id[review.interrupt_id] = marked
        else:
            update = {ANSWER: {"value": marked, "at": now()}}
            yield Ask(graph, "update_state", (review.call_config, update), {"as_node": "review"})
    go_on: Command[Any] | None = Command(resume=by_id) if by_id else None
    options: dict[str, Any] = {} if durability is None else {"durability": durability}
    if not is_local(graph):
        options["multitask_strategy"] = "reject"
    try:
        return (yield Ask(graph, "invoke", (go_on, config), options))
    except Exception as error:
        if getattr(getattr(error, "response", None), "status_code", None) != 409:
            raise
        raise StaleDecision(
            f"thread {thread_of(config)!r} is being run on the server, perhaps with another answer "
            "to this review: look at it again."
        ) from error


def _bound(graph: Any, config: RunnableConfig, decision: Any) -> Flow[dict[str, Any]]:
    """Return a decision by the id of the review it is meant for."""
    named = cast("Any", decision).get("review_id") if isinstance(decision, Mapping) else None
    if named is not None:
        return {str(named): decision}
    thread_id = thread_of(config)
    reviews = yield from find_reviews(graph, config, Waiting)
    if len(reviews) > 1:
        ids = ", ".join(f"{review.review_id} ({review.function_name})" for review in reviews)
        raise ValueError(
            f"thread {thread_id!r} has {len(reviews)} open reviews: give "
            f"`answers={{review_id: decision}}` for some of {ids}."
        )
    if not reviews:
        told = yield from who_answered(graph, config, None)
        raise StaleDecision(f"thread {thread_id!r} has no open review: {told}.")
    return {reviews[0].review_id: decision}


def _match(
    graph: Any, config: RunnableConfig, answers: Mapping[str, Any] | None
) -> Flow[list[tuple[Waiting, Any]]]:
    """Pair answers with open reviews, before any of them is written down."""
    if not answers:
        return []
    reviews = yield from find_reviews(graph, config, Waiting)
    places = {review.interrupt_id: review for review in reviews}
    places |= {review.review_id: review for review in reviews}
    for name in answers:
        if name not in places:
            told = yield from who_answered(graph, config, name)
            open_ = ", ".join(review.review_id for review in reviews) or "none"
            raise StaleDecision(
                f"review {name!r} is not open on thread {thread_of(config)!r} (open: {open_}): "
                f"{told}."
            )
    return [(places[name], given) for name, given in answers.items()]


def _sweeps(decision: Any) -> bool:
    return is_object(decision) and decision.get("type") == EXPIRE


def _marked(decision: Any, review: Waiting) -> Any:
    """Bind a canonical decision to its review, so that it can never be taken for another's."""
    if isinstance(decision, Mapping) and "type" in decision:
        own = {"review_id": review.review_id, "channel": "python"}
        return {**own, **cast("Mapping[str, Any]", decision)}
    return cast("Any", decision)
