"""Choose the JSON document that is the model's answer, and check the text around it.

The answer comes after the model's reasoning, and before the next turn of a chat transcript.
Citations, quotations and broken JSON in sentences are not answers. Equal documents are one answer.
Documents that follow one another directly, or in the tags of tool calls, make a list. Other texts
with several documents are refused, unless exactly one document fits the caller's validator.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from graph_retry._json import identical, written
from graph_retry._output.reading import (
    Document,
    RefusalKind,
    Unreadable,
    Wanted,
    merged,
    refuse_if,
    repair,
)
from graph_retry._output.reading.candidates import (
    CALLS,
    FENCE,
    TURN,
    Candidate,
    candidates,
    in_sentence,
    line_before,
)
from graph_retry._output.reading.lexis import EDGES
from graph_retry._output.reading.strict import strict_value
from graph_retry._patterns import lazy

_THOUGHT = r"(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|plan)"
_REASONING_END = lazy(
    rf"(?i)(?:</{_THOUGHT}>|\[/THINK\]|◁/think▷|<\|channel\|>final(?:<\|message\|>)?)(?![\"'\\])"
)
_REASONING = lazy(
    rf"(?i)<{_THOUGHT}\b[^>]*>|\[THINK\]|◁think▷|<\|channel\|>(?:analysis|commentary)"
)
_MARKS = lazy(  # Tags, bullets and fences may separate the items of a list.
    r"(?:\s|,|;|<[/?|｜]*\w[^<>{}\[\]\n]*>|<!--|-->|\[/?TOOL_CALLS\]|\bfunctools\b|[`~]{3,}\w*|[-*•]\s"
    r"|\d+[.)]\s)*\Z"
)
_ANNOUNCED = lazy(
    r"(?i)(?:[=>(]|\b(?:answer|results?|output|json|list)(?: is| are)?:?|\A)[\s`*_]*\Z"
)
_SCALAR = lazy(  # This matches a value that stands alone in a fence, after a label, or in tags.
    r"(?:[^`~]*```json[ \t]*\n|\s*(?:<[\w|/-]+>\s*)*(?:(?:\*\*)?(?i:(?:(?:the|final|my) )*"
    r"(?:answer|result|output|json))(?:\*\*)?[:\s]\s*(?:\*\*\s*)?)?)\s*(?P<mark>`|\*\*|)"
    r"(?P<value>\"(?:[^\"\\\n]|\\.)*+\"|-?\d[\d.eE+-]*|true|false|null)(?P=mark)\s*"
    r"(?:```[^`~]*|(?:</?[|\w-]+>\s*)*)\Z"
)
_CDATA = lazy(r"<!\[CDATA\[|\]\]>")
_ONLY_FENCE = lazy(r"(?:`{3,}|~{3,})[ \w-]*\s*(?:`{3,}|~{3,})?")
_APART_BEFORE = lazy(r"(?:\A|\n[ \t\r]*\n)[ \t\r]*\Z")
_APART_BEHIND = lazy(r"[ \t\r]*(?:\n[ \t\r]*\n|\s*\Z)")
_DECLINED = lazy(
    r"(?i)\bi['’]?(?: a)?m (?:very |so |really )?(?:sorry|unable|afraid|not able)|\bi apologi[sz]e"
    r"|\b(?:i|we) (?:can(?:no|'|’)t|can not|won(?:'|’)t|will not|am not able)\b|\bas an ai\b"
)


class Reason(NamedTuple):
    """A reason to refuse an answer: the text at its `side` matches `pattern`.

    The sides are `before` (in the answer's paragraph), `after`, and `around` (both, with NUL for
    the answer). Strict JSON in its own fence or paragraph is refused only if `against_all` is true.
    """

    side: str
    kind: RefusalKind
    told: str
    pattern: re.Pattern[str]
    against_all: bool = False


_TAKEN_BACK = lazy(
    r"(?im)(?:[\n.!?…—–]|\A)[^\w\n]{0,10}(?:(?:oh|hm+|no|hold on|ok(?:ay)?|but"
    r"|sorry)[,.… ]{1,4})?"
    r"(?:wait(?=\s*[,.!…:;—–-]|\s+(?:i|that|no)\b)|(?:correction|erratum)\b(?! of)|edit:\s"
    r"|(?:my (?:mistake|bad)|i (?:forgot|missed|misread)\w*)\b|i (?:made|see) an? (?:mistake"
    r"|error)"
    r"|oops|(?:scratch|strike) that|let me (?:fix|correct) (?:that|this|it)\b"
    r"|i (?:take that back|got the \w+ wrong)|sorry,? (?:the|it|that)\b[^.\n]{0,60}\bshould\b"
    r"|(?:please )?(?:ignore|disregard) (?:the (?:above|json above|answer above)|that)\b"
    r"|(?:korrektur|corrección|correction|更正|訂正)\s?[:：]|actually\b[^.\n]{0,80}\b(?:not"
    r"|wrong)\b)"
    r"|(?<!if )(?<!whether )\b(?:that|this|it|the above|(?:the|this) answer)(?:['’]s| is| was) "
    r"(?:wrong|incorrect|not (?:right|correct))\b|\bit should (?:be|have been)\b"
)
_NEGATED = lazy(
    r"(?i)(?:\b(?:not|never)(?: (?:return|use|write|output|say))?|\b(?:wrong|bad|invalid"
    r"|incorrect)"
    r"(?: (?:answer|output|json|example))?|\binstead of|\brather than|~~|<del>)[\s:`*]*\Z"
)
_ALTERNATIVE = lazy(
    r"\A[\s`]{0,9}(?:(?:or|\|\|?)\s(?:null|none|nothing|an? empty)\b|(?:if|unless)\b(?! you))"
)
_OMITTED = lazy(
    r"(?im)^[^\w\n.…]*(?:\.\.\.|…)[^\w\n]*$|^\W{0,20}[(\[]?(?:truncated|partial|snip(?:ped)?)[)\]]"
    r"|\b\d+ (?:more|others?|further|additional)\b[^.\n]*\b(?:omitted|follow|left out"
    r"|truncated)"
    r"|\b(?:rest|remain(?:der|ing))\b[^.\n]{0,40}\b(?:omitted|truncated|left out|follows?)"
    r"|\bto be continued\b|\A\W*(?:and )?\d+ (?:more|others)\W*\Z|\bpart \d+ of (?!1\b)\d"
)
_PIECE = lazy(  # A document after such text is a part of something larger.
    r"[A-Za-z0-9_$%&+/@|\\,\[-]\Z|[^\s`]`\Z|[\"'”]\s*\Z"
    r"|(?:[\"'”\]}\d]|\btrue|\bfalse|\bnull)\s*,\s*\Z|[\"'”}]\s*[:=][ \t]*\Z"
    r"|[\[{][^\[\]{}\n]*\Z|\|[ \t]*\Z|\b[A-Z]\w*\(\Z|\([^()\n]*=\s*\Z"
)
_OPEN_QUOTE = lazy(r"(?m)^[^\"\n]*+(?:\"[^\"\n]*+\"[^\"\n]*+)*+\"[^\"\n]*+\Z")
_CODE = lazy(
    r"(?m)^[^\S\n]*(?:def \w+\(|class \w+[:({]|return\b|function\b|SELECT\b|interface \w"
    r"|#include\b)"
)
_FIELD = r"(?:^[^\S\n]*(?:- +)?[\w.-]+ *[:=](?: +\S| *$)|^[^\S\n]*- +\S|^\[[a-z][\w.-]*\]\s*$)"
_OWN_FIELD = (
    r"^[^\S\n]*(?:- +)?(?!(?i:answer|final|result|output|json|response|action))\w[\w. -]* *[:=]"
    r"(?:[ \t]+|\n[ \t]+)\0"
)
_FIELDS = lazy(rf"(?m){_FIELD}[\s\S]{{0,2000}}{_OWN_FIELD}|{_OWN_FIELD}[\s\S]{{0,2000}}{_FIELD}")
_MEMBER = lazy(r"[\"“'][^\"“”'\n]*[\"”']\s*[:：]\s*(?:[\"“'{\[\d-]|(?i:true|false|null)\b)")
_SCALAR_LINE = lazy(
    r"(?m)^[ \t]*(?:\"[^\"\n]*\"|'[^'\n]*'|[-+.]?\d[\w.]*|(?i:true|false|null|none))"
    r"[ \t]*[,;]?[ \t\r]*(?:(?://|#|/\*).*)?$"
)
_ON_LINE = lazy(r"(?m)^[ \t]*(?:\{|\[(?!\^?\d+\]|[A-Za-z_. -]+\]))")
_LOOSE = "Brackets or members stand around the answer"
# fmt: off
REASONS = (
    Reason("after", "ambiguous", "The text behind the answer takes it back", _TAKEN_BACK, True),
    Reason("before", "ambiguous", "The text says that this is not the answer", _NEGATED, True),
    Reason("after", "ambiguous", "The text gives another answer, too", _ALTERNATIVE, True),
    Reason("after", "elided", "The text says that data was left out", _OMITTED, True),
    Reason("before", "elided", "The text says that data was left out", _OMITTED, True),
    Reason("before", "syntax", "More stands beside the answer than prose", _PIECE),
    Reason("before", "syntax", "The answer is inside a quotation", _OPEN_QUOTE),
    Reason("before", "no_json", "The answer is part of code", _CODE),
    Reason("around", "no_json", "The answer is a field of another format", _FIELDS),
    Reason("around", "ambiguous", _LOOSE, _MEMBER),
    Reason("around", "ambiguous", _LOOSE, _SCALAR_LINE),
    Reason("around", "ambiguous", _LOOSE, _ON_LINE),
)
# fmt: on


def answer(text: str, wanted: Wanted) -> Document:
    """Read the one answer of a text.

    Raises:
        Unreadable: If there is no answer, more than one, or an incomplete one.
    """
    start = 0
    for match in _REASONING_END.finditer(text):
        start = match.end()
    opened = _REASONING.search(text, start)
    if opened and not text[start : opened.start()].strip(EDGES):
        raise Unreadable("truncated", opened.start(), "The reasoning never ends.")
    meant = _meant(text, list(candidates(text, start, wanted.complete)))
    if not meant:
        return _scalar(text, start, wanted)
    documents = [each.document for each in meant]
    _refuse_broken(documents)
    first = documents[0]
    one = first if len(documents) == 1 else _one_of(text, meant, wanted)
    in_calls = CALLS.search(text, max(start, first.start - 40), first.start)
    if wanted.is_list and in_calls and type(one.value) is dict and one is first:
        told = repair("sequence", one.start, "one call made a list")
        one = replace(one, value=[one.value], repairs=[*one.repairs, told])
    return _beside(text, start, meant, one)


def _meant(text: str, found: list[Candidate]) -> list[Candidate]:
    """Keep the candidates whose place in the text suggests that they are the answer.

    A candidate's place determines its doubt. A candidate is kept if its doubt exceeds the smallest
    doubt by one at most.
    """
    is_alone = all(_is_small(each.document) for each in found)
    found = [each for each in found if not _is_mention(text, each, is_alone=is_alone)]
    doubts = [_doubt(text, each) for each in found]
    least = min(doubts, default=0)
    found = [each for each, doubt in zip(found, doubts, strict=True) if doubt <= least + 1]
    apart = [each for each in found if each.document.refusal or not in_sentence(text, each)]
    whole = "\0".join(written(each.document.value) for each in apart)
    return [
        each
        for each in found  # A sentence may quote a part of the answer.
        if each in apart or not each.document.value or written(each.document.value) not in whole
    ]


def _doubt(text: str, found: Candidate) -> int:
    """Return from 0 to 3 how strongly a candidate's place suggests that it is not the answer."""
    if found.is_quoted:
        return 3
    if found.document.refusal and in_sentence(text, found):
        return 2
    return 0 if _is_block(text, found) and found.document.is_strict else 1


