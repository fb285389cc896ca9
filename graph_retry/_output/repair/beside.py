"""What stands directly before or after an answer: prose, or more of the same data.

An answer that goes on in what touches it, or that lost a bracket to it, is only a piece.
"""

import re

from graph_retry._output.repair.mend import STRAY, Document
from graph_retry._output.repair.report import refuse_if
from graph_retry._output.repair.scan import EDGES

# The end of a line on which an answer is announced: `Answer: `, `x = `, `Here are the users: `.
ANSWER_LABEL = re.compile(
    r"(?i)(?:\A|[=>]|\b(?:answer|results?|output|json|response|list|array|data|here\b.*)"
    r"(?::|\s(?:is|are|would be):?\s))[\s`*_]*\Z"
)
# Another field on that line, or a quote or brace before it: `id: 5, data: `, `"data: `.
_OTHER_FIELD = re.compile(r"[:=]\s*[^\s:=]|\A\s*[\"'{]")
_OTHER_VALUE = re.compile(r"[\w$\"'] ?(?:=>|[:=])\s*(?:[\"'\d{\[-]|`(?!``)|(?:true|false|null)\b)")
_ONLY_LABEL = re.compile(r"(?:<\w+>|\W)*[a-z_$][\w$]*\s*[:=]\s*")
_FIELD_AHEAD = re.compile(
    r"\s*+[\w$.-]+ ?(?:=>|[:=])\s*(?:[\"'`\d{\[-]|(?i:true|false|null|none)\b)"
)
# `5` and `[ ]` on the next line: they stood around it.
_SCALAR_END = re.compile(
    r"(?i)(?:[\"'”]|\b(?:[\d.+-]*\d|0x[\da-f]+|true|false|null|none)|\n[ \t]*\))"
    r"(?:\s|/\*[^*]*\*/)*\Z"
)
_LITERAL_AHEAD = re.compile(r"\s*(?:(?i:true|false|null|none)\b|(?:[-+]\.?|\.)\d)")
_STRING_AHEAD = re.compile(r"\s*(?:[\"'“]|`(?!``))")
# The rest of a line on which no sentence goes on: punctuation, then a tag, a comment or nothing.
LINE_END = re.compile(r"[\s`.,;)]*(?:</|<\||//|/\*|#|\Z)")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’"}
# What stands before a document that is a piece of something else.
_GAP = r"(?:\s|/\*[^*]*\*/|(?://|#)[^\n]*\n)*"
_BEFORE_A_PIECE = re.compile(
    # `"a", {` or `1, {`: an element of a list before this one.
    rf"(?:[\"'”’`\d\]}})]|\b(?:true|false|null|True|False|None)){_GAP}[,，]{_GAP}\Z"
    # `: , {`: nothing stands before the comma.
    r"|[:=>(]\s*[,，]\s*\Z"
    # `"a": {`: a key.
    r"|[\"'”]\s*(?:=>|[:：=])\s*\Z"
    # `}: {`: a colon in the place of a comma.
    r"|(?:[\]}][ \t]*[:：]|\}[ \t]*=)[ \t]*\Z"
    # `"a" {`: a string, with the comma or colon missing.
    r"|[\"'”][ \t]+\Z|[^\s`]`\Z"
    # `[x {`: a bracket that nothing closes.
    r"|[\[{]\s*[^\[\]{}\n]*\Z"
    # `| {`: the cell of a table.
    r"|\|\s*\Z"
    # `User({` and `f(x={`: an argument of a call.
    r"|\b[A-Z]\w*\(\Z|\([^()\n]*=\s*\Z"
)
# A comment on the last line of the answer, and a field on the next one, or a comma before it.
_COMMENT = r"(?:/\*[^*]*\*/|(?://|#)[^\n]*+)"
_BEHIND_COMMENT = re.compile(
    rf"[ \t]*{_COMMENT}(?:\s*+{_COMMENT})*+\s*+(?:[\[\]{{}}]|[\"']?[\w$@.-]+[\"']?[ \t]*[:=])"
    r"|[ \t]*/\*[^*]*[\[\]{}][^*]*\*/|[,，][ \t]*(?://|#|/\*)"
)
_LABELS = re.compile(r"[=:]\s*[\w$]+\s*[:=]\s*\Z")
_BRACKET = re.compile(r"[\[\]{}]")
_QUOTE = re.compile(r'(?<!\\)"')
_ELLIPSIS_AFTER = re.compile(r"\s*(\.{3}|…)")
_STRING = r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'"
_SCALAR = rf"(?:(?:{_STRING})++|0x[\da-fA-F]+|[-+]?\.?\d[\d.eE+-]*|(?i:true|false|null|none))"
# Marks around a string, and what escapes them, as JSON has them.
_AS_PLAIN_QUOTES = str.maketrans({"“": '"', "”": '"', "`": '"', "\\": None})
_ESCAPED_SPACE = re.compile(r"\\+[nrt]")
# A string, number or literal on a line of its own, and at most comments between it and the answer.
_SCALAR_BEFORE = re.compile(
    rf"(?:\A\ufeff?|\n|<\w+>)\s*,?\s*{_SCALAR}[ \t\r]*,?\s*(?:(?:(?://|#)[^\n]*\n|/\*[^*]*\*/|<!--[^>]*-->)\s*+)*+\Z"
)
_SCALAR_AFTER = re.compile(
    rf"\s*+,?\s*+(?:(?:(?://|#)[^\n]*\n|/\*[^*]*\*/)\s*+)*+{_SCALAR}[ \t\r]*(?:[,\]}}\n#/<]|```|\Z)"
)
# One character alone beside the answer, up to the start or the end of the line, as in `*{"a": 1}`;
# marks that prose or markup puts there are none.
_LONE_CHARACTER = re.compile(
    r"[^\s\u200b-\u200f\u2060-\u2064\ufeff:=(>`;.!)<\"'\[\]{}#/](?=\s*(?:\n|\Z))"
)
# A line of a list, whole or not; `[1]` is a footnote, `[section]` a title.
_LIST_LINE = re.compile(
    r"(?m)^(?![^\w\n]*\[\d*\][^\w\n]*$)(?:[A-Za-z]?(?=[^A-Za-z\n]*+$)[^\[\n]*\["
    r"|[ \t]*(?:\[[A-Za-z_. -]*[^A-Za-z_. \-\]\n]|\w\[[^\]\n]*,|(?:true|false|null)\[)"
    r".*\][ \t]*,?\r?$)"
)
# `{...}.keys()` and `{...}(x)`: a value in code.
_ATTRIBUTE = re.compile(r"\.[a-z_]|\(|[-+]\.?\d|,[;<]")
# `.[5`: a point that stood behind the bracket.
_POINT = re.compile(r"(?<![\w)\]\"'.])\.\Z")


