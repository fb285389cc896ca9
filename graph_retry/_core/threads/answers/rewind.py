"""Go back to an earlier attempt of a call, and continue from there with other params.

A call that waits for a person gets an answer that names the earlier attempt. For a finished call,
the thread is forked: the checkpoint before the call is copied to the end of the thread, and the
graph runs from the copy.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, NotRequired, Unpack, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.pregel.remote import RemoteException
from langgraph.types import StateSnapshot
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict

from graph_retry._core.ground.functions.arguments import async_twin, in_sync
from graph_retry._core.ground.issues import issue, json_problem, literal
from graph_retry._core.ground.json import is_object
from graph_retry._core.langgraph.fork import (
    COPY,
    FORK,
    continued_in,
    fork_note,
    put_fork,
)
from graph_retry._core.langgraph.storage.checkpoints import list_checkpoints, namespace_of, place_of
from graph_retry._core.state.position import ANSWER, LOOP
from graph_retry._core.state.rewinding import REWIND, RewindRefused, reopened
from graph_retry._core.threads.answers.resuming import resuming
from graph_retry._core.threads.saved.graphs import (
    at_newest,
    check_compiled,
    get_state,
    invoke,
    is_local,
    saver_of,
    thread_of,
    update_state,
)
from graph_retry._core.threads.saved.ledgers import read_ledgers
from graph_retry._core.threads.saved.one_call import Ledger
from graph_retry._core.threads.saved.thread_state import open_questions
from graph_retry._core.threads.server.runs import RemoteRuns, is_error_of
from graph_retry.errors import AnswerRefused
from graph_retry.lossless._ground import as_repr, error_text, text_of
from graph_retry.records import Issue

_LOG = logging.getLogger("graph_retry")

_MOST_TOLD = 10
"""Maximum number of calls that an error message lists."""

_OfCall = Annotated[
    Ledger, "a ledger of `attempts_of` (and the attempt's number by name: `attempt=2`)"
]


class Change(TypedDict):
    """The attempt to go back to, and what to change in it.

    attempt: The number of the attempt (the first is 1). Without a `decision`, it is made again.
    params: The fields to change in the params of this attempt (default: none).
    decision: Instead of a new attempt, a new answer to the attempt's review, such as `reject()`.
    reason: The reason, for the ledger.
    """

    attempt: int
    params: NotRequired[Any]
    decision: NotRequired[Mapping[str, Any]]
    reason: NotRequired[str]


@in_sync
async def rewind(
    graph: Any,
    config: RunnableConfig,
    ledger: _OfCall | None = None,
    *,
    context: Any = None,
    **change: Unpack[Change],
) -> Any:
    """Make an earlier attempt again with other params, or answer its review differently.

    The ledger has all attempts of a call. The attempts before the rewound attempt stay in the
    ledger, and are not made again. The attempts after it leave the ledger, but their checkpoints
    stay. The author of the new attempt is `rewind`.

    A call can be rewound while it is paused and after it has finished, also in a subgraph or a
    `Send` branch. If the thread has made several calls, pass the `ledger` of one of them, from
    `attempts_of`. `context` is LangGraph's `context` for the new run.

    To rewind a finished call, `rewind` forks the thread, and runs the thread from the fork. Later
    steps run again, but the other calls of the same step keep their attempts. If this run crashes
    on a server, other calls of the step that the run had not yet reached lose their attempts and
    begin anew.

    Raises:
        ValueError: If the attempt, its checkpoint or the call does not exist. For a finished call,
            also if the new params are not valid, or if the node, run again, makes the call with
            other first params than the recorded ones. The thread then keeps its state.
        AnswerRefused: If a paused call refuses the change and asks again, or if the run from the
            fork did not make the finished call again. In both cases the thread is as it was before.
        TypeError: If `attempt` is missing, if `params` and `decision` are both given, or if
            `ledger` is not a `Ledger`.

    Example:
        >>> from graph_retry import edit, resume
        >>> from graph_retry.testing import waiting_thread
        >>> graph, config = waiting_thread()
        >>> _ = resume(graph, config, edit(value="more"))
        >>> rewind(graph, config, attempt=1, params="3")
        3
    """
    check_compiled(graph)
    answer = _answer(change)
    thread_of(config)
    config = at_newest(config)
    if ledger is None and is_local(graph):
        ledger = _only(await read_ledgers(graph, config))
    if ledger is not None:
        ledger.at(change["attempt"])
    questions = await open_questions(graph, config)
    if ledger is not None:
        questions = [asked for asked in questions if asked.namespace == ledger.namespace]
    if len(questions) == 1:
        # The attempt is checked here as well, because a server may hide the ledger checked above.
        made = questions[0].value["attempt_count"]
        if not 1 <= change["attempt"] <= made:
            raise ValueError(
                f"`attempt` is {as_repr(change['attempt'])}, but the call has made {made}: "
                f"give a number from 1 to {made}."
            )
        answers = {questions[0].review_id: answer}
        return await resuming(graph, config, answers=answers, context=context)
    if questions:
        raise ValueError(
            f"the thread has {len(questions)} open reviews: give the `ledger` of one call, or "
            f"answer one review with `{REWIND}` in the answer."
        )
    if ledger is None:
        calls = await read_ledgers(graph, config)
        ledger = _only(
            calls, "; a newer server shows all calls if the graph's state has the key `attempts`"
        )
        if ledger.attempts:
            ledger.at(change["attempt"])
    return await _rewound(graph, config, ledger, answer, context)


arewind = async_twin(rewind)


def _answer(change: Change) -> dict[str, Any]:
    params, decision = change.get("params"), change.get("decision")
    if params is not None and decision is not None:
        raise TypeError(
            "give either `params` (to make the attempt again) or a `decision`, not both."
        )
    answer: Mapping[str, Any] = {"type": "approve"}
    if params is not None:
        answer = {"type": "edit", "params": _as_json("params", params)}
    elif decision is not None:
        answer = _as_json("decision", decision)
    why = {"message": change["reason"]} if "reason" in change else {}
    back = {"attempt": change["attempt"], "again": decision is None}
    return {**answer, **why, REWIND: back}


def _as_json(name: str, value: Any) -> Any:
    problem: Issue | None
    try:
        value = to_jsonable_python(value, inf_nan_mode="constants")
        problem = json_problem(value)
    except PydanticSerializationError as error:
        problem = issue("", text_of(error), "not_json")
    if problem is None:
        return value
    how = "the fields to change" if name == "params" else "the result of `edit(…)` or `reject(…)`"
    why = f"{problem['path']}: {problem['message']:.200}".removeprefix(": ")
    raise TypeError(f"`{name}` cannot be saved as JSON ({why}): give {how}.")


def _only(ledgers: list[Ledger], hint: str = "") -> Ledger:
    current = [ledger for ledger in ledgers if ledger.current]
    if len(current) == 1:
        return current[0]
    if not current:
        raise ValueError(
            "the thread has no calls that can be read here: check the `thread_id` in "
            f"`config`{hint}."
        )
    known = "; ".join(map(_told_apart, current[:_MOST_TOLD]))
    more = f"; and {len(current) - _MOST_TOLD} more" if len(current) > _MOST_TOLD else ""
    raise ValueError(
        f"the thread made {len(current)} calls: {known}{more}. Pass one as `ledger=`, from the "
        f"ledgers that `attempts_of` returns{hint}."
    )


def _told_apart(ledger: Ledger) -> str:
    with suppress(ValueError):  # The first attempt, or its params, may not be shown.
        first = literal(ledger.params_at(1), 120)
        return f"{ledger.title} with the params {first} ({ledger.namespace})"
    return f"{ledger.title} ({ledger.namespace})"


async def _rewound(
    graph: Any,
    config: RunnableConfig,
    ledger: Ledger,
    answer: dict[str, Any],
    context: Any,
) -> Any:
    """Reopen a finished call, apply an answer to it, and continue the thread from there.

    Raises:
        ValueError: If the checkpoint from which the call was made was deleted, or if the call
            refuses the answer. The thread is then unchanged.
    """
    head, fork, there = await get_state(graph, config), None, config
    old = await _made_from(graph, config, ledger) if ledger.namespace else head
    try:
        if ledger.namespace:
            note = fork_note(ledger.root, ledger.namespace, answer)
            there, fork = await _fork(graph, config, old.config, note)
        else:  # The retry node is the outermost graph, so its own state is reopened.
            update = {LOOP: reopened(head.values), ANSWER: {"value": answer}}
            await update_state(graph, config, update, as_node="revise")
        state = await _run_on(graph, there, context)
    except (ValueError, RemoteException) as error:
        if not is_error_of(RewindRefused, error):
            raise
        await _restore(graph, config, head, context)
        told: Any = error.args[0]
        raise ValueError(told["message"] if is_object(told) else error_text(error)) from error
    saver = saver_of(graph)
    if saver is not None and fork is not None:
        saved = await list_checkpoints(saver, config)
        # While the fork is the newest checkpoint, its step has not ended and may make the call.
        is_over = next(each for each in saved if not namespace_of(each)).checkpoint["id"] != fork
        if is_over and ledger.namespace not in continued_in(saved, {fork}):
            await _restore(graph, config, head, context)
            raise AnswerRefused(
                f"The thread ran again from the checkpoint of `{ledger.title}`, but did not "
                "make this call again. Your change had no effect, and the thread has its "
                "earlier state again."
            )
    return state


async def _fork(
    graph: Any, config: RunnableConfig, old: RunnableConfig, note: str
) -> tuple[RunnableConfig, str | None]:
    """Fork a thread at `old`; return the next run's config and the copy's id (None on a server)."""
    saver = saver_of(graph)
    if saver is not None:
        return config, await put_fork(saver, old, note)
    await update_state(graph, old, None, as_node=COPY)
    # The run of a server continues from the fork, and gets the note in its config.
    there = {**config.get("configurable", {}), FORK: [note]}
    return cast("RunnableConfig", {**config, "configurable": there}), None


async def _made_from(graph: Any, config: RunnableConfig, ledger: Ledger) -> StateSnapshot:
    origin = place_of(thread_of(config), checkpoint_id=ledger.root)
    old: StateSnapshot | None = None
    if ledger.root:
        with suppress(RemoteException, ValueError):
            old = await get_state(graph, origin)
    if old is None or not old.next:
        raise ValueError(
            f"the call `{ledger.title}` has ended, and the checkpoint from which it was made "
            "was deleted. Give the node `attempts` in its input, or make the call again."
        )
    return old


async def _restore(graph: Any, config: RunnableConfig, head: StateSnapshot, context: Any) -> None:
    """Undo a fork by a second fork, from the earlier end of the thread. Waiting calls ask again."""
    root = head.config.get("configurable", {})["checkpoint_id"]
    there, _ = await _fork(graph, config, head.config, fork_note(root))
    if head.next:
        try:
            await _run_on(graph, there, context)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 - the refusal is the error to raise
            # The run ends as it did before the rewind. If it failed then, it fails again.
            _LOG.debug("the restored thread ends with an error again: %r", error)


async def _run_on(graph: Any, config: RunnableConfig, context: Any) -> Any:
    if is_local(graph):
        return await invoke(graph, None, config, context=context)
    return await RemoteRuns(graph, config, context=context).answer({}, {})
