"""Redact the texts of a question, and restore the originals that an answer repeats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graph_retry._json import is_array, is_object
from graph_retry._redact import property_names, redacted
from graph_retry._review.question import Question
from graph_retry._review.review import SHOWN


def displayed(question: Question) -> Question:
    """Return the question with redacted params and redacted texts about them.

    The raw output, issues and failure come from the ledger, where they are redacted already, and
    the diff is made of redacted params.
    """
    redact = question.redact
    if redact is None:
        return question
    names = {
        "params": question.codec.names,
        "output": property_names(question.schema_of_output),
        "text": frozenset[str](),
    }
    private = {
        name: redacted(getattr(question, name), redact, names[shown.private])
        for name, shown in SHOWN.items()
        if shown.private
    }
    return replace(question, redacted=True, **private)


def names_behind(shown: dict[str, Any], original: dict[str, Any]) -> dict[str, str]:
    """Return the keys of an object by those that a reviewer sees."""
    return dict(zip(shown, original, strict=True))


def unredacted(value: Any, shown: Any, original: Any) -> Any:
    """Restore the original values wherever the answer repeats the redacted ones, at any depth.

    Example:
        >>> unredacted({"to": "***", "n": 2}, {"to": "***", "n": 1}, {"to": "Ada", "n": 1})
        {'to': 'Ada', 'n': 2}
    """
    if value == shown:
        return original
    if is_object(value) and is_object(shown) and is_object(original):
        names = names_behind(shown, original)
        return {
            names.get(key, key): unredacted(item, shown[key], original[names[key]])
            if key in shown
            else item
            for key, item in value.items()
        }
    if is_array(value) and is_array(shown) and len(value) == len(shown):
        return [unredacted(*items) for items in zip(value, shown, original, strict=True)]
    return value
