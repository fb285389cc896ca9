"""Show values in forms, and find the original of a value that an answer sends back.

A form shows a note in place of a picture, and only the beginning of a long text. JavaScript rounds
large numbers. The option `redact` hides texts. In all these cases, a value that comes back as it
was shown stands for the original.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from graph_retry._core.ground.issues import literal
from graph_retry._core.ground.json import as_text, is_array, is_number, is_object
from graph_retry._core.ground.pictures import noted
from graph_retry.lossless._ground import identical, written

MAX_BOX = 4_000
"""Maximum number of characters of one value in a form."""

MAX_FORM = 20_000
"""Maximum characters of all values in a form, because an interrupt's value holds it three times."""

_LEAST_SHOWN = 100
"""Characters that a form shows of each value, even after `MAX_FORM` is reached."""

_NOT_SHOWN = "characters are not shown: leave the box as it is to keep them, or replace it all]"


class UnreadableError(ValueError):
    """A value cannot be read. The message continues a sentence about a field: "`age` expects …"."""


class LostDigitsError(ValueError):
    """A client rounded a number in a list, and its original is unknown."""


def form_args(shown: dict[str, Any]) -> dict[str, Any]:
    """Return params as a form shows them. A value is cut if it is too long for a form.

    A cut value ends in a note with the number of missing characters. A note also replaces each
    picture. A top-level null becomes the text `null`, because Agent Inbox crashes on null.

    Example:
        >>> form_args({"prompt": "x", "seed": None})
        {'prompt': 'x', 'seed': 'null'}
    """
    args: dict[str, Any] = {}
    left = MAX_FORM
    for name, value in noted(shown).items():
        text = as_text(value)
        most = min(max(left, _LEAST_SHOWN), MAX_BOX)
        hidden = len(text) - most
        cut = value if hidden <= 0 else f"{text[:most]}… [{hidden:,} more {_NOT_SHOWN}"
        args[name] = "null" if value is None else cut
        left -= min(len(text), MAX_BOX)
    return args


def is_untouched(name: str, text: Any, shown: dict[str, Any]) -> bool:
    """Return whether a text box with a cut value came back as it was shown.

    Raises:
        UnreadableError: If the cut text was changed, because the rest of the value is then missing.
    """
    if not isinstance(text, str) or _NOT_SHOWN not in text:
        return False
    if text.replace("\r\n", "\n") == str(form_args(shown).get(name)).replace("\r\n", "\n"):
        return True
    raise UnreadableError(
        "was shown in part: replace the whole text, the note at its end included, or send "
        f'{{"type": "edit", "params": {{"{name}": …}}}}'
    )


def put_back(value: Any, shown: Any, original: Any) -> Any:
    """Return an answer's value, with the original of each part that repeats its shown value.

    Objects are compared by key. Lists of equal length are compared by position.

    Raises:
        LostDigitsError: If a list with a changed length contains a rounded number.

    Example:
        >>> put_back({"to": "***", "n": 2}, {"to": "***", "n": 1}, {"to": "Ada", "n": 1})
        {'to': 'Ada', 'n': 2}
        >>> put_back(["***", 1152921504606847000], ["***", 2**60 + 1], ["Ada", 2**60 + 1])
        ['Ada', 1152921504606846977]
    """
    is_echo = is_number(value) and is_number(shown) and value in (shown, _rounded(shown))
    if is_echo or identical(value, shown):
        return original
    if is_object(value) and is_object(shown):
        names = names_behind(shown, original)
        return {
            names.get(key, key): put_back(item, shown[key], original[names[key]])
            if key in shown
            else item
            for key, item in value.items()
        }
    return _items(value, shown, original) if is_array(value) and is_array(shown) else value


def _items(value: list[Any], shown: list[Any], original: list[Any]) -> list[Any]:
    """Return a list in which each item that repeats a shown item is the original again.

    An item that can only stand for one original is recognised even if it was moved. Any other item
    is recognised by its position, if the list has its old length.
    """
    behind: dict[str, list[Any]] = {}
    for seen, item in zip(shown, original, strict=True):
        alike = behind.setdefault(written(seen), [])
        alike[:] = alike if any(identical(item, one) for one in alike) else [*alike, item]
    result: list[Any] = []
    for at, item in enumerate(value):
        alike = behind.get(written(item), [])
        if len(value) == len(shown) and (len(alike) != 1 or identical(item, shown[at])):
            result.append(put_back(item, shown[at], original[at]))
        else:
            result.append(alike[0] if len(alike) == 1 else item)
    if len(value) != len(shown):
        exact = {*_leaves(original, float)}
        rounded = {_rounded(number) for number in exact} - exact
        if lost := rounded.intersection(_leaves(result, float)):
            raise LostDigitsError(f"the number {min(lost)} lost digits. Send all digits")
    return result


def hidden_in(value: Any, shown: Any, original: Any) -> str | None:
    """Return the problem if a value contains a placeholder such as `***`; None if it contains none.

    The original of a placeholder is unknown, and the model would get the placeholder. A text that
    also occurs in the original value is no placeholder. The caller writes the field's name before
    the result.
    """
    before, after = list(_leaves(original, str)), list(_leaves(shown, str))
    pairs = ((set(old.split()), new) for old, new in zip(before, after, strict=True) if old != new)
    words = {word for old, new in pairs for word in new.split() if word not in old}
    words = {word.strip(".,;:!?()\"'") or word for word in words}
    texts = {*_leaves(value, str)} - {*before} if words else ()
    left = next((word for word in sorted(words) if any(word in text for text in texts)), None)
    return left and (
        f"has {literal(left, 80)}, and its original is unknown. Leave the text as it "
        "is shown, or write all of it."
    )


def names_behind(shown: dict[str, Any], original: dict[str, Any]) -> dict[str, str]:
    """Map each shown key, which may be redacted, to the original key."""
    return dict(zip(shown, original, strict=True))


def _rounded(number: float) -> float:
    """Return a number as JavaScript sends it back, which keeps 53 bits."""
    near = float(number)
    # From 1e21 on, JavaScript writes an exponent.
    whole = near.is_integer() and 2**53 < abs(near) < 1e21
    return int(Decimal(repr(near))) if whole else near


def _leaves(value: Any, kind: type[str | float]) -> Iterator[Any]:
    """Yield all numbers in a JSON value (`kind=float`), or all texts and keys (`kind=str`)."""
    if is_object(value):
        for key, item in value.items():
            yield from (key,) if kind is str else ()
            yield from _leaves(item, kind)
    elif is_array(value):
        for item in value:
            yield from _leaves(item, kind)
    elif isinstance(value, str) if kind is str else is_number(value):
        yield value
