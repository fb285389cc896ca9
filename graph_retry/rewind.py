"""Go back to an earlier attempt of a thread, and continue from there with other params."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, Unpack

from langchain_core.runnables import RunnableConfig
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict

from graph_retry._arguments import checked
from graph_retry._awaiting import run_async, run_sync, with_async_twin
from graph_retry._going_back import REWIND
from graph_retry._threads.config import check_thread
from graph_retry._threads.forking import go_back
from graph_retry._threads.graphs import is_local
from graph_retry._threads.reading import open_questions, read_ledgers
from graph_retry._threads.resuming import resuming
from graph_retry.ledger import Ledger

__all__ = ["Change", "arewind", "rewind"]


_OfCall = Annotated[
    Ledger, "one of `attempts_of`, and the attempt's number by name, as `attempt=2`"
]


class Change(TypedDict):
    """The attempt to go back to, and the changes to it.

    attempt: The number of the attempt to make again; the first is 1. With a `decision`, the attempt
        is not made again: its review gets the decision.
    params: The fields to change in that attempt's params (default: none).
    decision: The new answer to the review of that attempt, such as `reject()`.
    reason: The reason, for the ledger.
    """

    attempt: int
    params: NotRequired[Any]
    decision: NotRequired[Mapping[str, Any]]
    reason: NotRequired[str]


@checked
@with_async_twin
def rewind(
    graph: Any,
    config: RunnableConfig,
    ledger: _OfCall | None = None,
    *,
    context: Any = None,
    **change: Unpack[Change],
) -> Any:
    """Make an earlier attempt again with other params, or answer its review differently.

    Earlier attempts stay in the ledger and are not made again. Later attempts leave the ledger, but
    their checkpoints stay. The author of the new attempt is `rewind`.

    A call can be rewound while it is paused and after it has finished. On a server, a call in a
    subgraph can be rewound only while it is paused. If the thread made several calls, pass the
    `ledger` of one of them, from `attempts_of`. `context` is LangGraph's `context` for the new run.

    Raises:
        ValueError: If the attempt or call does not exist, its checkpoint is gone, or the params do
            not fit a finished call. (A paused call asks again instead.)
        TypeError: If `attempt` is missing, `params` and `decision` are both given, or `ledger` is
            not a `Ledger`.

    Example:
        >>> from graph_retry import edit, resume, retry_llm_call
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def count(prompt):
        ...     return retry_llm_call(lambda given: given, prompt, output=int)
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> _ = count.invoke("many", config), resume(count, config, edit(value="more"))
        >>> rewind(count, config, attempt=1, params="3")
        3
    """
    return run_sync(_rewind(graph, config, ledger, context, change))


@checked
async def arewind(
    graph: Any,
    config: RunnableConfig,
    ledger: _OfCall | None = None,
    *,
    context: Any = None,
    **change: Unpack[Change],
) -> Any:
    """Do what `rewind` does, from async code."""
    return await run_async(_rewind(graph, config, ledger, context, change))


async def _rewind(
    graph: Any, config: RunnableConfig, ledger: Ledger | None, context: Any, change: Change
) -> Any:
    check_thread(graph, config)
    answer = _answer(change)
    here = config.get("configurable", {})
    config = {**config, "configurable": {key: here[key] for key in here if key != "checkpoint_id"}}
    if ledger is None and is_local(graph):
        ledger = _only(await read_ledgers(graph, config))
    if ledger is not None:
        ledger.at(change["attempt"])
    questions = await open_questions(graph, config)
    if ledger is not None:
        questions = [asked for asked in questions if asked.namespace == ledger.namespace]
    if len(questions) == 1:
        # Checked here as well, because a server may not show the ledger that was checked above.
        made = questions[0].value["attempt_count"]
        if not 1 <= change["attempt"] <= made:
            raise ValueError(f"`attempt` is {change['attempt']!r}, and the call has {made}.")
        answers = {questions[0].review_id: answer}
        return await resuming(graph, config, answers=answers, context=context)
    if questions:
        raise ValueError(
            f"the thread has {len(questions)} open reviews: pass the `ledger` of the call that is "
            f"meant, or answer one with `{REWIND}` in it."
        )
    if ledger is None:
        calls = await read_ledgers(graph, config)
        ledger = _only(calls, " (a newer server, if the graph's state has the key `attempts`)")
        if ledger.attempts:
            ledger.at(change["attempt"])
    return await go_back(graph, config, ledger, answer, context)


def _answer(change: Change) -> dict[str, Any]:
    params, decision = change.get("params"), change.get("decision")
    if params is not None and decision is not None:
        raise TypeError("give `params` to make the attempt again or a `decision`, not both.")
    answer: Mapping[str, Any] = {"type": "approve"}
    if params is not None:
        answer = {"type": "edit", "params": _as_json("params", params)}
    elif decision is not None:
        answer = _as_json("decision", decision)
    why = {"message": change["reason"]} if "reason" in change else {}
    back = {"attempt": change["attempt"], "again": decision is None}
    return {**answer, **why, REWIND: back}


def _as_json(name: str, value: Any) -> Any:
    try:
        return to_jsonable_python(value, inf_nan_mode="constants")
    except PydanticSerializationError as error:
        how = (
            "the fields to change" if name == "params" else "what `edit(…)` or `reject(…)` returns"
        )
        raise TypeError(f"`{name}` cannot be saved as JSON ({error!s:.200}): give {how}.") from None


def _only(ledgers: list[Ledger], hint: str = "") -> Ledger:
    current = [ledger for ledger in ledgers if ledger.current]
    if len(current) == 1:
        return current[0]
    titles = ", ".join(f"{ledger.title} ({ledger.namespace})" for ledger in current) or "none"
    raise ValueError(
        f"the thread made {len(current)} calls: {titles}; "
        f"pass `ledger=`, one of those that `attempts_of` returns{hint}."
    )
