"""Choose the JSON document that is the model's answer, and check the text around it.

The answer comes after the model's reasoning, and before the next turn of a chat transcript. Tool
calls in the notations of open models (see `protocols`) are the answer. Without tool calls, the
answer is among the documents at the likeliest places, such as a paragraph of its own. If there are
several such documents, they must have the same value, form a list, or contain only one that fits
the caller's validator. Finally, `beside` judges the text around the answer.
"""

import re
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import Any

from graph_retry.lossless._ground import identical, lazy, written
from graph_retry.lossless.beside import judge
from graph_retry.lossless.candidates import (
    BLOCK,
    BROKEN,
    CALLS,
    FENCE,
    LABEL,
    LINE,
    SENTENCE,
    TAG,
    TURN,
    Candidate,
    candidates,
    fences_in,
    line_before,
)
from graph_retry.lossless.protocols import Call, openings, value_of
from graph_retry.lossless.results import (
    Document,
    Unreadable,
    Wanted,
    merged,
    refuse_if,
    repair,
)
from graph_retry.lossless.strict import strict_value
from graph_retry.lossless.weighted.lexis import EDGES
from graph_retry.lossless.weighted.search import Work

_THOUGHT = (  # Words in names of reasoning tags, such as `<seed:think>` and `<|end_of_thought|>`.
    r"(?:(?:\w*[:_▁-]|ant)?(?:think|thinking|thoughts?|reason|reasoning|reflection|scratchpad"
    r"|analysis|plan)(?:[_▁]\w+)?)"
)
_REASONING_END = lazy(
    rf"(?i)(?:</{_THOUGHT}>|\[/{_THOUGHT}\]|◁/{_THOUGHT}▷|<[|｜]?(?:/|end[_▁]){_THOUGHT}[|｜]?>"
    r"|<\|channel\|>final[^<>{}\[\n]*(?:<\|constrain\|>\s*\w+\s*)?(?:<\|message\|>)?|<channel\|>"
    r"|<\|(?:start\|>assistant|channel\|>)(?=[^{}\n]{0,60}\bto=)|\bassistantfinal(?=\s*[{\[`]))(?![\"'\\])"
)
_SIGNS = ("<", "[/", "◁/", "assistantfinal")
"""Texts to search for quickly: each mark that ends reasoning contains one of them."""
_REASONING = lazy(
    rf"(?i)<(?!/|[|｜]?end[_▁])[|｜]?{_THOUGHT}\b[^<>]*>|\[{_THOUGHT}\]|◁{_THOUGHT}▷|<\|channel>\w+"
    r"|<\|channel\|>(?:analysis|commentary)(?![^<>{]*\bto=)"
)
_IN_STRING = lazy(r"[\[{:,]\s*\"(?:[^\"\\]|\\.)*\Z")
_BETWEEN = lazy(  # Tags, bullets and fences may separate the items of a list.
    rf"(?:\s|,|;|{TAG}|[`~]{{3,}}\w*|[-*•]\s|\d+[.)]\s)*\Z"
)
_OTHER_ELEMENT = lazy(  # If two elements have different names, the names are data.
    r"\s*</(\w+)>\s*<(?!\1\b)\w[^<>]*>\s*\Z"
)
_SCALAR = lazy(  # A value that is alone, or has only a label, tags and emphasis around it.
    rf"(?:\s|[`*]|<[\w|/-]+>)*(?i:(?:(?:the|final|my) )*{LABEL}[\s:`*]+)?"
    r"(?P<value>\"(?:[^\"\\\n]|\\.)*+\"|-?\d[\d.eE+-]*|true|false|null)(?:\s|[`*]|</?[\w|/-]+>)*\Z"
)
_NO_JSON = "There is no JSON document in the text."
_OTHERS = (  # Other notations are only named, for the message.
    ("XML", lazy(r"\s*(?:<\?xml|<(\w[\w.:-]*)[^<>]*>.*</\1>\s*\Z)", re.DOTALL)),
    (
        "a call as in Python",
        lazy(r"\s*(?:`{3}\w*\s*)?[A-Za-z_][\w.]*\((?:.*\w ?=.*)?\)[\s`]*\Z", re.DOTALL),
    ),
)
_ONLY_FENCE = lazy(r"(?:`{3,}|~{3,})[ \w-]*\s*(?:`{3,}|~{3,})?")


