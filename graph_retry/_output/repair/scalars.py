"""Numbers, literals and unquoted words."""

import math
import re
import unicodedata
from typing import Any

from graph_retry._output.repair.report import Edit, Notes, Unreadable, refuse_if
from graph_retry._output.repair.scan import ELIDED, FOLLOW, Role, finite, strict_value

_TOKEN = re.compile(
    r"(?:(?!\s(?://|#|/\*))[^,，、:：{}\[\]｛｝［］()（）\"“”„‟＂\n\r;=<>\\\u200b-\u200f\u2060-\u2064\ufeff\xad])*+"
)
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z", re.ASCII)
_LOOSE_NUMBER = re.compile(
    r"(?ai)[+-]?(?:(?:0|[1-9]\d{0,2}(?:_\d{3})+|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\Z"
)
_FRACTION = re.compile(r"[.eE]")
_RADIX = re.compile(r"(?ai)[+-]?0(?:x(?:_?[\da-f])+|o(?:_?[0-7])+|b(?:_?[01])+)\Z")
# With one comma alone, `1,250` is 1250 in some languages and 1.25 in others.
_THOUSANDS = re.compile(
    r"[+-]?[1-9]\d{0,2},\d{3}(?:(?:,\d{3})+(?:\.\d+)?|\.\d+)(?=\s*(?:,\s*\D|[,}]\s*\Z|}|\n))"
)
_LITERALS: dict[str, Any] = {
    "true": True, "false": False, "null": None, "none": None, "nil": None, "nan": math.nan,
    "inf": math.inf, "-inf": -math.inf,
}  # fmt: skip
# Words that stand for a value, for several values, or for none at all.
_UNSAYING = re.compile(
    r"(?i)(?:undefined?|yes|no|on|off|[yntf]|na|str(?:ing)?|number|int(?:eger)?|float|bool(?:ean)?"
    r"|object|array|any|void|missing|empty|xxx|ellipsis|nat|self|this)(?!\S)"
)
# Words that are code: a value that is computed, or the name of one.
_CODE = re.compile(
    r"(?i:(?:true|false|null|none|nan)+[\d.e+-]*\Z|.*\b(?:true|false|null|none|nil|nan|infinity)\b)"
    r"|.*\bif\b.*\belse\b|(?:not|new|await) "
    r"|(?i:[brfu]{1,2}['\"])|.*(?:_|[a-z][A-Z])|.*(?<![^\W_])['’]|.*['’](?![^\W_])"
)
# Where strings are in single quotes, as Python writes them, such a word is the name of a variable.
_NAME = re.compile(r"[a-z]\w*", re.ASCII)
_VALUE_AHEAD = re.compile(r"[-+.]?\d|(?:true|false|null|none)\Z", re.IGNORECASE)
# What is read as a string without its quotes: words of letters, a date, or an address.
_WORD = re.compile(
    r"[^\W\d_][\w'’&!?\- ]*(?:\.(?=\s|\Z)[\w'’&!?\- ]*)*|\d{4}-\d\d-\d\d|[\w.+-]+@[\w-]+\.[\w.-]*\w"
)
_WORDS_AT_COMMA = re.compile(r"([^\W\d_]+)[,，、]([^\W\d_]+)")
_NUMBER_LIKE = re.compile(r"[\d.eE+_-]*|[+-]?0?(?:[xX][\da-fA-F]+|[oO][0-7]+|[bB][01]+)")
_DIGIT_AND_COMMA = re.compile(r"\d,")
_COMMA_AFTER = re.compile(r",\s*[\d\]}]|\s*\n\s*[\]}]")
_STRING_BEFORE = re.compile(r"[\"'”][ \t]*,[ \t]*\Z")
_ELEMENT_BEFORE = re.compile(r"[^\s\[][ \t]*,[ \t]*\Z")
_AT_LINE_END = re.compile(r"[ \t\r]*\n")
_COMMENT_AFTER = re.compile(r"[ \t]*+(?:#|//|/\*)")
_NUMERALS = re.compile(r"(?:[\d\uff0b\uff0d\uff0e\uff25\uff45−]|[!-~])+")


