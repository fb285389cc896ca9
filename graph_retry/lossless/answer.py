"""Choose the JSON document that is the model's answer, and check the text around it.

The answer comes after the model's reasoning, and before the next turn of a chat transcript. Only
the documents at the most likely places count. If there are several, they are one value that is
repeated, or a list, or exactly one of them fits the caller's validator. Any other text with several
documents is refused. At last, the text around the answer is compared with `REASONS`.
"""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from graph_retry.lossless._ground import identical, lazy, written
from graph_retry.lossless.candidates import (
    BLOCK,
    BROKEN,
    CALLS,
    FENCE,
    LABEL,
    SENTENCE,
    TAG,
    TURN,
    Candidate,
    candidates,
)
from graph_retry.lossless.results import (
    Document,
    RefusalKind,
    Unreadable,
    Wanted,
    merged,
    refuse_if,
    repair,
)
from graph_retry.lossless.strict import strict_value
from graph_retry.lossless.weighted.lexis import EDGES

_THOUGHT = r"(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|plan)"
_REASONING_END = lazy(
    rf"(?i)(?:</{_THOUGHT}>|\[/THINK\]|◁/think▷|<\|channel\|>final(?:<\|message\|>)?)(?![\"'\\])"
)
_REASONING = lazy(
    rf"(?i)<{_THOUGHT}\b[^>]*>|\[THINK\]|◁think▷|<\|channel\|>(?:analysis|commentary)"
)
_BETWEEN = lazy(  # Tags, bullets and fences may separate the items of a list.
    rf"(?:\s|,|;|{TAG}|[`~]{{3,}}\w*|[-*•]\s|\d+[.)]\s)*\Z"
)
_SCALAR = lazy(  # A value that is alone, or has only a label, tags and emphasis around it.
    rf"(?:\s|[`*]|<[\w|/-]+>)*(?i:(?:(?:the|final|my) )*{LABEL}[\s:`*]+)?"
    r"(?P<value>\"(?:[^\"\\\n]|\\.)*+\"|-?\d[\d.eE+-]*|true|false|null)(?:\s|[`*]|</?[\w|/-]+>)*\Z"
)
_ONLY_FENCE = lazy(r"(?:`{3,}|~{3,})[ \w-]*\s*(?:`{3,}|~{3,})?")


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
    r"(?im)(?:[\n.!?…—–]|\A)\W{0,10}(?:(?:oh|hm+|no|hold on|ok(?:ay)?|but|sorry|please)\W{1,4})*"
    r"(?:wait(?=\s*[,.!…:;—–-]|\s+(?:i|that|no)\b)|oops|(?:correction|edit|korrektur|更正)[:：]"
    r"|my (?:mistake|bad)\b|i (?:(?:made|see) an? (?:mistake|error)|forgot|misread|got the \w+)\b"
    r"|let me (?:fix|correct) |(?:scratch|strike|ignore|disregard) (?:that|the (?:\w+ )?above)\b"
    r"|actually\b[^.\n]{0,80}\b(?:not|wrong)\b|the \w+ should be [^.\n]{1,60}\bnot\b)"
    r"|(?<!if )(?<!whether )\b(?:that|this|it|answer)(?:['’]s| is| was) "
    r"(?:wrong|incorrect|not (?:right|correct))\b|\bit should (?:be|have been) (?!noted)"
)
_NEGATED = lazy(r"(?i)(?:\b(?:not|never|wrong|bad|invalid|incorrect)(?: \w+)?|~~|<del>)[\s:`*]*\Z")
_OMITTED = lazy(
    r"(?im)^[^\w\n.…]*(?:\.\.\.|…)[^\w\n]*$|^\W{0,20}[(\[]?(?:truncated|partial|snip(?:ped)?)[)\]]"
    r"|\b(?:\d+ (?:more|others)|rest|remain(?:der|ing))\b[^.\n]{0,40}\b(?:omitted|truncated"
    r"|left out|follows?\b)|\A\W*(?:and )?\d+ (?:more|others)\W*\Z|\bto be continued\b"
    r"|\bpart \d+ of (?!1\b)\d"
)
_PIECE = lazy(  # A quotation, a member, a list or the arguments of a call went before the answer.
    r"(?ma)[\w+-]\Z|[\"'”][ \t]*\Z|[\"'”}]\s*[,:=]\s*\Z|^\W*\"[^\"\n]*\Z"
    r"|^\s*(?:-?\d[\d.]*|true|false|null)\s*,\s*\Z|\([^()\n]*[=,]\s*\Z|[\[{][^\[\]{}\n]*\Z"
)
_KEY = rf"^[ \t]*(?:- +)?(?!A:|(?i:(?:(?:the|final|my) )*{LABEL})\b)[^\W\d][\w .-]*[:=]"
_FIELD = lazy(  # YAML, TOML and code have other such lines, or an outer line with less indentation.
    rf"(?m){_KEY}[\s\S]{{0,2000}}{_KEY}[ \t]*\0|{_KEY}[ \t]*\0[\s\S]{{0,2000}}{_KEY}"
    r"|^([ \t]*)\S.*\n\1[ \t]+\S.*\0"
)
_LOOSE = lazy(
    r"(?m)^[ \t]*(?:\{|\[(?!\^?\d+\]|[A-Za-z_. -]+\])|[\"“'][^\"“”'\n]*[\"”']\s*[:：]"
    r"|(?:\"[^\"\n]*\"|'[^'\n]*'|[-+.]?\d[\w.]*|(?i:true|false|null|none))"
    r"[ \t]*[,;]?[ \t\r]*(?:(?://|#|/\*).*)?$)"
)
REASONS = (
    Reason("after", "ambiguous", "The text after the answer retracts it", _TAKEN_BACK, True),
    Reason("before", "ambiguous", "The text says that this is not the answer", _NEGATED, True),
    Reason("after", "elided", "The text says that data was left out", _OMITTED, True),
    Reason("before", "elided", "The text says that data was left out", _OMITTED, True),
    Reason("before", "syntax", "The answer is a piece of other data", _PIECE),
    Reason("around", "no_json", "The answer is a field of another format, or part of code", _FIELD),
    Reason("around", "ambiguous", "Brackets or members stand around the answer", _LOOSE),
)


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
    meant = _meant([*candidates(text, start, wanted.complete)])
    if not meant:
        return _scalar(text, start, wanted)
    documents = [each.document for each in meant]
    for number, each in enumerate(documents, 1):
        if each.refusal:  # A list must be complete, so one broken document refuses all.
            refusal, count = each.refusal.refusal, len(documents)
            which = f"Value {number} of {count} cannot be read: " if count > 1 else ""
            raise Unreadable(refusal["kind"], refusal["position"], which + refusal["message"])
    one = _one_of(text, start, meant, wanted)
    return _beside(text, start, meant, one)