def _is_block(text: str, found: Candidate) -> bool:
    """Return whether a candidate is in a fence or in a paragraph of its own."""
    before, after = text[max(0, found.start - 200) : found.start], text[found.end :][:200]
    is_apart = _APART_BEFORE.search(before) and _APART_BEHIND.match(after)
    return found.in_fence or bool(is_apart)


def _refuse_broken(documents: list[Document]) -> None:
    """Refuse all documents if one of several is broken, because a list must be complete."""
    for number, each in enumerate(documents, 1):
        if each.refusal:
            if len(documents) == 1:
                raise each.refusal
            refusal = each.refusal.refusal
            message = f"Value {number} of {len(documents)} cannot be read: {refusal['message']}"
            raise Unreadable(refusal["kind"], refusal["position"], message)


def _one_of(text: str, meant: list[Candidate], wanted: Wanted) -> Document:
    """Combine several documents: equal ones become one value, and others become a list."""
    documents = [each.document for each in meant]
    first, last = documents[0], documents[-1]
    gaps = [text[left.end : right.start] for left, right in pairwise(documents)]
    is_row = all(_MARKS.match(gap) for gap in gaps)
    is_plain = all(not gap.strip(EDGES + ",") for gap in gaps)
    in_calls = (is_row or wanted.is_list is True) and all(map(CALLS.search, gaps))
    is_code = re.search(r"\w\(\Z", text[max(0, first.start - 40) : first.start])
    refuse_if(is_code, "ambiguous", first.start, "The arguments of a call.")
    is_same = all(identical(first.value, each.value) for each in documents[1:])
    has_commas = is_plain and any("," in gap for gap in gaps)
    if is_same and not (wanted.is_list and in_calls) and not has_commas:
        is_one = in_calls or wanted.is_list is False or all(_is_block(text, e) for e in meant)
        refuse_if(not is_one, "ambiguous", last.start, "One value twice, or two of a list.")
        again = repair("repeated", documents[1].start, "the same answer given again")
        return replace(first, repairs=[*first.repairs, again])
    is_sequence = is_plain or in_calls or (is_row and wanted.is_list)
    whole = _sequence(documents, gaps, wanted) if is_sequence else None
    if wanted.fits and (one := _fitting(documents, whole, wanted.fits)):
        return one
    if whole is None or wanted.is_list is False:
        message = f"There are {len(documents)} answers, and they differ; one is wanted."
        raise Unreadable("ambiguous", last.start, message)
    return whole


