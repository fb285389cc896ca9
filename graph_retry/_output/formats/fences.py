"""Find the answer in a text: behind closed thoughts, in a fence of its own, or all of it."""

from __future__ import annotations

import re

from graph_retry._output.repair.report import refuse_if, repair
from graph_retry.records import Repair

_THOUGHTS = re.compile(
    r"\s*<(think|thinking|thought|reasoning)\b[^>]*>.*?</\1>", re.DOTALL | re.IGNORECASE
)
_FENCE = re.compile(r"(?ms)^ *(`{3,}|~{3,}) *([\w+#.-]*) *\n(.*?)^ *\1[`~]* *$")
_OPEN_FENCE = re.compile(r"(?m)^ *(?:`{3,}|~{3,})[ \w+#.-]*$")
_WHOLE_FENCE = re.compile(r"(?s)\s*(`{3,}|~{3,})[ \t]*[\w+#.-]*[ \t]*\n(.*)\n[ \t]*\1[`~]*\s*\Z")


def whole_fence(text: str) -> str:
    """Take a text out of the one fence that holds all of it, if there is one."""
    match = _WHOLE_FENCE.fullmatch(text)
    return match[2] if match and not _OPEN_FENCE.search(match[2]) else text


def answer_in(text: str, tags: frozenset[str]) -> tuple[str, list[Repair]]:
    """Return the part of a text that is the answer, and what was left out around it.

    Raises:
        Unreadable: It begins and does not end, or there are several.
    """
    thoughts = _THOUGHTS.match(text)
    start = thoughts.end() if thoughts else 0
    fences = [fence for fence in _FENCE.finditer(text, start) if fence[2].lower() in tags | {""}]
    if not fences:
        opened = _OPEN_FENCE.search(text, start)
        refuse_if(opened, "truncated", opened.start() if opened else 0, "A fence is never closed.")
        return text[start:], [_left_out(text[:start])] if start else []
    tagged = [fence for fence in fences if fence[2]] or fences
    differ = {fence[3].strip() for fence in tagged}
    refuse_if(len(differ) > 1, "ambiguous", tagged[-1].start(), "There are two answers.")
    fence = tagged[0]
    return fence[3], [_left_out((text[: fence.start()] + text[fence.end() :]).strip() or fence[1])]


def _left_out(around: str) -> Repair:
    kind = "code_fence" if set(around.strip()) <= {"`", "~"} else "surroundings"
    return repair(kind, 0, f"left out around the answer: {around.strip()[:60]}")