def _meant(found: list[Candidate]) -> list[Candidate]:
    """Keep the candidates at the likeliest places; a sentence may quote a part of another one."""
    likely = SENTENCE if any(each.is_block for each in found) else BROKEN
    least = max(likely, min((each.place for each in found), default=0))
    found = [each for each in found if each.place <= least]
    whole = "\0".join(written(e.document.value) for e in found if e.place < SENTENCE)
    return [
        each
        for each in found
        if each.place != SENTENCE
        or not each.document.value
        or written(each.document.value) not in whole
    ]


def _one_of(text: str, start: int, meant: list[Candidate], wanted: Wanted) -> Document:
    """Make one value of all documents: a repeated one, a list, or the only one that fits."""
    documents = [each.document for each in meant]
    first, last, count = documents[0], documents[-1], len(documents)
    lead = text[max(start, first.start - 40) : first.start]
    gaps = [text[left.end : right.start] for left, right in pairwise(documents)]
    in_calls = all(map(CALLS.search, gaps or [lead]))
    is_list = in_calls and wanted.is_list is True
    if count == 1 and not (is_list and type(first.value) is dict):
        return first
    is_plain = not lead.endswith("(") and all(not gap.strip(EDGES + ",") for gap in gaps)
    has_commas = is_plain and any("," in gap for gap in gaps)
    is_same = all(identical(first.value, each.value) for each in documents)
    if is_same and not is_list and not has_commas:
        is_one = wanted.is_list is False or all(each.place == BLOCK for each in meant)
        refuse_if(not is_one, "ambiguous", last.start, "One value twice, or two of a list.")
        again = repair("repeated", documents[1].start, "the same answer given again")
        return replace(first, repairs=[*first.repairs, again])
    is_row = all(map(_BETWEEN.match, gaps)) and (in_calls or wanted.is_list is True)
    is_joined = is_list or is_plain or is_row
    whole = _sequence(documents, wanted, in_calls=in_calls) if is_joined else None
    choices = [each for each in [*documents[:20], whole] if each]
    fitting = [each for each in choices if wanted.fits and wanted.fits(each.value)]
    if fitting and all(identical(fitting[0].value, each.value) for each in fitting):
        chosen = repair("chosen", fitting[0].start, f"the only one of {count} answers that fits")
        told = [] if fitting[0] is whole else [chosen]
        return replace(fitting[0], repairs=[*fitting[0].repairs, *told])
    if whole is None or wanted.is_list is False:
        message = f"There are {count} answers, and they differ; one is wanted."
        raise Unreadable("ambiguous", last.start, message)
    return whole