def _comes_again(values: list[str]) -> bool:
    """Return whether two or more calls repeat in the same order; one may repeat on purpose."""
    count = len(values)
    repeats = any(values[k:] == values[: count - k] for k in range(2, count - 1))
    return repeats and len(set(values)) > 1


def _sequence(documents: list[Document], gaps: list[str], wanted: Wanted) -> Document:
    """Make one list of documents that follow one another."""
    first, last = documents[0], documents[-1]
    values = [each.value for each in documents]
    in_calls = any(map(CALLS.search, gaps))
    repeats = in_calls and _comes_again([written(value) for value in values])
    refuse_if(repeats, "ambiguous", last.start, "Calls come again: write each call once.")
    is_cut = wanted.complete is False
    refuse_if(is_cut, "truncated", last.end, "More of the sequence may be missing.")
    made = merged([each for document in documents for each in document.repairs])
    is_repaired = any(each["grade"] != "format" for each in made)
    is_doubtful = (
        len({type(value) is dict for value in values}) > 1
        or not (all(values) or any("," in gap for gap in gaps))
        or (is_repaired and not any("<" in gap for gap in gaps))
    )
    if any(type(value) is list for value in values):
        is_doubtful |= len({_is_small(each) for each in documents}) > 1
        is_doubtful |= any(not gap.strip(", ") for gap in gaps)
        if in_calls and all(type(value) is list for value in values):
            values = [item for value in values for item in value]
    refuse_if(is_doubtful, "ambiguous", last.start, "Different values follow one another.")
    told = repair("sequence", first.start, f"{len(documents)} values in a row made a list")
    return Document(first.start, last.end, values, [*made, told])


