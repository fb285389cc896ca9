"""Find the answer in a model's text. If there is a Markdown fence, the answer is inside it.

Thoughts at the beginning, such as `<think>…</think>`, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from graph_retry.lossless._ground import lazy
from graph_retry.lossless.results import refuse_if, repair
from graph_retry.records import Repair

_THOUGHTS = lazy(
    r"\s*<(think|thinking|thought|reasoning)\b[^>]*>.*?</\1>", re.DOTALL | re.IGNORECASE
)
_OPEN_FENCE = lazy(r"(?m)^ *+(?:`{3,}|~{3,})[ \w+#.-]*$")
_WHOLE_FENCE = lazy(r"(?s)\s*(`{3,}|~{3,})[ \t]*[\w+#.-]*[ \t]*\n(.*)\n[ \t]*\1[`~]*\s*\Z")

Spans = Callable[[str], Iterable[tuple[int, int]]]
"""A function that lists the start and end of each field. A fence in a field is content."""


def whole_fence(text: str) -> str:
    """Return the content of a fence that surrounds the whole text, or the text itself."""
    match = _WHOLE_FENCE.fullmatch(text)
    return match[2] if match and not _OPEN_FENCE.search(match[2]) else text


def answer_in(
    text: str, tags: frozenset[str], fields: Spans = lambda _text: ()
) -> tuple[str, list[Repair]]:
    """Return the part of a text that is the answer, and a repair for each part that is left out.

    A fence inside a field is a part of the answer. `fields` finds the fields.

    Raises:
        Unreadable: If a fence is never closed, or if there are several different answers.
    """
    from graph_retry.lossless.candidates import fences_in  # noqa: PLC0415 - JSON needs none

    thoughts = _THOUGHTS.match(text)
    start = thoughts.end() if thoughts else 0
    seen = _without_marks(text, fields)
    closed = [each for each in fences_in(seen, start) if each.end() > each.end("inside")]
    fences = [each for each in closed if each["tag"].lower() in tags | {""}]
    if not fences:
        opened = _OPEN_FENCE.search(seen, start)
        refuse_if(opened, "truncated", opened.start() if opened else 0, "A fence is never closed.")
        return text[start:], [_left_out(text[:start])] if start else []
    tagged = [each for each in fences if each["tag"]] or fences
    spans = [each.span("inside") for each in tagged]
    differ = {text[low:high].strip() for low, high in spans}
    refuse_if(len(differ) > 1, "ambiguous", spans[-1][0], "There are two answers.")
    # If an unpaired mark follows, the last fence may have ended too early, inside the answer.
    after = closed[-1].end()
    alone = _OPEN_FENCE.search(seen, after)
    goes_on = alone is not None and seen[after : alone.start()].strip()
    refuse_if(goes_on, "ambiguous", after, "A fence is closed before its end.")
    around = text[: tagged[0].start()] + text[tagged[0].end() :]
    return text[slice(*spans[0])], [_left_out(around.strip() or "```")]


def _without_marks(text: str, fields: Spans) -> str:
    """Replace each backtick and tilde in a field by a space, so that it opens no fence."""
    pieces, end = list[str](), 0
    for start, stop in fields(text):
        pieces += [text[end:start], re.sub("[`~]", " ", text[start:stop])]
        end = stop
    return "".join([*pieces, text[end:]])


def _left_out(around: str) -> Repair:
    kind = "code_fence" if set(around.strip()) <= {"`", "~"} else "surroundings"
    return repair(kind, 0, f"left out around the answer: {around.strip()[:60]}")