def check_beside(text: str, answer: Document, before: str, after: str) -> None:
    """Refuse an answer that goes on in what stands directly before or after it."""
    # `5` alone on the line before, or on the next: an element of a list that lost its brackets.
    has_scalar = _has_scalar(before[-200:], after)
    if _is_empty(answer) or answer.has_repair("odd_quotes", "escaped") or "“" in after:
        parts = (_ESCAPED_SPACE.sub("\n", part) for part in (before[-200:], after[:5000]))
        has_scalar = has_scalar or _has_scalar(
            *(part.translate(_AS_PLAIN_QUOTES) for part in parts)
        )
    before, after = _outside_quotes(text, answer, before, after)
    line_before = before.rpartition("\n")[2]
    # `({"a": 1}, (2,))`: an element of a tuple.
    in_tuple = line_before.rstrip()[-1:] == "(" and after.lstrip()[:1] == ","
    # `[:]` on another line: a list that broke.
    lines = before + "\n" + after
    is_list = isinstance(answer.value, list) and "[" in lines
    has_list = is_list and _LIST_LINE.search(lines)
    attached = has_scalar or has_list or in_tuple or _is_attached(before, line_before, after)
    refuse_if(attached, "syntax", answer.start, "More stands beside the answer than prose.")
    _refuse_lost_bracket(answer, before, line_before, after)
    # `- code: "print({\\"a\\": 1})"` or `"x = {a: 1};"`: the inside of a string that began before.
    ends_after = len(_QUOTE.findall(after.partition("\n")[0])) % 2
    is_inside = answer.has_repair("escaped") or ends_after
    in_string = is_inside and len(_QUOTE.findall(line_before)) % 2
    # `"x" /* e.g. {"a": 1} */` and `“x = {a: 1}”`: so does the inside of a comment or a string.
    in_comment = before.rfind("/*") > before.rfind("*/")
    in_string = in_string or in_comment or line_before.count("“") > line_before.count("”")
    refuse_if(in_string, "syntax", answer.start, "This looks like a part of something else.")
    # `Send {"name": pending} to it.`: a placeholder, where data would have its quotes.
    placeholder = answer.has_repair("unquoted_value") and _is_in_sentence(
        answer, line_before, after
    )
    refuse_if(placeholder, "syntax", answer.start, "In a sentence, data would be quoted.")
    # `{"a": 1}, "b": 2}`: the answer was closed too early.
    goes_on = STRAY.match(after) or _BEHIND_COMMENT.match(after)
    refuse_if(goes_on, "syntax", answer.end, "More follows than one document.")
    # `{"a": 1} ...`: the writer says that this is not all.
    refuse_if(_ELLIPSIS_AFTER.match(after), "elided", answer.end, "Data was left out.")


