"""Numbers, literals and unquoted words."""

import math
import re
import unicodedata
from typing import Any

from graph_retry.repair.report import Edit, Notes, Unreadable
from graph_retry.repair.scan import ELIDED, FOLLOW
from graph_retry.repair.strings import Slot

_TOKEN = re.compile(r"[^,，、:：{}\[\]｛｝［］()（）\"“”„‟＂\n\r;=<>\\]*+")
_COMMENT_AHEAD = re.compile(r"\s(?://|#|/\*)")
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z", re.ASCII)
_LOOSE_NUMBER = re.compile(
    r"[+-]?(?:(?:0|[1-9]\d*(?:_\d+)*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII
)
_RADIX = re.compile(r"([+-]?)0(?:[xX]([0-9a-fA-F_]+)|[oO]([0-7_]+)|[bB]([01_]+))\Z", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?(?=\s*(?:[,}]\s|[,}]\Z|}|\n|,\s*\D))")
_LITERALS: dict[str, Any] = {
    "true": True, "false": False, "null": None, "none": None, "nil": None,
    "nan": math.nan, "inf": math.inf, "infinity": math.inf,
    "+inf": math.inf, "+infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf,
}  # fmt: skip
# Words that stand for a value, for several values, or for none at all.
_UNSAYING = frozenset(
    "undefined yes no on off y n t f na tba string str number int integer float boolean bool "
    "object array any void missing empty unknown_value xxx".split()
)
_WORD = re.compile(r"[^\W\d_][\w'’@&!?\- ]*(?:\.(?=\s|\Z)[\w'’@&!?\- ]*)*")
_ADDRESS = re.compile(r"https?://[^\s,\"'{}\[\]()\\<>]+(?=\s*(?:[,}\]]|\n))|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PLAIN = re.compile(r"[-+.]?\d|(?:true|false|null|none)\Z", re.IGNORECASE)
_LITERAL_FIRST = re.compile(r"(?:true|false|null|none|nan|infinity)+(?![^\W\d_])")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


def number(token: str, position: int, notes: Notes) -> int | float | None:
    """Read `token` as a number in any spelling that has one meaning; `None` if it is none."""
    plain = unicodedata.normalize("NFKC", token).replace("−", "-")
    value: int | float
    if _JSON_NUMBER.match(plain):
        value = float(plain) if re.search(r"[.eE]", plain) else int(plain)
        if plain != token:
            notes.add("number_format", position, f"`{token[:40]}` is no JSON number")
    elif match := _RADIX.match(plain):
        digits, base = next((d, b) for d, b in zip(match.groups()[1:], (16, 8, 2)) if d)
        value = int(match[1] + digits, base)
        notes.add("number_format", position, f"`{token[:40]}` is no JSON number")
    elif _LOOSE_NUMBER.match(plain):
        value = float(plain) if re.search(r"[.eE]", plain) else int(plain)
        notes.add("number_format", position, f"`{token[:40]}` is no JSON number")
    else:
        return None
    return value


def read_scalar(
    text: str, start: int, slot: Slot, notes: Notes, *, careful: bool
) -> tuple[Any, int]:
    """Read what stands unquoted at `start`; return the value and where it ends."""
    if slot == "member" and not careful and (match := _THOUSANDS.match(text, start)):
        notes.add("number_format", start, f"`{match[0]}` is no JSON number")
        digits = match[0].replace(",", "")
        return (float(digits) if "." in digits else int(digits)), match.end()
    if match := _ADDRESS.match(text, start):
        notes.add("unquoted_value", start, "value without quotes")
        return match[0], match.end()
    match = _TOKEN.match(text, start)
    token = match[0] if match else ""
    if cut := _COMMENT_AHEAD.search(token):
        token = token[: cut.start()]
    token = token.rstrip()
    end = start + len(token)
    if not token:
        raise Unreadable("syntax", start, f"A value cannot start with `{text[start]}`.")
    try:
        found, value, length = _meaning(token, text[end : end + 1], slot, start, notes)
    except ValueError:
        raise Unreadable("syntax", start, "A number has more digits than can be read.") from None
    if found:
        return value, start + length
    if text[end : end + 1] in {'"', "”"} and FOLLOW[slot].match(text, end + 1):
        edits = () if careful else (Edit(start, 0, '"'),)
        raise Unreadable("syntax", start, "A string has no opening quote.", edits)
    word = _WORD.fullmatch(token)
    if ELIDED.search(token.replace("_", " ")) and not (word and token.isalpha() and token.lower() == "repeat"):
        raise Unreadable("elided", start, f"`{token[:40]}` stands for what was left out.")
    first = token.split()[0].lower()
    if (
        careful
        or not (word or _DATE.match(token))
        or first in _UNSAYING
        or _LITERAL_FIRST.match(first)
        or text[end : end + 1] in {"(", "<", "\\", "="}
    ):
        raise Unreadable("syntax", start, f"`{token[:40]}` has no single JSON meaning.")
    notes.add("unquoted_value", start, "value without quotes")
    return token, end


def _meaning(
    token: str, after: str, slot: Slot, position: int, notes: Notes
) -> tuple[bool, Any, int]:
    """Find the number or literal that `token` is, or starts with where a comma is missing."""
    words = token.split()
    candidates = [token]
    if slot == "element" and len(words) > 1 and _PLAIN.match(words[1]):
        candidates.append(words[0])  # a comma is missing
    elif slot == "member" and after in {":", "：", "="} and len(words) == 2:
        candidates.append(words[0])  # a comma is missing before an unquoted key
    for word in candidates:
        if word.lower() in _LITERALS:
            value = _LITERALS[word.lower()]
            if word not in {"true", "false", "null"}:
                finite = not isinstance(value, float)
                kind = "literal_spelling" if finite else "non_finite"
                notes.add(kind, position, f"`{word}` is no JSON literal")
            return True, value, len(word)
        value = number(word, position, notes)
        if value is not None:
            return True, value, len(word)
    return False, None, 0
