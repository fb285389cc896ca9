"""Tell what became of answers, by the questions that the run after them stopped at."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from graph_retry._json import is_object
from graph_retry._threads.reviews import Waiting, intervention, question_now
from graph_retry.errors import AnswerRefused

_ANOTHER_CALL = (
    "The call of `{}` that asked was not made again, so your answer was not taken: the node now "
    "makes another one, with another `name` or `key=` or other params."
)


async def check_applied(
    answered: Sequence[Waiting], open_before: Collection[str], state: Any
) -> None:
    """Raise if an answer was not applied, by what the run returned.

    `open_before` are the ids of the reviews that were open before it.
    """
    questions: list[Any] = state.get("__interrupt__") or [] if is_object(state) else []
    values = [getattr(question, "value", None) or question["value"] for question in questions]
    asked = [value for value in map(intervention, values) if value is not None]
    calls = {review.value["checkpoint_ns"] for review in answered}
    again = [
        value
        for value in asked
        if value["checkpoint_ns"] in calls
        and value["problem"]
        and value["review_id"] not in open_before
    ]
    problems = [value["problem"] for value in again]
    review_ids = [value["review_id"] for value in again]
    for review in answered if asked else ():
        now = await question_now(review)
        if now is None or now["review_id"] in review_ids:
            continue
        if now["review_id"] == review.review_id:
            problems.append(_ANOTHER_CALL.format(review.function_name))
        elif now["problem"]:  # the thread shows another question first
            problems.append(now["problem"])
            review_ids.append(now["review_id"])
    if problems:
        raise AnswerRefused("\n".join(dict.fromkeys(problems)), review_ids=review_ids)
