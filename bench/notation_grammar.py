"""A grammar of the notations that documents are damaged in, without any repair.

What it reads has a plain reading: a damaged text that it reads is another document, not a broken
one. It knows strings in three kinds of quotes, keys without quotes, `=` and `=>`, tuples, comments,
last commas and numbers of JSON5.
"""

import re
from typing import Any

SPACE = re.compile(r"(?:[\s\u200b\ufeff]|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
NUMBER = re.compile(
    r"[+-]?(?:0x(?:_?[\da-fA-F])+|(?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])"
)
INTEGER = re.compile(r"[+-]?[\d_]+")
NAME = re.compile(r"(?:[^\W\d]|\$)[\w$.-]*|\d+(?=\s*[:=])")
COLON = re.compile(r"=>|[:=]")
WORD = re.compile(r"\w+")
ESCAPE = re.compile(r"\\(u[\da-fA-F]{4}|x[\da-fA-F]{2}|.)", re.DOTALL)
CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
LITERALS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
QUOTES = {'"': '"', "'": "'", "“": "”"}
CLOSING = {"{": "}", "[": "]", "(": ")"}


class NotThisNotation(ValueError):
    """The text is no document of the grammar."""


def plain_value(text: str) -> Any:
    """Read a text that is one document of the grammar.

    Raises:
        NotThisNotation: it is none.
    """
    try:
        value, end = _value(text, 0)
    except (IndexError, RecursionError) as error:
        raise NotThisNotation(str(error)) from None
    if _skip(text, end) < len(text.rstrip(" \n;")):
        raise NotThisNotation("more follows")
    return value


def _skip(text: str, position: int) -> int:
    space = SPACE.match(text, position)
    return space.end() if space else position


def _value(text: str, position: int) -> tuple[Any, int]:
    position = _skip(text, position)
    char = text[position : position + 1]
    if char in QUOTES:
        return _string(text, position)
    if char in CLOSING:
        return _container(text, position)
    if number := NUMBER.match(text, position):
        token = number[0]
        if "x" in token:
            return int(token, 16), number.end()
        return (int if INTEGER.fullmatch(token) else float)(token), number.end()
    word = WORD.match(text, position)
    if word and word[0] in LITERALS:
        return LITERALS[word[0]], word.end()
    raise NotThisNotation(f"no value at {position}")


def _string(text: str, start: int) -> tuple[str, int]:
    close, end = QUOTES[text[start]], start + 1
    while text[end] != close or (close == "'" and _is_apostrophe(text, end)):
        end += 2 if text[end] == "\\" else 1
    inside = ESCAPE.sub(_resolved, text[start + 1 : end])
    return inside.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass"), end + 1


def _is_apostrophe(text: str, position: int) -> bool:
    return text[position - 1].isalnum() and text[position + 1 : position + 2].isalpha()


def _resolved(escape: re.Match[str]) -> str:
    char = escape[1]
    if len(char) > 1:
        return chr(int(char[1:], 16))
    if char in CONTROLS:
        return CONTROLS[char]
    return char if char in {'"', "'", "\\", "/", "`"} else f"\\{char}"


def _container(text: str, start: int) -> tuple[Any, int]:
    is_object, close = text[start] == "{", CLOSING[text[start]]
    members, elements = dict[str, Any](), list[Any]()
    position = _skip(text, start + 1)
    while text[position] != close:
        if is_object:
            key, position = _key(text, position)
            colon = COLON.match(text, _skip(text, position))
            if colon is None or key in members:
                raise NotThisNotation(f"no colon, or a key again, at {position}")
            members[key], position = _value(text, colon.end())
        else:
            element, position = _value(text, position)
            elements.append(element)
        position = _skip(text, position)
        if text[position] == ",":
            position = _skip(text, position + 1)
        elif text[position] != close:
            raise NotThisNotation(f"no comma at {position}")
    return (members if is_object else elements), position + 1


def _key(text: str, position: int) -> tuple[str, int]:
    if text[position] in QUOTES:
        return _string(text, position)
    name = NAME.match(text, position)
    if name is None:
        raise NotThisNotation(f"no key at {position}")
    return name[0], name.end()
