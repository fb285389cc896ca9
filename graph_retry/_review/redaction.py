"""Show a question without what must not be shown, and take its answer without losing it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graph_retry._json import is_array, is_object
from graph_retry._redact import redacted
from graph_retry._review.question import Question


def displayed(question: Question) -> Question:
    """Return the question as people and agents may see it.

    What the attempt left in the ledger was redacted there; here it is the params and what is
    written about them.
    """
    redact = question.redact
    if redact is None:
        return question
    return replace(
        question,
        params=redacted(question.params, redact),
        suggested=redacted(question.suggested, redact),
        diff=redacted(question.diff, redact),
        note=redacted(question.note, redact),
        problem=redacted(question.problem, redact),
    )


def unredacted(value: Any, shown: Any, original: Any) -> Any:
    """Put the original back, at any depth, where somebody sent what was shown in its place.

    Example:
        >>> unredacted({"to": "***", "n": 2}, {"to": "***", "n": 1}, {"to": "Ada", "n": 1})
        {'to': 'Ada', 'n': 2}
    """
    if value == shown:
        return original
    if is_object(value) and is_object(shown) and is_object(original):
        return {
            key: unredacted(each, shown[key], original[key]) if key in shown else each
            for key, each in value.items()
        }
    if is_array(value) and is_array(shown) and len(value) == len(shown):
        return [unredacted(*each) for each in zip(value, shown, original, strict=True)]
    return value
