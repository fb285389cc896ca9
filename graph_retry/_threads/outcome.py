"""Find out whether answers were applied, by the questions at which the run stopped."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

from graph_retry._json import is_object
from graph_retry._namespaces import are_namesakes
from graph_retry._threads.reviews import KEPT, Waiting, intervention, namespace_in, question_now
from graph_retry.errors import AnswerRefused

_LOG = logging.getLogger("graph_retry")

_NOT_MADE = "The call of `{}` that asked was not made again in this run"
_KEPT = "your answer is kept for it"
_ENDED = "and the run ended, so your answer decided nothing"


async def check_applied(
    answered: Sequence[Waiting], open_before: Collection[str], state: Any
) -> None:
    """Raise if an answer was not applied, by the result of the run.

    `open_before` are the ids of the reviews that were open before it.
    """
    questions: list[Any] = state.get("__interrupt__") or [] if is_object(state) else []
    values = [getattr(question, "value", None) or question["value"] for question in questions]
    asked = [value for value in map(intervention, values) if value is not None]
    calls = {review.namespace for review in answered}
    again = [
        value
        for value in asked
        if namespace_in(value) in calls
        and value["problem"]
        and value["review_id"] not in open_before
    ]
    by_call = {review.namespace: review for review in answered}

    def told(review: Waiting, problem: str) -> str:
        """Say which answer is meant, where several were given."""
        which = f"The answer to {review.review_id!r} (`{review.function_name}`): "
        return problem if len(answered) == 1 else which + problem

    problems = [told(by_call[namespace_in(value)], value["problem"]) for value in again]
    review_ids = [value["review_id"] for value in again]
    for review in answered:
        now = await question_now(review)
        if now == KEPT:
            not_made = _NOT_MADE.format(review.function_name)
            new = [value["note"] for value in asked if _are_namesakes(value, review.value)]
            notes = [note for note in new if note]
            if notes or not questions:
                why = f"{_KEPT}. Now {notes[0]}" if notes else _ENDED
                problems.append(told(review, f"{not_made}; {why}."))
            else:
                _LOG.warning("%s; %s.", not_made, _KEPT)
        elif asked and now and now["problem"] and now["review_id"] not in review_ids:
            # The thread shows another question first.
            problems.append(told(review, now["problem"]))
            review_ids.append(now["review_id"])
    if problems:
        raise AnswerRefused("\n".join(dict.fromkeys(problems)), review_ids=review_ids)


def _are_namesakes(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two questions are of calls with one name, made in one task."""
    return are_namesakes(namespace_in(one), namespace_in(other))
