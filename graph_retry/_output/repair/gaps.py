"""Missing commas and colons: whether another change would explain the same text as well.

A separator is supplied only where it is the one thing missing. Beside a string that starts or ends
with that separator, the two may have changed places; beside an empty container, a bracket may have
moved; beside a single character, that character may be too much.
"""

import re
from typing import Any

from graph_retry._output.repair.frame import Frame, column
from graph_retry._output.repair.report import Notes, Unreadable, refuse_if
from graph_retry._output.repair.scan import ELLIPSIS, KEY_AHEAD, char_at

COLON = re.compile(r"=>|:=|->|::|[:：=＝]")
ONE_NUMBER = "One number with a space in it, or two numbers."
VALUE_AHEAD = re.compile(r"[\"'“‘`\[{(\-\d]|(?i:true|false|null|none|nan|infinity)\b")
_GAP = r"(?:\s|\\[nrt])"
_SPREAD = rf"\[{_GAP}+\]|\{{{_GAP}+\}}"
_LEFT_DOUBT = re.compile(rf"(?:[,，][\"'”]|\.|,\s*[\]}}]|{_SPREAD})\Z")
_RIGHT_DOUBT = re.compile(rf"[\"'“][,，]|{_SPREAD}")
_EMPTY_AT_END = re.compile(rf"(?:\[{_GAP}*\]|\{{{_GAP}*\}})\Z")
_EMPTY_AHEAD = re.compile(rf"\[{_GAP}*\]|\{{{_GAP}*\}}")
_WORD = re.compile(r"(?!(?i:true|false|null|none|nan|infinity)\b)[^\W\d]")
# In `u'so'` the letter belongs to the quote.
_BARE_WORD = re.compile(r"(?![uU][\"'])[^\W\d_]")
_COLON_LEFT = re.compile(r"[:：=][\"']\s*\Z|[”’`]\s*\Z|\n\s*\Z")
_COLON_RIGHT = re.compile(r"\(\s*\)|[\"'][:：=]|[“„‘`]|[-+]|(?<=[\"'”])\.|\"\"|''|\[\s*\]|\{\s*\}")
_NUMBER = re.compile(r"[-+.]?\d")
_ONE_CHARACTER = re.compile(r"\w(?!\w)")
_ESCAPED_SPACE = {"\\n", "\\t", "\\r", "\\f", "\\v"}
_COMMENT_MARK = re.compile(r"//|#|/\*")
_COMPACT_COMMA = re.compile(r",[^\s,]")
_LONG_ELEMENT = re.compile(r"[\[,]\s*-?[\d.]*\d\d")
_BRACE_OF_KEY = re.compile(r"[{\]]\s*(?:\w|[\"'“][^\"'”:]*[}\]])")
_NUMBER_AT_END = re.compile(r"(?:[\d.]|0[xX][\da-fA-F_]+)\Z")
_TWO_COMMAS = re.compile(r",(?:\s|/\*[^*]*\*/|(?://|#)[^\n]*\n)*,")
# Between two strings in the notation of `pprint`, which puts its commas at the end of a line.
_LEADING_COMMA = re.compile(r"'[ \t\r]*\n[ \t]*,[ \t]*'")
_WIDE_COMMA = re.compile(r"[\d.][，、]\s*[\d.+\-,\]})/#]|[，、]\s*[^\W\d]\w*\s*:")
_LONE_COMMA = re.compile(r",\s*\n[ \t]*,[ \t\r]*\n")
_GROUPED = re.compile(r"(?<!\d)[1-9]\d{0,2}[ \xa0]+\d{3}(?!\d)")