def _is_empty(answer: Document) -> bool:
    return answer.value in ([], {})


def _has_scalar(before: str, after: str) -> bool:
    """Tell whether a string, number or literal stands alone on the line before, or the next."""
    return bool(_SCALAR_BEFORE.search(before) or _SCALAR_AFTER.match(after))


def _refuse_lost_bracket(answer: Document, before: str, line_before: str, after: str) -> None:
    """Refuse an answer if a bracket of it may stand elsewhere than where its data begin or end."""
    if not answer.repairs and not _is_empty(answer):  # no bracket of strict JSON is lost
        return
    # `user: {"a": 1}}`: the last brace may close an object that began before the answer.
    # Where keys have no quotes, the label may be one, too.
    is_list = isinstance(answer.value, list)
    may_be_key = answer.has_repair("unquoted_key", "single_quotes") or is_list
    is_label = not may_be_key and ANSWER_LABEL.search(line_before)
    is_field = not is_label or _OTHER_FIELD.search(line_before)
    label = line_before.rstrip()
    in_field = label.endswith(("=", "=>")) or (label.endswith(":") and is_field)
    opened_before = "{" in line_before or before.count("{") > before.count("}")
    # `data: {"a": 1}}`: the word may be a key without quotes, and the first brace is missing.
    in_field = in_field or _ONLY_LABEL.fullmatch(line_before) is not None
    # `user: {{"a": 1}}`: one of the two may have stood before the word.
    lost_brace = (answer.has_repair("extra_closer") and (in_field or opened_before)) or (
        answer.has_repair("doubled_braces") and in_field
    )
    refuse_if(lost_brace, "syntax", answer.start, "An opening brace may be lost.")
    # `a: 1, b: []`, or `a: 1` and `{}` on the next line: the brackets of the whole may have moved.
    field_ahead = _FIELD_AHEAD.match(after)
    goes_on = _STRING_AHEAD.match(after) or field_ahead or _LITERAL_AHEAD.match(after)
    in_data = _OTHER_FIELD.search(line_before) or _OTHER_VALUE.search(before)
    is_piece = _is_empty(answer) and (goes_on or in_data or _SCALAR_END.search(before[-200:]))
    # `a: 1` and `{, b: 2}` on the next line: it stood before the other field.
    is_piece = is_piece or (answer.has_repair("extra_comma") and _OTHER_VALUE.search(before))
    refuse_if(is_piece, "syntax", answer.start, "Brackets without contents beside other data.")
    # `{"a": 1,} b: 2`: the brace stood at the end, where nothing was left behind the last comma.
    # `[null} “[”, 1]`: it stands for a comma.
    # `{a: 1}` and `b: 2` on the next line: so it did where all keys are without quotes.
    on_next_line = field_ahead and "\n\n" not in field_ahead[0]
    ends_early = (goes_on and answer.has_repair("trailing_comma", "supplied")) or (
        on_next_line and answer.has_repair("unquoted_key")
    )
    refuse_if(ends_early, "syntax", answer.end, "More data follows than the answer has.")


