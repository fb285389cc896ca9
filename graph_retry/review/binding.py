"""Hold an answer to the question it was made for: its attempt, its review, its own id."""

from typing import Any

from graph_retry.review.question import Question, UnusableAnswerError
from graph_retry.validate.issues import literal

_MAX_TEXT = 200


def bound(entry: dict[str, Any], question: Question) -> dict[str, Any]:
    """Return what an answer says of itself: `attempt`, `review_id`, `decision_id`, `by`.

    A form's `"2"` and JavaScript's `2.0` are attempt 2.

    Raises:
        UnusableAnswerError: If it was applied before or is for another question.
    """
    said = {key: _text(entry, key) for key in ("review_id", "decision_id", "by")}
    said["attempt"] = _number(entry.get("attempt"))
    if said["decision_id"] in question.seen_decisions:
        raise _stale(
            f"The decision {literal(said['decision_id'], 80)} was already applied", question
        )
    for key, current in (("attempt", question.attempt), ("review_id", question.review_id)):
        if said[key] not in (None, current):
            what = f"The answer is stale: it is for {key.removesuffix('_id')}"
            raise _stale(f"{what} {literal(said[key], 80)}", question)
    return {key: value for key, value in said.items() if value is not None}


def check_echoes(echoes: tuple[str, ...], question: Question) -> None:
    """Refuse an answer that repeats another question's title.

    Raises:
        UnusableAnswerError: If it does; it tells which title came.
    """
    for echo in echoes:
        if echo not in (question.title.strip(), question.name.strip()):
            raise _stale(f"The answer is stale: it is for {literal(echo, 80)}", question)


def _stale(what: str, question: Question) -> UnusableAnswerError:
    return UnusableAnswerError(
        f"{what}. Attempt {question.attempt} is under review now, as review "
        f"{literal(question.review_id, 80)}: look at it and answer again."
    )


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise UnusableAnswerError(f"`attempt` must be a whole number, not {literal(value, 80)}.")


def _text(entry: dict[str, Any], key: str) -> Any:
    value = entry.get(key)
    if value is None or (isinstance(value, str) and len(value) <= _MAX_TEXT):
        return value
    raise UnusableAnswerError(
        f"`{key}` must be text of up to {_MAX_TEXT} characters, not {literal(value, 80)}."
    )
