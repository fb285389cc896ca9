"""Which of the documents in a text is the answer, and which of them are one answer together."""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

from graph_retry._output.repair.beside import ANSWER_LABEL, LINE_END
from graph_retry._output.repair.fences import without_prose_marks
from graph_retry._output.repair.find import find_documents
from graph_retry._output.repair.lone_scalar import lone_scalar
from graph_retry._output.repair.mend import Document
from graph_retry._output.repair.misplaced import refuse_misplaced
from graph_retry._output.repair.report import Unreadable, refuse_if, repair
from graph_retry._output.repair.scan import EDGES, SPACE, canonical, same
from graph_retry._output.repair.surroundings import check_surroundings

# Between documents that follow one another: white space, and one comma at most.
_SEPARATOR = re.compile(rf"{SPACE},?{SPACE}\Z")
# A footnote on a line of its own, `[1] https://example.com`, or a reference to one, `[1]`.
_FOOTNOTE = re.compile(r"\[\^?\d{1,3}\]:?(?:[ \t]+[^\s\[{]|[ \t\r]*(?:\n|\Z))")
# The closing bracket of a list, at the end of the text or of a fence.
_LIST_END = re.compile(rf"{SPACE}\]{SPACE}(?:```|~~~|\Z)")
# `f(`: what follows are the arguments of a call.
_CALL = re.compile(r"\w\(\Z")
# A label that is nothing but a mark of a list: `-`, `---`, `1.`, `b)`, `<item>`.
_BULLET = re.compile(r"[^\w\s`.:;]\W*|\W*(?:\d+|\w)\W+|<[\w-]+>")
# What numbers a label: the `1` of `Item 1`, the `second` of `The second one`, the `B` of `Plan B`.
_ORDINAL = re.compile(r"(?i)\d+|\b(?:one|two|three|four|first|second|third|fourth|last|[a-z])\b")
# What may follow brackets in a sentence.
_WORD_END = re.compile(r"[\s.,;:!?)\]`*]|\Z")
# `, "a"` or `, 1`: an element of a list.
_ELEMENT_NEXT = re.compile(r"[ \t]*,[ \t]*[\"'\d{]")
# A fence with its tag, or an empty one.
_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \w-]*\s*(?:`{3,}|~{3,})?")
_EDITING = "supplied", "extra_comma", "extra_opener", "extra_closer"


def decide(text: str, *, complete: bool | None) -> Document:
    """Read the one answer `text` holds.

    Raises:
        Unreadable: there is none, or more than one, or it is not all there.
    """
    try:
        return _decide(text, complete)
    except Unreadable as error:
        refused = error
    prose = without_prose_marks(text, complete=complete)
    if prose == text:
        raise refused
    document = _decide(prose, complete)
    span = slice(document.start, document.end)
    if prose[span] != text[span]:  # a fence inside a string of the answer
        raise refused
    return document


def _decide(text: str, complete: bool | None) -> Document:
    reasoning_end, documents = find_documents(text, complete=complete)
    runs = [run for run in _runs(text, documents) if not _is_mention(text, run, reasoning_end)]
    answers = [_one_answer(text, run, complete=complete) for run in runs]
    answers = answers or [lone_scalar(text, reasoning_end, complete=complete)]
    for each in answers:
        refuse_misplaced(each)
    gaps = _gaps(text, reasoning_end, answers)
    _check_repetition(answers, gaps)
    answer = answers[0]
    if surroundings := (text[:reasoning_end] + "".join(gaps)).strip():
        check_surroundings(text, answers, gaps)
        kind = "code_fence" if _FENCE.fullmatch(surroundings) else "surroundings"
        answer.repairs.append(repair(kind, 0, f"left out around the answer: {surroundings[:60]}"))
    if len(answers) > 1:
        again = repair("repeated", answers[1].start, "the same answer given again")
        answer.repairs.append(again)
    return answer


def _runs(text: str, documents: list[Document]) -> list[list[Document]]:
    """Group the documents that follow one another: `{"a": 1}, {"a": 2}` is a run of two."""
    runs = list[list[Document]]()
    for document in documents:
        gap = text[runs[-1][-1].end : document.start] if runs else ""
        is_footnote = "\n" in gap and _FOOTNOTE.match(text, document.start)
        follows = runs and _SEPARATOR.match(gap)
        # Behind `[1, 2]`, `[3] and more` may be the next list.
        if follows and not (is_footnote and not _may_be_mention(runs[-1][-1].value)):
            runs[-1].append(document)
        else:
            runs.append([document])
    return runs


def _is_mention(text: str, run: list[Document], reasoning_end: int) -> bool:
    """Tell whether brackets only occur in a sentence: `As [1] shows, use {}.` holds no data."""
    if not all(_may_be_mention(document.value) for document in run):
        return False
    start, end = run[0].start, run[-1].end
    quote = text[start - 1 : start]
    if quote in {'"', "'"} and text[end : end + 1] == quote:
        start, end = start - 1, end + 1
    elif not _WORD_END.match(text, end) or quote in {'"', "'", "”"} or _is_list(text, start, end):
        # `[1]x` or `"[1]`: no sentence has them, so they are a broken answer.
        return False
    # `The answer is [1, 2].`: the sentence calls them the answer, and nothing follows them.
    line_before = text[max(reasoning_end, start - 100) : start].rpartition("\n")[2]
    line_after = text[end : end + 100].partition("\n")[0]
    return not (LINE_END.match(line_after) and ANSWER_LABEL.search(line_before))


def _is_list(text: str, start: int, end: int) -> bool:
    """Tell whether a line begins like a list that lost its bracket: `[1], "a"]`."""
    line_before = text[max(0, start - 100) : start].rpartition("\n")[2]
    return not line_before.strip() and _ELEMENT_NEXT.match(text, end) is not None


def _may_be_mention(value: Any) -> bool:
    """Tell whether a value is empty, or a list of numbers as citations are: `{}`, `[1, 2]`."""
    is_object = type(value) is dict
    return not value or (not is_object and all(type(item) in {int, float} for item in value))


def _one_answer(text: str, run: list[Document], *, complete: bool | None) -> Document:
    """Return the one answer that a run is: its only document, a repeated one, or a list of all."""
    first, last = run[0], run[-1]
    if len(run) == 1:
        return first
    gaps = [text[left.end : right.start] for left, right in pairwise(run)]
    has_commas = any(gap.strip(EDGES) for gap in gaps)
    if not has_commas and len({canonical(document.value) for document in run}) == 1:
        # `{"a": 1}{"a": 1}` may be two entries; a blank line between shows a second answer.
        apart = all(gap.count("\n") > 1 for gap in gaps)
        refuse_if(not apart, "ambiguous", last.start, "One value twice, or two equal ones.")
        again = repair("repeated", last.start, "the same answer given again")
        return replace(first, end=last.end, repairs=[*first.repairs, again])
    # Whole documents tell nothing about those that were not written.
    refuse_if(complete is False, "truncated", last.end, "More of the sequence may be missing.")
    line_before = text[max(0, first.start - 100) : first.start].rpartition("\n")[2]
    mixed = _is_mixed(run, gaps, line_before, has_commas=has_commas)
    refuse_if(mixed, "ambiguous", last.start, "Different values follow one another.")
    return _sequence(text, run, has_commas=has_commas)


def _is_mixed(run: list[Document], gaps: list[str], line_before: str, *, has_commas: bool) -> bool:
    """Tell whether the documents of a run may be something else than the items of one list."""
    # `Use {"a": 1}` and `{"a": 2}` on the next line: the first belongs to a sentence.
    in_prose = line_before.strip(" \t`~") and "\n" in gaps[0]
    # `f({"a": 1}, {"b": 2})`: the arguments of a call.
    in_call = _CALL.search(line_before)
    lists = [isinstance(document.value, list) for document in run]
    # `{"a": 1} [2]`: a list and an object have different roles.
    two_types = any(lists) and not all(lists)
    # `{} {"a": 1}`: a bracket of the empty one may have stood elsewhere.
    has_empty = not has_commas and not all(document.value for document in run)
    # `[1], [2]` or `[1][2]`: so may the brackets between two lists.
    lists_touch = any(lists) and (has_commas or not all(gaps))
    # `[1,] [2]`: the last comma may stand before the second one, which is an element then.
    last_commas = [document.has_repair("trailing_comma") for document in run]
    some_last_commas = any(lists) and any(last_commas) and not all(last_commas)
    # `{"a": 1} {\"b\": 2}`: an escaped one among others may be a string that holds it.
    escaped = [document.has_repair("escaped") for document in run]
    some_escaped = any(escaped) and not all(escaped)
    # `[["a"] [ "b"]`: the bracket that is too much may be a comma of the list. In `{}{, "a": 1}`
    # the brackets, which stood around something else, may have moved.
    edited = any(document.has_repair(*_EDITING) for document in run)
    # `user: {"a": 1}, {"b": 2}`: a brace may have moved from before the word to the second one.
    is_labelled = has_commas and line_before.rstrip()[-1:] in {":", "=", ">"}
    in_field = is_labelled and len({canonical(list(document.value)) for document in run}) > 1
    doubts = (in_field, in_prose, in_call, two_types, has_empty, lists_touch, some_last_commas)
    return any(doubts) or some_escaped or edited


def _sequence(text: str, run: list[Document], *, has_commas: bool) -> Document:
    """Make one list of a run: JSON lines, or a list whose opening bracket is missing."""
    first = run[0]
    start, end = first.start, run[-1].end
    repairs = [record for document in run for record in document.repairs]
    repairs.append(repair("sequence", start, f"{len(run)} values in a row made a list"))
    has_lists = any(isinstance(document.value, list) for document in run)
    if (list_end := _LIST_END.match(text, end)) and has_commas and not has_lists:
        # `1, {"a": 1}, {"a": 2}]`: the bracket is missing before the 1, not here.
        # In escaped text, the bracket may be anywhere.
        before = text[max(0, first.start - 100) : first.start].rstrip()
        # `1[, {"a": 1}]`: it has changed places with the 1.
        moved = before.endswith(",") or "[" in before
        earlier = moved or first.has_repair("escaped")
        refuse_if(earlier, "syntax", start, "A list begins before this.")
        end += list_end[0].index("]") + 1
        repairs.append(repair("supplied", start, "`[` supplied", "assumed"))
    return Document([document.value for document in run], start, end, repairs)


def _gaps(text: str, reasoning_end: int, answers: list[Document]) -> list[str]:
    """Return what stands before each answer, and after the last one."""
    starts = [reasoning_end, *(answer.end for answer in answers)]
    ends = [*(answer.start for answer in answers), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _check_repetition(answers: list[Document], gaps: list[str]) -> None:
    """Refuse several answers unless they are one that was given again."""
    first, *others = answers
    if not others:
        return
    differing = [other.start for other in others if not same(other.value, first.value)]
    if differing:
        # `{"a": 1} or {"a": 2}`: nothing tells which of them is meant.
        raise Unreadable("ambiguous", differing[-1], "There are two answers, and they differ.")
    # `[ ]/* value */ []`: the bracket of an empty one may have stood elsewhere.
    doubtful = not first.value or _are_listed(gaps[:-1])
    refuse_if(doubtful, "ambiguous", answers[-1].start, "One answer twice, or two of a list.")


def _are_listed(gaps: list[str]) -> bool:
    """Tell whether `gaps`, of which one stands before each of several answers, make them a list.

    They do with a number, a bullet or a rule before the answers, or with labels that differ in a
    number only: `Item 1: {}` and `Item 2: {}` are two items, `Answer: {}` and `Again: {}` are one.
    """
    labels = [_FENCE.sub("", gap).strip(EDGES).rpartition("\n")[2] for gap in gaps]
    unnumbered = _ORDINAL.sub("0", labels[0])
    return any(
        _BULLET.fullmatch(label) or (label != labels[0] and _ORDINAL.sub("0", label) == unnumbered)
        for label in labels[1:]
    )