def comma_is_doubtful(frame: Frame, start: int) -> bool:
    """Tell whether something else than a comma may be missing before what begins at `start`."""
    text, end = frame.text, frame.end
    left = text[max(frame.value_at, end - 100) : end]
    empty = _EMPTY_AT_END.search(left) or (frame.kind == "[" and _EMPTY_AHEAD.match(text, start))
    if empty and ("\n" not in text[end:start] or frame.kind == "["):
        return True
    # A word without quotes, or a key without them among others that have them.
    other_key = text[start].isalnum() or text[frame.starts[-1]].isalnum()
    word = _WORD.match(text, frame.value_at) or (
        frame.kind == "{" and other_key and text[frame.starts[0]] in "\"'"
    )
    # `'one '\n'two': 3`: a string in parts, of which the second one became a key.
    in_parts = frame.kind == "{" and _is_cut_at_space(text, end) and "\n" in text[end:start]
    # `['ab' 'cd']`: one string in Python.
    in_parts = in_parts or (frame.kind == "[" and text[end - 1] == text[start] == "'")
    # `"x"  note: 1`: the mark of a comment may be missing.
    in_parts = in_parts or text[end:start] in {"  ", " \t"}
    # `}$lines: []`: the sign may stand for the comma.
    word = word or text.startswith("$", start)
    # On a line that is indented otherwise: the bracket before it may have closed too early.
    columns = column(text, frame.starts[0]), column(text, start)
    in_parts = in_parts or (min(columns) >= 0 and columns[0] != columns[1])
    return bool(word or in_parts or _LEFT_DOUBT.search(left) or _RIGHT_DOUBT.match(text, start))


def colon_is_doubtful(text: str, start: int) -> bool:
    """Tell whether something else than a colon may be missing before the value at `start`."""
    before = text[max(start - 200, 0) : start]
    return bool(_COLON_LEFT.search(before) or _COLON_RIGHT.match(text, start))


def second_comma_is_doubtful(text: str, end: int, start: int) -> bool:
    """Tell whether one of two commas after `end` may be the last character of a string before it.

    It may also stand in the place of the first letter of a key without quotes at `start`. No member
    before the commas is an `end` of -1.
    """
    # `100,,`: the first one may stand in the place of a digit.
    number = _NUMBER_AT_END.search(text, max(0, end - 20), max(0, end))
    in_number = number and _TWO_COMMAS.match(text, end)
    # `'x',, ` where it ended the string, and `(5),, ` where it made a tuple of the number.
    behind_string = end > 0 and text[end - 1] in "\"')"
    # Alone on its line, the second one stood behind a bracket.
    on_own_line = _LONE_COMMA.match(text, end)
    key_ahead = _may_be_name(text[start : start + 1])
    return bool(in_number or behind_string or on_own_line or key_ahead)


def refuse_moved_comma(notes: Notes, text: str, start: int, end: int) -> None:
    """Refuse a document with a comma too many if it may be one that is missing elsewhere."""
    missing, last = notes.count("missing_comma"), notes.count("trailing_comma")
    extra = notes.count("extra_comma")
    # `{"a": 1 "b": 2,}`: it may have moved from one to the other.
    # So it may from a place where it divided a string in parts.
    divides = missing and _LEADING_COMMA.search(text, start, end)
    moved = divides or missing == last + extra == 1
    refuse_if(moved, "ambiguous", start, "A comma is missing, and another one is too many.")
    # `[9，9]`: a wide one alone may stand in a number, or in the place of a digit.
    # `"a": 1 ， note: 2`: it may stand in the place of a comment's mark.
    wide = notes.count("full_width") == 1 and _WIDE_COMMA.search(text, start, end)
    refuse_if(wide, "ambiguous", start, "The comma may stand in a number, or for another mark.")
    # It may have divided a string in parts, made a tuple of `(5)`, or stand for a letter of a word.
    # Of `1,, "c": 2},`, the brace between the two may have moved.
    other = notes.count("concatenation", "parentheses", "unquoted_value", "trailing_comma")
    # `{"a": [12],, "b": 1}`: it may be from the list. Where a space follows each comma, it would
    # still stand between the two digits.
    document = text[start:end] if extra else ""
    in_number = _LONG_ELEMENT.search(document) and _COMPACT_COMMA.search(document)
    is_doubtful = extra and (other or in_number)
    refuse_if(is_doubtful, "ambiguous", start, "A comma is too many, or is from another place.")


def brace_may_be_text(text: str, brace: int) -> bool:
    """Tell whether a bracket too many may be a character of the key behind it.

    In `{a": 1` it stands in the place of a quote, in `{"k}": 1` it has changed places with one.
    """
    return _BRACE_OF_KEY.match(text, brace) is not None


def second_colon_is_doubtful(text: str, start: int, end: int) -> bool:
    """Tell whether one of two marks, from `start` to `end`, may be a part of what is beside it."""
    beside = text[end : end + 1] in {*"0123456789.\"'“‘"}
    return beside or _may_be_name(text[start - 1])


def _may_be_name(char: str) -> bool:
    """Tell whether `char` may belong to a key without quotes."""
    return char.isalnum() or char in {"_", "$"}