def _fitting(
    documents: list[Document], whole: Document | None, fits: Callable[[Any], bool]
) -> Document | None:
    """Return the only one of several answers that passes the caller's validation, or None."""
    choices = [each for each in [*documents[:20], whole] if each and fits(each.value)]
    if not choices or not all(identical(choices[0].value, each.value) for each in choices):
        return None
    if choices[0] is whole:
        return whole
    told = repair("chosen", choices[0].start, f"the only one of {len(documents)} answers that fits")
    return replace(choices[0], repairs=[*choices[0].repairs, told])


def _is_small(document: Document) -> bool:
    """Return whether a value is empty, or a list of numbers, which may be a citation like `[1]`."""
    value = document.value
    is_list = issubclass(type(value), list)  # `isinstance` would make the item type unknown.
    is_numbers = is_list and all(type(item) in {int, float} for item in value)
    return document.refusal is None and (not value or is_numbers)


def _is_mention(text: str, found: Candidate, *, is_alone: bool) -> bool:
    """Return whether brackets belong to a sentence, such as a citation: `As [1] shows`."""
    document = found.document
    if found.in_fence or not _is_small(document):
        return False
    before = line_before(text, document.start)
    after = text[document.end : document.end + 40].partition("\n")[0]
    if is_alone and _ANNOUNCED.search(before):
        return bool(re.match(r"[ .,:;]*\w", after))
    return bool(re.search(r"\w", before + after) or re.search(r"[\])-]\s*\Z", before))


