"""The smallest things: strict JSON, white space, comments, and what may follow a string."""

import json
import math
import re
from typing import Any, Literal

from pydantic_core import from_json

Role = Literal["key", "member", "element"]
"""What a value is where it stands: a key, the value of a key, or an element of a list."""
SPACE = "(?:[\\s\u200b-\u200f\u2060-\u2064\ufeff\u00ad]|\\\\[nrt](?![^\\W\\d]))*+"
QUOTE = "[\"'`“”„‟‘’‚‛＂＇]"
EDGES = " \t\r\n\f\v\xa0\u3000\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
ANY_SPACE = re.compile(SPACE)
_STRICT_SPACE = re.compile(r"[ \t\r\n]*+")
MAX_DEPTH = 200
ELLIPSIS = re.compile(r"\.\.|…")
# Where a document may end without its last bracket: at a fence or a closing tag.
_END_MARK = r"```|~~~|</|<\|"
_END = re.compile(_END_MARK)

# Words by which a writer says that something is not there.
ELIDED = re.compile(
    r"(?i)\.\.\.|…|\b(?:rest|omit(?:s|ted|ting)?|more|remain(?:ing|der)|truncated?|etc|continue[sd]?"
    r"|continuing|so (?:on|forth)|similar(?:ly)?|repeat(?:ed|s)?|additional|others?|same"
    r"|snip(?:ped)?|abbreviated|elided|skip(?:s|ped|ping)?|left out|not shown|placeholder|todo|tbd"
    r"|further|your|insert|fill in|until|through|up to|\d+ (?:items|entries|rows|records)"
    r"|\d+\s*(?:-|–|to)\s*\d+)\b"
)

FULL_WIDTH = dict(zip("｛｝［］：，、（）＝", "{}[]:,,()=", strict=True))
_SPECIAL = frozenset("`~<" + "".join(FULL_WIDTH))

# Keys and values of strict JSON, with the mark behind them: most are read in one step. `end` is
# where a value ends, before white space.
STRICT_KEY = re.compile(
    r"\"(?P<key>[^\"\\\x00-\x1f]*+)\"[ \t\r\n]*+:[ \t\r\n]*+"
    r"(?![/#\s:<=\\\u200b-\u200f\u2060-\u2064\ufeff\xad])"
)
STRICT_SCALAR = re.compile(
    r"(?a)(?:\"(?P<string>[^\"\\\x00-\x1f]*+)\"|(?P<literal>true|false|null)"
    r"|-?(?:0|[1-9]\d*+)(?:\.\d+)?+(?:[eE][+-]?\d+)?+)(?P<end>)"
    r"[ \t\r\n]*+(?:(?P<comma>,)(?!\d)[ \t\r\n]*+(?=[\"'{\[\-\d])|(?=[}\]]))"
)
STRICT_COMMA = re.compile(r"[ \t\r\n]*+(?P<comma>,)[ \t\r\n]*+(?=[\"\w{\[\-'])")
# How strict JSON begins. To find out by decoding that it does not takes longer.
STRICT_START = re.compile(r"(?a)\{[ \t\r\n]*+[\"}]|\[[ \t\r\n]*+[\"{\[\]\-\dtfn]|[\"\-\dtfn]")
# A value between two equal marks of Markdown.
MARKDOWN = re.compile(
    r"(?P<mark>\*{1,3}|__?|~~|`(?=\"))"
    r"(?P<value>\"[^\"\\\n]*+\"|-?\d[\d.eE+-]*+|true|false|null)(?P=mark)"
    r"(?=\s*[,:}\]\n]|\s*\Z)"
)
KEY = (
    rf"(?:[uU]?{QUOTE}(?:[^\n\"'`“”„‟‘’‚‛＂＇]|(?<=\w)['’](?=\w)){{0,200}}{QUOTE}"
    rf"|(?:[^\W\d]|\$)[\w$.\-]*+){SPACE}[:：=＝]"
)
BARE_KEY = re.compile(r"[{,]\s*(?:[^\W\d]|\$)[\w$]*\s*[:=]")
# A key that has quotes although it does not need them: then all keys have.
QUOTED_KEY = re.compile(r"(?<![\\\w])(?<![\"']\{)[\"'][A-Za-z_][A-Za-z\d_]*[\"']\s*:")
KEY_AHEAD = re.compile(KEY)


def char_at(text: str, position: int) -> str:
    """Return the structural character at `position`, `""` at the end of the document."""
    char = text[position : position + 1]
    if char not in _SPECIAL:
        return char
    return "" if _END.match(text, position) else FULL_WIDTH.get(char, char)


