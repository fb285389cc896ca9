"""Redact the texts of a question, and restore the originals that an answer repeats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from graph_retry._json import is_array, is_object
from graph_retry._redact import property_names, redacted, redacted_issue
from graph_retry._review.forms.javascript import identical, written
from graph_retry._review.question import Question
from graph_retry._review.review import SHOWN


def displayed(question: Question) -> Question:
    """Return the question with redacted params, outputs and texts.

    The ledger has redacted the raw output, issues and failure. The diff is of redacted params.
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
    declared = names["params"] | names["output"]  # an answer sends one or the other
    answer_issues = [redacted_issue(one, redact, declared) for one in question.answer_issues]
    return replace(question, redacted=True, answer_issues=answer_issues, **private)


def names_behind(shown: dict[str, Any], original: dict[str, Any]) -> dict[str, str]:
    """Map the keys that a reviewer sees to the original keys, which may have been redacted."""
    return dict(zip(shown, original, strict=True))


def unredacted(value: Any, shown: Any, original: Any) -> Any:
    """Put back the original value at each place where an answer repeats the redacted value.

    Example:
        >>> unredacted({"to": "***", "n": 2}, {"to": "***", "n": 1}, {"to": "Ada", "n": 1})
        {'to': 'Ada', 'n': 2}
        >>> unredacted(["***"], ["***", "Bob"], ["Ada", "Bob"])
        ['Ada']
    """
    if shown is original:
        return value
    if identical(value, shown):
        return original
    if is_object(value) and is_object(shown) and is_object(original):
        names = names_behind(shown, original)
        return {
            names.get(key, key): unredacted(item, shown[key], original[names[key]])
            if key in shown
            else item
            for key, item in value.items()
        }
    if is_array(value) and is_array(shown):
        return _items(value, shown, original)
    return value


def _items(value: list[Any], shown: list[Any], original: list[Any]) -> list[Any]:
    """Restore the items of a list.

    A moved item is restored if its redacted form belongs to only one original. Another item is
    restored by its position, but only if the list has kept its length.
    """
    behind: dict[str, list[Any]] = {}
    for seen, item in zip(shown, original, strict=True):
        alike = behind.setdefault(written(seen), [])
        alike[:] = alike if any(identical(item, one) for one in alike) else [*alike, item]
    restored: list[Any] = []
    for at, item in enumerate(value):
        alike = behind.get(written(item), [])
        if len(value) == len(shown) and (len(alike) != 1 or identical(item, shown[at])):
            restored.append(unredacted(item, shown[at], original[at]))
        else:
            restored.append(alike[0] if len(alike) == 1 else item)
    return restored


def placeholder_in(value: Any, shown: Any, original: Any) -> str | None:
    """Return a placeholder of the redactor that is left in a restored answer, or None.

    Example:
        >>> placeholder_in("Dear ***, hello", {"text": "Dear ***, hi"}, {"text": "Dear Ada, hi"})
        '***'
    """
    if shown is original:
        return None
    before, after, given = [*_texts(original)], [*_texts(shown)], {*_texts(value)}
    pairs = ((set(old.split()), new) for old, new in zip(before, after, strict=True))
    words = {word for old, new in pairs for word in new.split() if word not in old}
    words = {word.strip(".,;:!?()\"'") or word for word in words}
    texts = given - {*before}
    return next((word for word in sorted(words) if any(word in text for text in texts)), None)


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts and keys in a JSON value, in their order."""
    if isinstance(value, str):
        yield value
    elif is_array(value):
        for item in value:
            yield from _texts(item)
    elif is_object(value):
        for key, item in value.items():
            yield key
            yield from _texts(item)