def _outside_quotes(text: str, answer: Document, before: str, after: str) -> tuple[str, str]:
    """Return what stands before and after the answer and the pair of quotes around it, if any."""
    if before.rstrip()[-3:] == after.lstrip()[:3] in {'"""', "'''"}:
        # Triple quotes are read as single ones.
        before, after = before.rstrip()[:-2], after.lstrip()[2:]
    quote = before[-1:]
    if quote not in _QUOTES or after[:1] != _QUOTES[quote]:
        # One quote without the other is the end of a string: `": {"a": 1}`.
        line_end = before.removesuffix("<![CDATA[")[-300:]
        piece = quote in {'"', "'", "”"} or _BEFORE_A_PIECE.search(line_end)
        refuse_if(piece, "syntax", answer.start, "This looks like a part of something else.")
        return before, after
    before, after = before[:-1], after[1:]
    # `'{"a": "b\\n"}'`: the backslashes may escape for the outer string, or for the inner one.
    escapes = quote in {'"', "'"} and "\\" in text[answer.start : answer.end]
    refuse_if(escapes, "ambiguous", answer.start, "Escapes inside a quoted document.")
    # `Bob,'{"a": 1}',5`: a field of a row. `[] '{"a": 1}'`, `x = name: '{"a": 1}'`: a value.
    line_before, line_after = before.rpartition("\n")[2], after.partition("\n")[0]
    is_value = _LABELS.search(line_before) or _BRACKET.search(before[-99:] + after[:99])
    is_field = is_value or line_before.rstrip()[-1:] == "," or line_after.lstrip()[:1] == ","
    refuse_if(is_field, "syntax", answer.start, "This looks like a part of something else.")
    return before, after


def _is_attached(before: str, line_before: str, after: str) -> bool:
    """Tell whether characters without a meaning of their own touch the answer.

    They may be the remains of a key or a value, or make code of it: `x{"a": 1}`, `-["x"]`,
    `{"a": 1}|`, `{"a": 1}.keys()`.
    """
    # "[1]`x`": no code that began before the answer ends there.
    is_code = after.startswith("`") and not after.startswith("``")
    in_code = is_code and line_before.count("`") % 2 == 0
    is_word = before[-1:].isalnum() and not before.lower().endswith("json")
    return bool(
        is_word
        or in_code
        or before[-1:] in {"-", "+"}
        or _POINT.search(before)
        or line_before.strip() in {":", "="}
        or _ATTRIBUTE.match(after)
        or _LONE_CHARACTER.fullmatch(line_before.strip("\ufeff"))
        or _LONE_CHARACTER.match(after)
    )


def _is_in_sentence(answer: Document, line_before: str, after: str) -> bool:
    """Tell whether a short document has words beside it on its line."""
    introduced = line_before.strip(EDGES)[-1:] in {*":=(>`", ""}
    alone = introduced and LINE_END.match(after.partition("\n")[0])
    return not alone and answer.end - answer.start < 50