def _sequence(documents: list[Document], wanted: Wanted, *, in_calls: bool) -> Document:
    """Make one list of documents that follow one another."""
    first, last = documents[0], documents[-1]
    values = [each.value for each in documents]
    texts = [written(value) for value in values]
    pairs = [*pairwise(texts)]  # A list of one call alone may repeat it on purpose.
    again = in_calls and len({*texts}) > 1 and pairs[-1] in pairs[:-1]
    refuse_if(again, "ambiguous", last.start, "Calls come again: write each call once.")
    is_cut = wanted.complete is False and len(documents) > 1
    refuse_if(is_cut, "truncated", last.end, "More of the sequence may be missing.")
    made = merged([each for document in documents for each in document.repairs])
    is_alike = wanted.is_list is True or all(type(value) is dict for value in values)
    is_sure = is_alike and all(each["grade"] == "format" for each in made)
    refuse_if(not (in_calls or is_sure), "ambiguous", last.start, "These may be no list.")
    if in_calls and all(type(value) is list for value in values):
        values = [item for value in values for item in value]
    told = repair("sequence", first.start, f"{len(documents)} values in a row made a list")
    return Document(first.start, last.end, values, [*made, told])


def _beside(text: str, start: int, meant: list[Candidate], one: Document) -> Document:
    """Refuse an answer if the text around it gives a reason; otherwise record the omitted text."""
    turn = TURN.search(text, meant[-1].end)
    before, after = (
        CALLS.sub("", FENCE.sub("", side))
        for side in (text[start : meant[0].start], text[meant[-1].end : turn and turn.start()])
    )
    paragraph = before[-200:].rpartition("\n\n")[2]
    sides = {"before": paragraph, "after": after, "around": f"{before}\0{after}"}
    is_block = all(each.is_block for each in meant)
    for reason in REASONS:
        if (reason.against_all or not is_block) and reason.pattern.search(sides[reason.side]):
            raise Unreadable(reason.kind, one.start, f"{reason.told}.")
    left_out = (text[: one.start] + text[meant[-1].document.end :]).strip()
    if not left_out:
        return one
    kind = "code_fence" if _ONLY_FENCE.fullmatch(left_out) else "surroundings"
    note = repair(kind, 0, f"left out around the answer: {left_out[:60]}")
    return replace(one, repairs=[*one.repairs, note])


def _scalar(text: str, start: int, wanted: Wanted) -> Document:
    """Read a text without an object or list, whose answer may be a number, string or literal."""
    fences = [*FENCE.finditer(text, start)]
    span = fences[0].span("inside") if len(fences) == 1 else (start, len(text))
    match = _SCALAR.match(text, *span)
    value: Any = None
    try:
        value = strict_value(match["value"], is_plain=True) if match else None
    except ValueError:
        match = None
    if match is None:
        raise Unreadable("no_json", start, "There is no JSON document in the text.")
    refuse_if(wanted.complete is False, "truncated", len(text), "The value may continue.")
    note = repair("surroundings", 0, f"left out around the answer: {text.strip()[:60]}")
    return Document(*match.span("value"), value, [note])