def number(token: str, position: int, notes: Notes) -> int | float | None:
    """Read `token` as a number in any spelling that has one meaning; `None` if it is none."""
    plain, base = token, 10
    if not token.isascii() and _NUMERALS.fullmatch(token):
        plain = unicodedata.normalize("NFKC", token).replace("−", "-")
    if plain != token or not _JSON_NUMBER.match(plain):
        if _RADIX.match(plain):
            base = 0  # which one the prefix tells
        elif not _LOOSE_NUMBER.match(plain):
            return None
        notes.add("number_format", position, f"`{token[:40]}` is no JSON number")
    if len(plain) > 4000:
        raise Unreadable("syntax", position, "A number is too long to be read.")
    if base == 0 or not _FRACTION.search(plain):
        return int(plain, base)
    try:
        return finite(plain)
    except ValueError:
        raise Unreadable("syntax", position, f"No float can be `{token[:40]}`.") from None


def _shortened(word: str) -> set[str]:
    """Return the word, and the word with one character left out in every way."""
    return {word, *(word[:index] + word[index + 1 :] for index in range(len(word)))}


_TIGHT = re.compile(r"[\"'][:,=][\"'\d\[{(tfnTFN-]|\w:[\"'\[{]")
_QUOTED_VALUE = re.compile(r"[:\[,]\s*[\"']")
_SHORT_LITERALS = frozenset[str]().union(*map(_shortened, ("true", "false", "null", "none")))


def resembles_literal(word: str) -> bool:
    """Tell whether `word` is one character away from `true`, `false` or `null`."""
    return len(word) < 8 and not _SHORT_LITERALS.isdisjoint(_shortened(word.lower()))


def resembles_value(word: str) -> bool:
    """Tell whether `word` is one character away from a number or a literal."""
    if resembles_literal(word) or _NUMBER_LIKE.fullmatch(word):
        return True
    return len(word) < 40 and any(map(_NUMBER_LIKE.fullmatch, _shortened(word)))


def read_scalar(text: str, start: int, role: Role, notes: Notes, trial: bool) -> tuple[Any, int]:
    """Read what stands unquoted at `start`; return the value and where it ends."""
    thousands = _THOUSANDS.match(text, start) if role == "member" and not trial else None
    if thousands:
        notes.add("number_format", start, f"`{thousands[0]}` is no JSON number")
        return number(thousands[0].replace(",", ""), start, notes), thousands.end()
    match = _TOKEN.match(text, start)
    token = match[0].rstrip() if match else ""
    end = start + len(token)
    # `1,.5` and `1.,5`: the point and the comma may have changed places. `6.02,+23`: the comma may
    # stand for an `e`. `5.` on the last line: the point may stand for a comma.
    comma_before = token.startswith((".", "+")) and _DIGIT_AND_COMMA.match(text[start - 2 : start])
    comma_after = token.endswith(".") and _COMMA_AFTER.match(text, end)
    is_swapped = comma_before or comma_after
    refuse_if(is_swapped, "ambiguous", start, "The comma may stand inside a number.")
    refuse_if(not token, "syntax", start, f"A value cannot start with `{text[start]}`.")
    words = token.split()
    if len(words) > 1 and _comma_may_be_missing(text, end, role, words[1]):
        candidates = [token, words[0]]
    else:
        candidates = [token]
    for word in candidates:
        is_read, value = _number_or_literal(word, start, notes)
        if is_read:
            return value, start + len(word)
    _check_word(text, start, token, role, trial=trial)
    notes.add("unquoted_value", start, "value without quotes")
    return token, end


def _comma_may_be_missing(text: str, end: int, role: Role, second_word: str) -> bool:
    """Tell whether the words up to `end` may be two values, or a value and the next key.

    They may in `[1 true]` and in `{a: 1 b: 2}`.
    """
    if role == "member":
        return text[end : end + 1] in {":", "：", "="}
    return _VALUE_AHEAD.match(second_word) is not None