def may_be_one(frame: Frame, start: int) -> bool:
    """Tell whether the last value and that at `start` may be one number, or one of them extra."""
    text, left = frame.text, frame.value_at
    numbers = _NUMBER.match(text, left) and _NUMBER.match(text, start)
    return bool(numbers or _ONE_CHARACTER.match(text, left) or _ONE_CHARACTER.match(text, start))


def check_element_ahead(frame: Frame, start: int) -> None:
    """Refuse a list that goes on without a comma, unless another element begins at `start`."""
    text, end = frame.text, frame.end
    # `1 234 567`: digits in groups of three.
    is_grouped = _GROUPED.match(text, frame.value_at) and "\n" not in text[end:start]
    refuse_if(is_grouped, "ambiguous", start, ONE_NUMBER)
    # `[1` and `[2]]` on the next line: documents that follow one another, of which one broke.
    one_is_list = text.startswith("[", start) or text.startswith("[", frame.value_at)
    is_next_line = one_is_list and text[start - 1] == "\n"
    refuse_if(is_next_line, "ambiguous", start, "One list, or one on each line.")
    char = char_at(text, start)
    # `[1][2]`: between two brackets there need be no space.
    is_apart = start > end or (text[end - 1] in "]}" and char in {"[", "{"})
    if not char or not is_apart or not VALUE_AHEAD.match(text, start):
        raise frame.broken(start, char)


def refuse_prose(frame: Frame, element: str, before: list[Any]) -> None:
    """Refuse words without quotes in a list that holds anything else `before` them.

    In `["null", it's the name]` the comma may stand in the place of a comment's mark, in `["a", //`
    with `note]` on the next line a line break may have come into the comment, and in `[0x2,ab]` the
    comma into a number.
    """
    text, start = frame.text, frame.value_at
    if not _BARE_WORD.match(text, start):
        return
    behind = text[frame.starts[-2] if before else start : start]
    is_doubtful = " " in element or behind[-1:] == "," or _COMMENT_MARK.search(behind)
    if is_doubtful:
        pairs = zip(before, frame.starts, strict=False)
        only_words = all(isinstance(e, str) and _BARE_WORD.match(text, at) for e, at in pairs)
        refuse_if(not only_words, "ambiguous", start, "Words without quotes, or a comment.")


def goes_on(frame: Frame, start: int, notes: Notes) -> bool:
    """Tell whether a string goes on in a next literal at `start`, as `pprint` writes long ones."""
    text, end = frame.text, frame.end
    literal = text[start : start + 1] in {'"', "'"}
    if not literal:
        return False
    # `('a' 'b')`: nothing prints a tuple so, and a comma may be missing.
    is_cut = _is_cut_at_space(text, end) and "\n" in text[end:start]
    in_tuple = frame.kind == "(" and not is_cut
    refuse_if(in_tuple, "ambiguous", start, "One string in two parts, or a comma is missing.")
    is_key = frame.kind == "{" and KEY_AHEAD.match(text, start)
    if is_key or not is_cut:
        return False
    # `pprint` writes neither comments nor keys without quotes, and no part of white space alone.
    is_other = (
        notes.count("comment", "unquoted_key") or text[frame.value_at + 1 : end - 1].isspace()
    )
    # It fills its lines.
    in_list = frame.kind == "[" or frame.comma >= 0
    is_other = is_other or (in_list and end - frame.value_at < 12)
    two_readings = frame.kind != "{" and (text[end - 1] == text[start] == '"' or is_other)
    refuse_if(two_readings, "ambiguous", start, "One string in two parts, or a comma is missing.")
    return True


def _is_cut_at_space(text: str, end: int) -> bool:
    """Tell whether the string that ends at `end` has white space at its own end."""
    return text[end - 1] in "\"'" and (
        text[end - 2].isspace() or text[end - 3 : end - 1] in _ESCAPED_SPACE
    )


def refuse_absence(text: str, start: int, what: str) -> None:
    """Refuse the end of the text, or a placeholder, where a key, colon or value should stand."""
    char = char_at(text, start)
    if char == "":
        raise Unreadable("truncated", start, f"The text ends where a {what} should stand.")
    if char == "<" or ELLIPSIS.match(text, start):
        raise Unreadable("elided", start, "A placeholder stands in the place of data.")
