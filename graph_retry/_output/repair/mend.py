"""Read one document; where it breaks, try single edits and accept only an undisputed one."""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from graph_retry._output.repair.frame import CLOSE, column, spare_brace
from graph_retry._output.repair.read import Reader
from graph_retry._output.repair.report import Edit, Unreadable, refuse_if, repair
from graph_retry._output.repair.scan import SPACE, STRICT_START, same, strict_part
from graph_retry.records import Repair

_COMMENT = r"(?:/\*[^*]*\*/|(?://|#)[^\n]*\n)"
# What cannot follow a complete document: it would be a piece of it, or of another one.
STRAY = re.compile(
    rf"{SPACE}(?:"
    # `, "b"`, `, 1`, `, name:`: another element or member, with at most comments before it.
    rf"(?:{_COMMENT}{SPACE})*+[,，]{SPACE}(?:{_COMMENT}{SPACE})*+"
    r"(?:\\*[\"'“`]|[{\[\d\]}]|\(\s*(?:[\d\"'\[{(-]|(?i:true|false|null|none)\b)|[-+.]{1,2}\d|(?i:true|false|null|none)\b|(?:[^\W\d]|\$)[\w$.-]*\s*[:=])"
    # `:`, another closing bracket unless it ends a CDATA section, or a number. `2 rows were found.`
    # or `1. First` on a line of its own is prose.
    r"|(?!\]\]>)[:：\]}]|(?!(?<=\n)\d+(?:[.)]|(?: [^\W\d]+){2})[ \t])-?\d)"
    # A quote, a word or a bracket that touches the document.
    r"|\\*[\"']|[“”‘’\w\[{]|\\u[\da-fA-F]|\$\w*\s*[:=]"
)
# A string at the end that a brace closes, if the last quote changed places with it.
_OPEN_STRING = re.compile(r"\{(?:[^{}\"]*(?:\\.[^{}\"\\]*)*\"|[^{}']*(?:\\.[^{}'\\]*)*')[\s}\]]*\Z")
# A string with an open brace in it, `"{x"}`, or with nothing: a closing brace may have left it. One
# with a space at its end, `'x '` and a line break: the brace may stand for a second part.
_OPEN_BRACE_IN_STRING = re.compile(
    r"(?:(?:\{[^{}\"']*|[\"'])[\"']|(?:\s|\\[nrtfv])[\"']\s*\n\s*)\}\Z"
)
# A number that a brace closes, which may stand in the place of its last digit.
_NUMBER_AT_END = re.compile(r"(?:\d|0[xX][\da-fA-F_]+)\}+\Z")
# A number that a brace closes on its line, and another one on the next: in the layout of
# `{ "a": 1 }`, too, the first one may stand in the place of a digit.
_NUMBER_AND_BRACES = re.compile(r"\d\}\s+\}")
# Repairs that took a judgement about the text, not about its notation alone.
_JUDGEMENTS = {
    "missing_comma",
    "extra_comma",
    "colon",
    "missing_colon",
    "inner_quotes",
    "unquoted_value",
    "number_format",
}
# Notations in which a mark of structure is more easily taken for another one: only these are read,
# and nothing is supplied or left out as well.
_EDITING = ("missing_comma", "extra_comma", "inner_quotes", "number_format")
_RARE_NOTATIONS = ("odd_quotes", "doubled_braces")
_LONE_COMMA = re.compile(r"\n[ \t]*,(?=[ \t\r]*(?:\n|//|#|/\*))")
_QUOTE_AND_BRACKET = {quote + bracket for quote in "\"'" for bracket in "{["}
_COMMENT_WITH_QUOTE = re.compile(r"/\*[^*\"]*\"[^*]*\*/")
_EXTRA_BRACES = re.compile(rf"(?:{SPACE}}})+")


@dataclass(slots=True)
class Document:
    """One value with its place in the text; `json` is its text where that is strict JSON."""

    value: Any
    start: int
    end: int
    repairs: list[Repair] = field(default_factory=list[Repair])
    json: str = ""

    def has_repair(self, *kinds: str) -> bool:
        """Tell whether a repair of one of these kinds was made."""
        return any(made["kind"] in kinds for made in self.repairs)


def read_document(text: str, start: int, *, complete: bool | None) -> Document:
    """Read the document that opens at `start`.

    Raises:
        Unreadable: it breaks, and no single edit explains why, or more than one does.
    """
    if not STRICT_START.match(text, start):
        return _read_tolerantly(text, start, complete)
    try:
        value, end = strict_part(text, start)
    except RecursionError:
        raise Unreadable("too_deep", start, "Nested too deeply.") from None
    except ValueError:
        return _read_tolerantly(text, start, complete)
    return _without_extra_braces(text, Document(value, start, end, json=text[start:end]))


def _read_tolerantly(text: str, start: int, complete: bool | None) -> Document:
    """Read a document that is no strict JSON, with one edit where it breaks."""
    reader = Reader(text)
    try:
        value, end = reader.read(start)
    except Unreadable as error:
        if not error.edits or _may_be_cut_off(text, error, complete):
            raise
        if not reader.took_short_cut:
            return edited(text, start, error, complete=complete)
        try:  # Without short cuts, for all the edits that may explain it.
            Reader(text, all_edits=True).read(start)
        except Unreadable as explained:
            return edited(text, start, explained, complete=complete)
        raise
    document = Document(value, start, end, reader.notes.records())
    is_doubtful = document.has_repair(*_RARE_NOTATIONS) and document.has_repair(*_EDITING)
    refuse_if(is_doubtful, "ambiguous", start, "Unusual quotes or braces, and something is wrong.")
    return _without_extra_braces(text, document)