def _number_or_literal(word: str, position: int, notes: Notes) -> tuple[bool, Any]:
    """Tell whether a word is a number or a literal in any spelling, and return what it means."""
    plain = word.lower().replace("infinity", "inf")
    plain = "inf" if plain == "+inf" else plain
    if plain not in _LITERALS:
        value = number(word, position, notes)
        return value is not None, value
    value = _LITERALS[plain]
    if word not in {"true", "false", "null"}:
        kind = "non_finite" if isinstance(value, float) else "literal_spelling"
        notes.add(kind, position, f"`{word}` is no JSON literal")
    return True, value


def _check_word(text: str, start: int, token: str, role: Role, *, trial: bool) -> None:
    """Refuse what stands unquoted at `start` unless it can only be a string without its quotes."""
    end = start + len(token)
    after = text[end : end + 1]
    # `{"a": x", "b": 1}`: the opening quote is missing.
    is_half_quoted = after in {'"', "”"} and token[0].isalnum() and not resembles_value(token)
    if is_half_quoted and FOLLOW[role].match(text, end + 1):
        # `["said \\"no", then left"]`: the string before may go on here.
        may_go_on = role == "element" and _STRING_BEFORE.search(text, max(start - 20, 0), start)
        # `{"a":1,"b": x"}`: the string may begin with the space.
        is_open = may_go_on or _has_more_space(text, start)
        # `{a: Ann"}`: so may the text without quotes, where no value has any.
        edits = () if is_open or not _QUOTED_VALUE.search(text) else (Edit(start, 0, '"'),)
        raise Unreadable("syntax", start, "A string has no opening quote.", *edits)
    is_elided = ELIDED.search(token.replace("_", " "))
    refuse_if(is_elided, "elided", start, f"`{token[:40]}` stands for what was left out.")
    is_code = _UNSAYING.match(token) or _CODE.match(token) or after in {"(", "<", "\\", "="}
    is_variable = _NAME.fullmatch(token) and _is_python(text, start)
    # `tru`, `nul l`, `fal,se`: a literal or a number of which one character is wrong.
    words = token.split()
    at_comma = _WORDS_AT_COMMA.match(text, start)
    joined = "".join(at_comma.groups()) if at_comma else token
    is_misspelt = any(map(resembles_value, (token, words[0], words[-1], joined)))
    # `Bob # the owner`: the text may go on with the mark.
    # `4, o'clock` at the end of a line: the rest of a comment that has lost its mark.
    at_line_end = role == "element" and _AT_LINE_END.match(text, end)
    on_line = at_line_end and _ELEMENT_BEFORE.search(text, max(start - 20, 0), start)
    refuse_if(on_line, "ambiguous", start, "The rest of a comment, or a value without quotes.")
    # `true 、 required`: the comma may stand for a comment's mark.
    behind_mark = text[max(start - 9, 0) : start].rstrip().endswith("、")
    is_unclear = is_misspelt or behind_mark or _COMMENT_AFTER.match(text, end)
    if trial or is_code or is_variable or is_unclear or not _WORD.fullmatch(token):
        raise Unreadable("syntax", start, f"`{token[:40]}` has no single JSON meaning.")


def _has_more_space(text: str, start: int) -> bool:
    """Tell whether more white space stands before a value than before others on their lines."""
    line_before = text[max(0, start - 100) : start].rpartition("\n")[2]
    space = line_before[len(line_before.rstrip()) :]
    if len(space) == len(line_before):  # it starts the line
        one_less = space.endswith(" ") and re.search(rf"\n{space[:-1]}\S", text)
        return bool(one_less)
    return len(space) > 1 or (space == " " and _TIGHT.search(text) is not None)


def _is_python(text: str, position: int) -> bool:
    """Tell whether the quote nearest to `position`, of those before it or else after, is single."""
    before = re.findall(r"['\"]", text[max(position - 200, 0) : position])
    after = re.search(r"['\"]", text[position : position + 200])
    return (before[-1] if before else after[0] if after else "") == "'"


def read_emphasized(emphasized: re.Match[str], notes: Notes) -> tuple[Any, int]:
    """Read the value between two marks of Markdown; return it and where the marks end."""
    notes.add("markdown", emphasized.start(), f"`{emphasized['mark']}` around a value left out")
    try:
        return strict_value(emphasized["value"]), emphasized.end()
    except ValueError:
        start = emphasized.start("value")
        raise Unreadable("syntax", start, "This is no JSON value.") from None
