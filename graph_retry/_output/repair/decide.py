"""Which of the documents found is the answer, and whether what surrounds it leaves any doubt."""

import re
from dataclasses import replace
from itertools import pairwise

from graph_retry._output.repair.find import find_documents
from graph_retry._output.repair.mend import STRAY, Document
from graph_retry._output.repair.report import refuse_if, repair
from graph_retry._output.repair.scan import EDGES, SPACE, canonical, same

_SEPARATOR = re.compile(rf"{SPACE},?{SPACE}\Z")
_LIST_END = re.compile(rf"{SPACE}\]{SPACE}(?:```|~~~|\Z)")
_ANSWER_LABEL = re.compile(
    r"(?i)(?:\A|[=>]|\b(?:answer|results?|output|json|response|list|array|data|here\b.*)"
    r"(?::|\s(?:is|are|would be):?\s))[\s`*_]*\Z"
)
_LINE_END = re.compile(r"[\s`.,;)]*(?:</|<\||//|/\*|#|\Z)")
# What a piece of something else has before it.
_CONTINUES = re.compile(
    r"(?:[\"'\d\]}]|\b(?:true|false|null|True|False|None))\s*[,，]\s*\Z"
    r"|[\"'”]\s*[:：]\s*\Z|[\]}][ \t]*[:：][ \t]*\Z|[\"'”][ \t]+\Z|[\[{][^\[\]{}\n]*\Z|\|\s*\Z"
    r"|\b[A-Z]\w*\(\Z|\([^()\n]*=\s*\Z"
)
_MEMBER = re.compile(
    r"[\"“][^\"“”\n]*[\"”]\s*[:：]\s*(?:[\"“{\[\d-]|true|false|null)"
    r"|[\]}][ \t]*[:：][ \t]*(?:[\"“'{\[\d-]|true|false|null)"
)
_PROSE_BRACKETS = re.compile(r"<!\[CDATA\[|\]\]>|\[[^\[\]{}\n]*\]|\{[^\[\]{}\n]*\}")
_LEFTOVER = re.compile(r"[\]}]|(?:\A|\n)[ \t]*[\[{]")
_LEFT_OUT = re.compile(
    r"(?im)\b(?:truncated|omitted|abbreviated|shortened|for brevity|excerpt|snip(?:ped)?|\d+ more"
    r"|(?:rest|remaining|remainder)\b[^.\n]{0,60}\b(?:follow|below|similar|same|continu|later)\w*"
    r"|(?:the rest|remaining|remainder)(?: of (?:the|your))? (?:items?|entries|data|list|records?"
    r"|results?|fields?|rows?|users?|output|json|array|object|values?|elements?|keys?)"
    r"|to be continued|continued in|(?:me to|shall i) continue"
    r"|(?:list|output|array|table|data|json) (?:goes|go) on|continues (?:below|in|on)"
    r"|only (?:showing|the first)|first \d+ of|and so on|etc)\b|^\W*(?:\.\.\.|…)\W*$"
)
_SCALAR = r"(?:\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|-?\d[\d.eE+-]*|(?i:true|false|null|none))"
_SCALAR_BEFORE = re.compile(
    rf"(?:\A|\n)\s*{_SCALAR}[ \t]*,?\s*(?:(?:(?://|#)[^\n]*\n|/\*.*?\*/)\s*)?\Z"
)
_SCALAR_AFTER = re.compile(
    rf"\s*,?\s*(?:(?://|#)[^\n]*\n\s*)*{_SCALAR}[ \t]*(?:[,\]}}\n#/]|```|\Z)"
)
_BULLET = re.compile(r"[^\w\s`.:;]\W*|\W*(?:\d+|\w)\W+|<[\w-]+>")
_ORDINAL = re.compile(r"(?i)\d+|\b(?:one|two|three|four|first|second|third|fourth|last|[a-z])\b")
_WORD_END = re.compile(r"[\s.,;:!?)\]`*]|\Z")
_JUNK = re.compile(r"[^\s\u200b-\u200f\u2060-\u2064\ufeff:=(>`;.!)<\"'\[\]{}#/](?=\s*(?:\n|\Z))")
_FENCE_LINE = re.compile(r"(?m)^ *(`{3,}|~{3,}) *([\w+#.-]*) *$")
_JSON_TAGS = {"json", "json5", "jsonc"}
_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \w-]*\s*(?:`{3,}|~{3,})?")
_CODE = re.compile(
    r"(?m)^\s*(?:def \w+\(|class \w+[:({]|return\b|function\b|SELECT\b|interface \w|type \w+ ="
    r"|for .+:\s*$|if .+:\s*$|#include\b|public \w)"
)
_FIELD = re.compile(r"(?m)^\s*(?:- +)?[\w.-]+ *[:=](?: +\S| *$)|^\s*- +\S|^\[[a-z][\w.-]*\]\s*$")
_LABELS = "Answer|Action|Final|Result|Output|JSON|Response|A\\b"
_FIELD_BEFORE = re.compile(rf"(?:\A|\n)\s*(?:- +)?(?!{_LABELS})[\w.-]+ *[:=]\s+\Z")
_QUOTES = {'"': '"', "'": "'", "`": "`", "“": "”", "‘": "’"}


def decide(text: str, *, complete: bool | None) -> Document:
    """Read the one answer `text` holds.

    Raises:
        Unreadable: there is none, or more than one, or it is not all there.
    """
    text = _without_other_fences(text)
    begin, found = find_documents(text, complete=complete)
    groups = [found[:1]]
    for left, right in pairwise(found):
        if not _SEPARATOR.match(text[left.end : right.start]):
            groups.append([])
        groups[-1].append(right)
    groups = [group for group in groups if not _in_passing(text, group, begin)]
    refuse_if(not groups, "no_json", begin, "There is no JSON document in the text.")
    answers = [_joined(text, group, complete=complete) for group in groups]
    answer = answers[0]
    others = [other.start for other in answers[1:] if not same(other.value, answer.value)]
    refuse_if(others, "ambiguous", max([0, *others]), "There are two answers, and they differ.")
    listed = _are_listed(text, answers, begin)
    refuse_if(listed, "ambiguous", answers[-1].start, "One answer twice, or two of a list.")
    places = [begin, *(place for a in answers for place in (a.start, a.end)), len(text)]
    gaps = [text[low:high] for low, high in zip(places[::2], places[1::2], strict=True)]
    _check_surroundings(text, answers, gaps)
    repairs, around = list(answer.repairs), (text[:begin] + "".join(gaps)).strip()
    if around:
        kind = "code_fence" if _FENCE.fullmatch(around) else "surroundings"
        repairs.append(repair(kind, 0, f"left out around the answer: {around[:60]}"))
    if len(answers) > 1:
        repairs.append(repair("repeated", answers[1].start, "the same answer given again"))
    return replace(answer, repairs=repairs)


def _are_listed(text: str, answers: list[Document], begin: int) -> bool:
    """Tell whether equal answers stand there as the items of a list, not as a repetition.

    Then a number, a bullet or a rule stands before them, or labels that differ in a number only.
    """
    starts = [begin, *(answer.end for answer in answers)]
    heads = [text[low : answer.start] for low, answer in zip(starts, answers, strict=False)]
    labels = [_FENCE.sub("", head).strip(EDGES).rpartition("\n")[2] for head in heads]
    first = _ORDINAL.sub("0", labels[0])
    return any(
        _BULLET.fullmatch(label) or (label != labels[0] and _ORDINAL.sub("0", label) == first)
        for label in labels[1:]
    )


def _without_other_fences(text: str) -> str:
    """Blank code in other languages where one fence, and only one, is tagged as JSON."""
    lines = list(_FENCE_LINE.finditer(text))
    opening, closing = lines[::2], lines[1::2]
    tags = [line[2].lower() for line in opening]
    paired = len(opening) == len(closing) > 1 and not any(line[2] for line in closing)
    if not paired or sum(tag in _JSON_TAGS for tag in tags) != 1:
        return text
    parts, last = list[str](), 0
    for first, end, tag in zip(opening, closing, tags, strict=True):
        if tag and tag not in _JSON_TAGS | {"javascript", "js"}:
            parts += [text[last : first.end()], " " * (end.start() - first.end())]
            last = end.start()
    return "".join([*parts, text[last:]])


def _in_passing(text: str, group: list[Document], begin: int) -> bool:
    """Tell whether brackets like `[1]` or `{}` only occur in a sentence: a citation, not data."""
    for document in group:
        value = document.value
        if value and (type(value) is dict or any(type(item) not in {int, float} for item in value)):
            return False
    if not group:
        return True
    start, end = group[0].start, group[-1].end
    quote = text[start - 1 : start]
    if quote in {'"', "'"} and text[end : end + 1] == quote:
        start, end = start - 1, end + 1
    elif not _WORD_END.match(text, end) or quote in {'"', "'"}:
        return False
    before = text[max(begin, start - 100) : start].rpartition("\n")[2]
    after = text[end : end + 100].partition("\n")[0]
    return not (_LINE_END.match(after) and _ANSWER_LABEL.search(before))


def _joined(text: str, group: list[Document], *, complete: bool | None) -> Document:
    """Join documents that follow one another with nothing between into one list: JSON lines."""
    first, last = group[0], group[-1]
    if len(group) == 1:
        return first
    between = [text[left.end : right.start] for left, right in pairwise(group)]
    commas = any(gap.strip(EDGES) for gap in between)
    if len({canonical(document.value) for document in group}) == 1 and not commas:
        apart = all(gap.count("\n") > 1 for gap in between)
        refuse_if(not apart, "ambiguous", last.start, "One value twice, or two equal ones.")
        again = repair("repeated", last.start, "the same answer given again")
        return replace(first, end=last.end, repairs=[*first.repairs, again])
    refuse_if(complete is False, "truncated", last.end, "More of the sequence may be missing.")
    before = text[max(0, first.start - 100) : first.start].rpartition("\n")[2]
    in_prose = before.strip(" \t`~") and "\n" in text[first.end : group[1].start]
    lists = {isinstance(document.value, list) for document in group}
    # A bracket of an empty one, or of a list, may have stood elsewhere; a text among documents
    # may be a string that holds one.
    unclear = not commas and not all(document.value for document in group)
    unclear = unclear or (True in lists and (commas or not all(between)))
    escaped = {any(r["kind"] == "escaped" for r in document.repairs) for document in group}
    arguments = re.search(r"\w\(\Z", before)
    mixed = in_prose or arguments or len(lists) > 1 or unclear or len(escaped) > 1
    refuse_if(mixed, "ambiguous", last.start, "Different values follow one another.")
    repairs = [record for document in group for record in document.repairs]
    repairs.append(repair("sequence", first.start, f"{len(group)} values in a row made a list"))
    end = last.end
    if (match := _LIST_END.match(text, end)) and True not in lists and commas:
        refuse_if(before.rstrip()[-1:] == ",", "syntax", first.start, "A list begins before this.")
        end += match[0].index("]") + 1
        repairs.append(repair("supplied", first.start, "`[` supplied", "assumed"))
    return Document([d.value for d in group], first.start, end, repairs)


def _check_surroundings(text: str, answers: list[Document], gaps: list[str]) -> None:
    """Refuse an answer that looks like a piece of something, or of which more was announced."""
    for answer, head, tail in zip(answers, gaps, gaps[1:], strict=False):
        start, before, after = answer.start, head, tail
        if head.rstrip()[-3:] == tail.lstrip()[:3] in {'"""', "'''"}:
            before, after = head.rstrip()[:-2], tail.lstrip()[2:]
        opened = before[-1:]
        if opened in _QUOTES and after[:1] == _QUOTES[opened]:
            before, after = before[:-1], after[1:]
            twice = opened in {'"', "'"} and "\\" in text[start : answer.end]
            refuse_if(twice, "ambiguous", start, "Escapes inside a quoted document.")
            field = before.rstrip(" \t")[-1:] == "," or after.lstrip(" \t")[:1] == ","
            refuse_if(field, "syntax", start, "This looks like a part of something else.")
        else:
            piece = opened in {'"', "'"} or _CONTINUES.search(before.removesuffix("<![CDATA["))
            refuse_if(piece, "syntax", start, "This looks like a part of something else.")
        line = before.rpartition("\n")[2]
        word = before[-1:].isalnum() and not before.lower().endswith("json")
        accessed = re.match(r"\.[a-z_]", after)
        attached = (
            word
            or accessed
            or before[-1:] in {"-", "+"}
            or _JUNK.fullmatch(line)
            or _JUNK.match(after)
        )
        value = _SCALAR_BEFORE.search(head[-200:]) or _SCALAR_AFTER.match(tail)
        refuse_if(attached or value, "syntax", start, "More stands beside the answer than prose.")
        extra = any(r["kind"] == "extra_closer" for r in answer.repairs)
        field = line.rstrip().endswith(":") and not _ANSWER_LABEL.search(line)
        refuse_if(
            extra and (field or "{" in line), "syntax", start, "An opening brace may be lost."
        )
        line = before.rpartition("\n")[2].strip(EDGES)
        alone = _LINE_END.match(after.partition("\n")[0]) and line[-1:] in {*":=(>`", ""}
        short = not alone and answer.end - start < 50
        bare = short and any(r["kind"] == "unquoted_value" for r in answer.repairs)
        refuse_if(bare, "syntax", start, "In a sentence, data would be quoted.")
        refuse_if(STRAY.match(after), "syntax", answer.end, "More follows than one document.")
        refuse_if(re.match(r"\s*(\.{3}|…)", after), "elided", answer.end, "Data was left out.")
    start, around = answers[0].start, "\n".join(gaps)
    json_like = _MEMBER.search(around) or _LEFTOVER.search(_PROSE_BRACKETS.sub("", around))
    listed = _FIELD_BEFORE.search(gaps[0]) and len(_FIELD.findall(around)) > 1
    other = listed or _CODE.search(around)
    refuse_if(_LEFT_OUT.search(around), "elided", start, "The text tells of data left out.")
    refuse_if(json_like, "ambiguous", start, "What surrounds the answer looks like JSON, too.")
    refuse_if(other, "no_json", start, "The brackets belong to code or to another format.")