_VALUE = rf"{QUOTE}|[\[{{(\d-]|(?i:true|false|null|none)\b"
_STOP = rf"\Z|//|/\*|#|<!--|{_END_MARK}|\.\.|…|[:：=＝]|[\]}}）)］｝]|\+{SPACE}{QUOTE}"
# A comma before a word that is no key belongs to a sentence.
_SENTENCE = rf"[^\W\d][\w$.\-' ]*+[\"”]?{SPACE}(?![:：=＝\w$.\-' \"”])"
_CLOSED = rf"[}}\]｝］](?:[ \t\r]*\n|{SPACE}(?:[,，}}\]｝］<;)#/]|\Z|{_END_MARK})|\s+[A-Z])"
_MEMBER = rf"[,，、](?!{SPACE}{_SENTENCE})|{_STOP}|(?={QUOTE}|(?<=\s)){KEY}"
_BREAK = r"|[ \t\r]*\n"
# What may follow the closing quote of a string, by the role it stands in.
FOLLOW = {
    "key": re.compile(rf"{SPACE}(?:[:：=＝,，}}\]]|\Z|->|{_VALUE})"),
    "member": re.compile(rf"{SPACE}(?:{_MEMBER}){_BREAK}{SPACE}{QUOTE}"),
    "element": re.compile(rf"{SPACE}(?:[,，、]|{_STOP})|\s{SPACE}(?:{_VALUE})"),
}
# The same once a quote inside the string has shown that its quotes are not escaped.
_NEXT = rf"\Z|{_CLOSED}|[,，]{SPACE}(?:[}}\]｝］]|//|#|/\*"
FOLLOW_STRONG = {
    "key": re.compile(rf"{SPACE}[:：=＝]"),
    "member": re.compile(rf"{SPACE}(?:{_NEXT}|{KEY})){_BREAK}{SPACE}{KEY}"),
    "element": re.compile(rf"{SPACE}(?:{_NEXT}|{_VALUE}))"),
}


_SORTING_ENCODER = json.JSONEncoder(sort_keys=True)
_INFINITY = math.inf
_NOT_ZERO = re.compile(r"[^eE]*[1-9]")


def same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal in value and type (`1`, `1.0` and `True` differ)."""
    return canonical(left) == canonical(right)


def canonical(value: Any) -> str:
    """Return one text for all spellings of a JSON value."""
    return _SORTING_ENCODER.encode(value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs) and not all(same(result[key], value) for key, value in pairs):
        raise ValueError("keys that disagree")
    return result


def finite(token: str) -> float:
    """Return the float that `token` spells.

    Raises:
        ValueError: no float is as large, or as small and not zero.
    """
    value = float(token)
    # Every float of a text comes here, so the common case takes one comparison.
    if -_INFINITY < value < _INFINITY and (value or not _NOT_ZERO.match(token)):
        return value
    raise ValueError("a number out of the range of floats")


# Keys that disagree, `NaN`, which is no `int`, numbers out of range and what is too deep are left
# to the tolerant reader: it refuses or reports them.
_READING: dict[str, Any] = {"object_pairs_hook": _unique, "parse_constant": int}
_DECODER = json.JSONDecoder(**_READING)
_CHECKING_DECODER = json.JSONDecoder(**_READING, parse_float=finite)
_LARGE_EXPONENT = re.compile(r"e[+-]?[0-9]{3}")
_DIGITS_AS_ZERO = bytes.maketrans(b"123456789", b"000000000")
_MANY_ZEROS = b"0" * 200


def _decode(text: str, start: int) -> tuple[Any, int]:
    """Read the strict JSON value at `start`; return it and where it ends."""
    # To check a float takes longer than to read it, so where there are many, the text is searched
    # for what may be out of range instead.
    many_floats = text.count(".", start, start + 400) > 10
    decoder = _DECODER if many_floats else _CHECKING_DECODER
    value, end = decoder.raw_decode(text, start)
    if many_floats and _may_leave_range(text[start:end]):
        value, end = _CHECKING_DECODER.raw_decode(text, start)
    # From Python 3.13 on, the standard library's decoder knows no depth of its own.
    may_be_deep = end - start > 2 * MAX_DEPTH
    if may_be_deep and text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH:
        from_json(text[start:end])  # refuses what is deeper
    return value, end


def _may_leave_range(document: str) -> bool:
    """Tell whether a number may be out of the range of floats.

    That takes an exponent of three digits, or hundreds of digits.
    """
    if "E" in document or _LARGE_EXPONENT.search(document):
        return True
    return _MANY_ZEROS in document.encode(errors="replace").translate(_DIGITS_AS_ZERO)


def strict_value(text: str) -> Any:
    """Read a text that is strict JSON as a whole.

    Raises:
        ValueError: it is none.
    """
    start = after_strict_space(text, 0) if text[:1].isspace() else 0
    if not STRICT_START.match(text, start):
        raise ValueError("No JSON value begins like this.")
    value, end = _decode(text, start)
    if end < len(text) and (end := after_strict_space(text, end)) < len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return value


def after_strict_space(text: str, position: int) -> int:
    """Step over the white space of JSON."""
    space = _STRICT_SPACE.match(text, position)
    return space.end() if space else position


def strict_part(text: str, start: int) -> tuple[Any, int]:
    """Read the strict JSON value at `start`; return it and where it ends.

    The standard library counts the lines before an error, so it is given growing pieces: with
    the whole text, many documents that fail would take time quadratic in its length.

    Raises:
        ValueError: there is none; `pos` tells how far it was read.
    """
    size = 4000
    while True:
        piece = text[start : start + size]
        try:
            value, end = _decode(piece, 0)
        except json.JSONDecodeError as error:
            cut = error.pos > len(piece) - 12 or error.msg.startswith("Unterminated")
            if not cut or start + size >= len(text):
                raise
        else:
            if end < len(piece) or start + size >= len(text):
                return value, start + end
        size *= 8
