"""Find out after a run whether its answers were applied, by the questions that are still open."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig

from graph_retry._langgraph.checkpoints import values_of, waits_for
from graph_retry._langgraph.shown import intervention, namespace_in, questions_of
from graph_retry._namespaces import are_namesakes
from graph_retry._state import ANSWER
from graph_retry._threads.graphs import is_local
from graph_retry._threads.reading import newest_of_call
from graph_retry._threads.view import Asked
from graph_retry.errors import AnswerRefused

_LOG = logging.getLogger("graph_retry")
_ANSWER_KEPT: dict[str, Any] = {}
"""A marker instead of a question: the call was not made again, and its answer is still saved."""


async def check_applied(
    graph: Any,
    config: RunnableConfig,
    answered: Sequence[Asked],
    open_before: Collection[str],
    shown: Sequence[Any],
) -> None:
    """Raise if an answer was not applied. `shown` holds the interrupt values after the run.

    `open_before` holds the ids of the reviews that were open before the run.
    """
    now = [value for value in map(intervention, shown) if value is not None]
    new = {namespace_in(each): each for each in now if each["review_id"] not in open_before}
    problems, told = list[str](), {"review_ids": list[Any](), "issues": list[Any]()}
    applied: list[str] = []
    for asked in answered:
        # A server tells only the shown questions. A local call's checkpoints tell all of them.
        again = new.get(asked.namespace) or await _question_now(graph, config, asked.namespace)
        problem = _told_kept(asked, now, is_over=not shown) if again is _ANSWER_KEPT else None
        if now and again and again["problem"]:
            problem = again["problem"]
            told["review_ids"].append(again["review_id"])
            told["issues"] += again.get("answer_issues", [])  # An older server omits them.
        whose = f"{asked.review_id!r} (`{asked.name}`)"
        if problem:
            told_whose = f"The answer to {whose}: " if len(answered) > 1 else ""
            problems.append(f"{told_whose}{problem}")
        elif again is not _ANSWER_KEPT:
            applied.append(whose)
    if problems:
        problems += [f"Applied: the answer to {', '.join(applied)}."] if applied else []
        raise AnswerRefused("\n".join(dict.fromkeys(problems)), **told)


def _told_kept(answered: Asked, now: Sequence[dict[str, Any]], *, is_over: bool) -> str | None:
    """Return why an answer is still unused; None (and a log line) if a later run may use it."""
    told = [(each["note"], namespace_in(each)) for each in now]
    notes = [note for note, place in told if note and are_namesakes(place, answered.namespace)]
    what = f"The call of `{answered.name}` that asked was not made again in this run"
    if notes:
        return f"{what}; your answer is kept for it. Now {notes[0]}."
    if is_over:
        return f"{what}; and the run ended, so your answer decided nothing."
    _LOG.warning("%s; your answer is kept for it.", what)
    return None


async def _question_now(
    graph: Any, config: RunnableConfig, namespace: str
) -> dict[str, Any] | None:
    """Return the question that a call asks now, read from its own checkpoints (not on a server)."""
    call = await newest_of_call(graph, config, namespace) if is_local(graph) else None
    if call is None:
        return None
    if values_of(call).get(ANSWER) is not None:
        return _ANSWER_KEPT
    for question in questions_of(call):
        if waits_for(call, question.get("review_id")):
            return question
    return None