def answer(text: str, wanted: Wanted) -> Document:
    """Read the one answer in a text.

    Raises:
        Unreadable: If there is no answer, more than one, or an incomplete one.
    """
    start, may_reason = 0, any(sign in text for sign in _SIGNS)
    for match in _REASONING_END.finditer(text) if may_reason else ():
        if not _IN_STRING.search(line_before(text, match.start())):
            start = match.end()
    begin = len(text) - len(text[start:].lstrip(EDGES))
    refuse_if(_REASONING.match(text, begin), "truncated", begin, "The reasoning never ends.")
    found = [*candidates(text, start, wanted.complete)]
    if calls := _calls(text, start, found, wanted):
        spans = [(each.document.start, each.document.end) for each in calls]
        return _beside(text, start, spans, value_of(calls, wanted), is_block=True)
    meant = _meant(found)
    if not meant:
        return _scalar(text, start, wanted)
    if len(meant) == 1:
        meant = [meant[0]._replace(document=_chosen(meant[0].document, wanted))]
    documents = [each.document for each in meant]
    for number, each in enumerate(documents, 1):
        if each.refusal:  # If one document is broken, the list would not be complete.
            refusal, count = each.refusal.refusal, len(documents)
            which = f"Value {number} of {count} cannot be read: " if count > 1 else ""
            raise Unreadable(refusal["kind"], refusal["position"], which + refusal["message"])
    one = _one_of(text, start, meant, wanted)
    spans = [(each.start, each.end) for each in meant]
    return _beside(text, start, spans, one, is_block=all(each.is_block for each in meant))


def _chosen(document: Document, wanted: Wanted) -> Document:
    """Return the only likely reading of a document that fits the validator, else the document."""
    readings = document.refusal.readings if document.refusal and wanted.fits else None
    found = _fitting(readings(), wanted) if readings else None
    told = repair("chosen", document.start, "the only likely reading that fits", "assumed")
    return replace(found, repairs=[*found.repairs, told]) if found else document


def _fitting(choices: list[Document], wanted: Wanted) -> Document | None:
    """Return the only document whose value fits the caller's validator, or None."""
    fitting = [each for each in choices if wanted.fits and wanted.fits(each.value)]
    is_one = all(identical(fitting[0].value, each.value) for each in fitting)
    return fitting[0] if fitting and is_one else None


def _calls(text: str, start: int, found: list[Candidate], wanted: Wanted) -> list[Call]:
    """Read the tool calls that an open model wrote as text, up to the next turn of the chat.

    Raises:
        Unreadable: If a call cannot be read, or the text also has another document.
    """
    calls, end, work = list[Call](), start, Work(len(text))
    whole = [each for each in found if each.document.refusal is None]
    opened = [*openings(text, start, [each.document for each in whole])]
    for (row, opening), following in zip_longest(opened, opened[1:]):
        at = opening.start()
        if at < end:
            continue
        if calls and TURN.search(text, end, at):
            break
        limit = following[1].start() if following else len(text)
        calls.append(row.read(text, row, opening, limit, wanted.complete, work))
        end = calls[-1].document.end
    spans = [(each.document.start, each.document.end) for each in calls]
    for each in whole if calls else ():
        is_inside = any(low <= each.document.start < high for low, high in spans)
        is_other = each.place <= LINE and not is_inside
        is_next = TURN.search(text, end, max(end, each.document.start))
        refuse_if(is_other and not is_next, "ambiguous", each.start, "There is JSON beside a call.")
    return calls