def _may_be_cut_off(text: str, error: Unreadable, complete: bool | None) -> bool:
    """Tell whether the text may just end too early: then an edit would make up its end."""
    at_end = error.refusal["position"] >= len(text.rstrip())
    return error.refusal["kind"] == "truncated" and at_end and not complete


def edited(text: str, start: int, error: Unreadable, *, complete: bool | None) -> Document:
    """Read the document with each edit `error` suggests; raise it unless they make one value."""
    if complete is False or _may_be_cut_off(text, error, complete):
        raise error
    document: Document | None = None
    for edit in dict.fromkeys(error.edits):
        other = _read_edited(text, start, edit)
        if other is None:
            continue
        # `{"a": "x], "b": 1}`: the bracket may stand in the place of the quote.
        may_replace = edit.token in {'"', "'"} and text[edit.position - 1] in "]}"
        is_disputed = may_replace or (document and not same(document.value, other.value))
        position = error.refusal["position"]
        refuse_if(is_disputed, "ambiguous", position, "More than one change would explain this.")
        document = document or other
    if document is None:
        raise error
    return document


def _read_edited(text: str, start: int, edit: Edit) -> Document | None:
    """Read the document with one edit; `None` where it makes no whole document of it."""
    low, high = edit.position, edit.position + edit.length
    # `"{a": 1}`: the brace is not missing, it has changed places with the quote.
    if edit.token in CLOSE and text[high : high + 2] in _QUOTE_AND_BRACKET:
        return None
    # A comma alone on its line: what is missing is the brace or bracket before it.
    lone_comma = None if edit.token in {'"', "'"} else _LONE_COMMA.search(text, start)
    if lone_comma and (edit.length or text[low : lone_comma.end()].strip() != ","):
        return None
    # `print({"a": 1)`: the parenthesis belongs to what stands around.
    in_call = text[max(0, start - 20) : start].rstrip().endswith("(")
    if in_call and text[low:high] == ")":
        return None
    edited_text = text[:low] + edit.token + text[high:]
    reader = Reader(edited_text, trial=True)
    try:
        value, end = reader.read(start)
    except Unreadable:
        return None
    if reader.notes.count(*_RARE_NOTATIONS, "colon"):
        return None
    # `["x", /* "b"], "c": */2`: the mark of a comment has moved, and hides data.
    if reader.notes.count("comment") and _COMMENT_WITH_QUOTE.search(text, start):
        return None
    rest = edited_text[end : end + 9].lstrip()
    if in_call:
        rest = rest.removeprefix(")")
    if STRAY.match(edited_text, end) or rest.startswith((",", ")", '"', "'", "\\")):
        return None
    detail = f"`{edit.token}` supplied" if edit.token else f"`{text[low:high]}` left out"
    reader.notes.add("supplied", low, detail, "assumed")
    # What was read and noted in the edited text is told of the text as it was written.
    shift = edit.length - len(edit.token)
    repairs = reader.notes.records()
    for record in repairs:
        position = record["position"] or 0
        record["position"] = position + shift if position > low else position
    return Document(value, start, end + shift, repairs)


def _without_extra_braces(text: str, document: Document) -> Document:
    """Leave out closing braces after a whole document, unless an earlier one may be the extra."""
    start, end = document.start, document.end
    braces = _EXTRA_BRACES.match(text, end)
    if braces is None or STRAY.match(text, braces.end()):
        return document
    # On lines of their own, or where the layout shows it, they were added at the end. Where commas
    # begin the lines of `{ "a": 1`, its own brace stands there, too.
    one_line = "\n" not in text[start:end] and text[start + 1] != " "
    on_own_lines = one_line and "\n" in braces[0]
    is_laid_out = _is_laid_out(text, start, end)
    may_be_earlier = spare_brace(document.value) and not on_own_lines and not is_laid_out
    judgements = document.has_repair(*_JUDGEMENTS, *_RARE_NOTATIONS)
    is_doubtful = (
        may_be_earlier
        or judgements
        or _OPEN_STRING.search(text, max(start, end - 200), end)
        or _OPEN_BRACE_IN_STRING.search(text, max(start, end - 200), end)
        or _NUMBER_AT_END.search(text, max(start, end - 20), end)
        or (text[start + 1].isspace() and _NUMBER_AND_BRACES.search(text, start, braces.end()))
    )
    refuse_if(is_doubtful, "ambiguous", end, "One of several closing braces is too many.")
    extra = repair("extra_closer", end, "closing braces too many left out", "assumed")
    return replace(document, end=braces.end(), repairs=[*document.repairs, extra])


def _is_laid_out(text: str, start: int, end: int) -> bool:
    """Tell whether its indentation shows that a document begins at `start` and ends at `end`.

    Its brackets start their lines alike, and what stands between is indented deeper.
    """
    lines = text[start:end].split("\n")
    if len(lines) < 3:
        return False
    first, last = (len(line) - len(line.lstrip(" \t")) for line in (lines[1], lines[-2]))
    return first == last > max(column(text, start), 0) == column(text, end - 1)
