"""Marks that were supplied while a string holds one out of place: the mark may have moved there.

`{":a" 1}` lacks a colon, and its key has one where a key hardly ever does. That `:a` is the key and
a colon was forgotten explains the text no better than that the key is `a` and its colon has moved.
"""

import re
from collections.abc import Iterator

from pydantic import JsonValue

from graph_retry._output.repair.mend import Document
from graph_retry._output.repair.report import refuse_if

# One of these alone in a string has lost its partner, or has come from elsewhere.
_BRACKETS = ("{", "}"), ("[", "]")
_MARK = re.compile(r"[{}\[\]:：=＝,，\"']")
_QUOTES = {'"', "'"}
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
# A comma and a comment, or the brackets between two objects, that the string took in.
_TAKEN_IN = re.compile(r",\s*(?:#|//|/\*)|[}\]]\s*,?\s*[{\[]")


def refuse_misplaced(document: Document) -> None:
    """Refuse a document if a mark that was supplied may stand in one of its strings.

    Raises:
        Unreadable: it may.
    """
    made = {record["kind"] for record in document.repairs}
    colon, comma = not made.isdisjoint({"colon", "missing_colon"}), "missing_comma" in made
    missing = "supplied" in made
    bracket = missing or not made.isdisjoint({"extra_closer", "extra_opener", "missing_colon"})
    if not (colon or comma or bracket):
        return
    marks: tuple[str, ...] = (":", "：") if colon else ()
    marks += ("=", "＝", "=>") if "missing_colon" in made else ()
    marks += (",", "，") if comma else ()
    for string in filter(_MARK.search, _strings(document.value)):
        inside = string.strip()
        quotes = {inside[:1], inside[-1:]} & _QUOTES
        is_lone = bracket and (
            any(string.count(left) > string.count(right) for left, right in _BRACKETS)
            or (missing and any(string.count(a) < string.count(b) for a, b in _BRACKETS))
            or any(_APOSTROPHE.sub("", inside).count(quote) % 2 for quote in quotes)
        )
        message = "A mark that is missing may be one that a string has."
        takes_in = comma and _TAKEN_IN.search(inside)
        # `{"a": "{} "`, or with the quote on the next line: the brace came before the quote.
        came_before = missing and string[-1:].isspace() and inside[-1:] in {"}", "]"}
        has_mark = inside.startswith(marks) or inside.endswith(marks)
        is_misplaced = is_lone or came_before or takes_in or has_mark
        refuse_if(is_misplaced, "ambiguous", document.start, message)


def _strings(value: JsonValue) -> Iterator[str]:
    """Yield the strings of a JSON value, its keys among them."""
    waiting: list[JsonValue] = [value]
    while waiting:
        match waiting.pop():
            case str(string):
                yield string
            case dict(members):
                yield from members
                waiting.extend(members.values())
            case list(elements):
                waiting.extend(elements)
            case _:
                pass