def _meant(found: list[Candidate]) -> list[Candidate]:
    """Keep the documents at the likeliest places, without those that only quote others."""
    likely = SENTENCE if any(each.is_block for each in found) else BROKEN
    least = max(likely, min((each.place for each in found), default=0))
    found = [each for each in found if each.place <= least]
    places = {each.place for each in found}
    if SENTENCE not in places or len(places) == 1:
        return found
    whole = "\0".join(written(e.document.value) for e in found if e.place < SENTENCE)
    return [
        each
        for each in found
        if each.place != SENTENCE
        or not each.document.value
        or written(each.document.value) not in whole
    ]


def _one_of(text: str, start: int, meant: list[Candidate], wanted: Wanted) -> Document:
    """Make one value of all documents: their common value, a list, or the only value that fits."""
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
    is_row = is_row and not any(map(_OTHER_ELEMENT.match, gaps))
    is_joined = is_list or is_plain or is_row
    whole = _sequence(documents, wanted, in_calls=in_calls) if is_joined else None
    if found := _fitting([each for each in [*documents[:20], whole] if each], wanted):
        chosen = repair("chosen", found.start, f"the only one of {count} answers that fits")
        return replace(found, repairs=[*found.repairs, *([] if found is whole else [chosen])])
    if whole is None or wanted.is_list is False:
        message = f"There are {count} answers, and they differ; one is wanted."
        raise Unreadable("ambiguous", last.start, message)
    return whole


def _sequence(documents: list[Document], wanted: Wanted, *, in_calls: bool) -> Document:
    """Make one list of documents that follow each other in the text."""
    first, last = documents[0], documents[-1]
    values = [each.value for each in documents]
    texts = [written(value) for value in values]
    pairs = [*pairwise(texts)]  # Calls may all be equal on purpose.
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


def _beside(
    text: str, start: int, spans: list[tuple[int, int]], one: Document, *, is_block: bool
) -> Document:
    """Refuse an answer because of the text around it, or record this text as left out."""
    end = spans[-1][1]
    turn = TURN.search(text, end)
    gaps = [text[left[1] : right[0]] for left, right in pairwise(spans)]
    # The text in other fences does not count. If a fence is still open, the answer is inside it.
    opened = FENCE.sub(_if_open, text[start : spans[0][0]])
    rest = (FENCE.sub("", side) for side in (*gaps, text[end : turn and turn.start()]))
    before, *between, after = (CALLS.sub("", side) for side in (opened, *rest))
    judge(before, "\0" + "".join(f"{gap}\0" for gap in between), after, one, is_block=is_block)
    left_out = (text[: one.start] + text[max(end, one.end) :]).strip()
    if not left_out:
        return one
    kind = "code_fence" if _ONLY_FENCE.fullmatch(left_out) else "surroundings"
    note = repair(kind, 0, f"left out around the answer: {left_out[:60]}")
    return replace(one, repairs=[*one.repairs, note])


def _if_open(fence: re.Match[str]) -> str:
    """Return the contents of a code fence that is never closed; "" for a closed fence."""
    return fence["inside"] if fence.end() == fence.end("inside") else ""


def _scalar(text: str, start: int, wanted: Wanted) -> Document:
    """Read the answer in a text without an object or list, such as a number or a string."""
    fences = fences_in(text, start)
    span = fences[0].span("inside") if len(fences) == 1 else (start, len(text))
    match = _SCALAR.match(text, *span)
    value: Any = None
    try:
        value = strict_value(match["value"], is_plain=True) if match else None
    except ValueError:
        match = None
    if match is None:
        is_empty = not text[start:].strip(EDGES)
        named = next((name for name, shape in _OTHERS if shape.match(text, start)), "")
        told = f"The text is {named}, and has no JSON document." if named else _NO_JSON
        told = "The answer is empty." if is_empty else told
        raise Unreadable("no_json", start, told)
    refuse_if(wanted.complete is False, "truncated", len(text), "The value may continue.")
    note = repair("surroundings", 0, f"left out around the answer: {text.strip()[:60]}")
    return Document(*match.span("value"), value, [note])