def _beside(text: str, start: int, meant: list[Candidate], one: Document) -> Document:
    """Refuse an answer if the text around it gives a reason; otherwise record the omitted text."""
    turn = TURN.search(text, meant[-1].end)
    end = turn.start() if turn else len(text)
    before, after = text[start : meant[0].start], text[meant[-1].end : end]
    is_block = all(each.document.is_strict for each in meant) and _is_block(text, meant[0])
    _refuse_against(FENCE.sub("", before), FENCE.sub("", after), one, is_block=is_block)
    left_out = (text[: one.start] + text[meant[-1].document.end :]).strip()
    if not left_out:
        return one
    kind = "code_fence" if _ONLY_FENCE.fullmatch(left_out) else "surroundings"
    note = repair(kind, 0, f"left out around the answer: {left_out[:60]}")
    return replace(one, repairs=[*one.repairs, note])


def _refuse_against(before: str, after: str, one: Document, *, is_block: bool) -> None:
    """Refuse an answer if the text around it matches one of `REASONS`, or has a lone bracket."""
    before, after = (
        CALLS.sub("", _CDATA.sub("", side)).lstrip("\ufeff") for side in (before, after)
    )
    paragraph = before[-200:].rpartition("\n\n")[2]
    sides = {"before": paragraph, "after": after, "around": f"{before}\0{after}"}
    for reason in REASONS:
        if (reason.against_all or not is_block) and reason.pattern.search(sides[reason.side]):
            raise Unreadable(reason.kind, one.start, f"{reason.told}.")
    is_empty = not is_block and not one.value and re.search(r"[\"'`“\[{]", before + after)
    refuse_if(is_empty, "ambiguous", one.start, f"{_LOOSE}.")


def _scalar(text: str, start: int, wanted: Wanted) -> Document:
    """Read a text without an object or list, whose answer may be a number, string or literal."""
    match = _SCALAR.match(text, start)
    value: Any = None
    try:
        value = strict_value(match["value"]) if match else None
    except ValueError:
        match = None
    if match is None:
        declined = _DECLINED.search(text)
        refuse_if(declined, "refusal", start, "The model declined to answer.")
        raise Unreadable("no_json", start, "There is no JSON document in the text.")
    refuse_if(wanted.complete is False, "truncated", len(text), "The value may go on.")
    note = repair("surroundings", 0, f"left out around the answer: {text.strip()[:60]}")
    return Document(match.start("value"), match.end("value"), value, [note])
