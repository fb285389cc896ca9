"""Hold an answer to the question it was made for: its attempt, its review, its own id."""

from dataclasses import dataclass
from typing import Any

from graph_retry.review.question import Question, UnusableAnswerError
from graph_retry.validate.issues import literal

_MAX_TEXT = 200


@dataclass(frozen=True)
class Binding:
    """What an answer says about itself: which attempt and review it is for, who gave it."""

    attempt: int | None
    review_id: str | None
    decision_id: str | None
    by: str | None


def read_binding(entry: dict[str, Any]) -> Binding:
    """Read the binding keys of an unwrapped answer; a form's `"2"` and JavaScript's `2.0` are 2.

    Raises:
        UnusableAnswerError: If one of them has the wrong type.

    Example:
        >>> read_binding({"type": "approve", "attempt": "2", "by": "ada"})
        Binding(attempt=2, review_id=None, decision_id=None, by='ada')
    """
    return Binding(
        attempt=_number(entry.get("attempt")),
        review_id=_text(entry, "review_id"),
        decision_id=_text(entry, "decision_id"),
        by=_text(entry, "by"),
    )


def check_binding(binding: Binding, question: Question) -> None:
    """Refuse an answer that was applied before, or that was made for another question.

    Raises:
        UnusableAnswerError: If it is one of these; it tells what the answer was for.
    """
    if binding.decision_id is not None and binding.decision_id in question.seen_decisions:
        raise UnusableAnswerError(
            f"The decision {literal(binding.decision_id, 80)} was already applied, so it does not "
            f"count again. {_open(question)}"
        )
    if binding.attempt is not None and binding.attempt != question.attempt:
        raise UnusableAnswerError(
            f"The answer is stale: it is for attempt {binding.attempt}. {_open(question)}"
        )
    if binding.review_id is not None and binding.review_id != question.review_id:
        raise UnusableAnswerError(
            f"The answer is stale: it is for review {literal(binding.review_id, 80)}, and the open "
            f"one is {literal(question.review_id, 80)}. {_open(question)}"
        )


def check_echoes(echoes: tuple[str, ...], question: Question) -> None:
    """Refuse an answer that repeats another question's title.

    Raises:
        UnusableAnswerError: If it does; it tells which title came.
    """
    for echo in echoes:
        if echo not in (question.title.strip(), question.name.strip()):
            raise UnusableAnswerError(
                f"The answer is stale: it is for {literal(echo, 80)}. {_open(question)}"
            )


def _open(question: Question) -> str:
    return f"Attempt {question.attempt} is under review now: look at it and answer again."


def _number(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise UnusableAnswerError(f"`attempt` must be a whole number, not {literal(value, 80)}.")
    return int(value)


def _text(entry: dict[str, Any], key: str) -> str | None:
    value = entry.get(key)
    if value is None or (isinstance(value, str) and len(value) <= _MAX_TEXT):
        return value
    raise UnusableAnswerError(
        f"`{key}` must be text of up to {_MAX_TEXT} characters, not {literal(value, 80)}."
    )
