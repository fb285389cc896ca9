"""What one step got wrong, told to the steps after it: a rolling window that several calls share.

The window is a list in graph state that merges the same way in any order, so that parallel calls
and repeated writes do no harm. A step's lessons go when it succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from graph_retry.hooks._prompt import Prompt, content_of, is_system, turns
from graph_retry.hooks._quoting import LESSONS, framed, issue_line, tame, unframed
from graph_retry.ledger import digest
from graph_retry.records import Attempt

KEPT, TOLD, _CHARS = 10, 3, 400
"""Lessons kept in a window, lessons told to a step, characters of one."""

_KINDS = ("invalid_syntax", "invalid_schema")


class Lesson(TypedDict):
    """What was wrong with one attempt of a step, or with `text` None: that it was right at last.

    `id` belongs to the attempt, `at` is its start.
    """

    id: str
    step: str
    text: str | None
    at: str


_NEVER = Lesson(id="", step="", text=None, at="")


@dataclass(frozen=True, kw_only=True)
class Lessons:
    """How a call learns from other steps: the option `lessons`.

    field: The params field to write to (default: `messages`, `prompt`, or the bare text).
    known: Lessons to start with, where the call has no state key `lessons` (function form).
    """

    field: str | None = None
    known: Sequence[Lesson] = ()

    def told_to(self, params: Any, window: list[Lesson]) -> Any:
        """Return the params with the last lessons in front, in place of earlier ones, or None."""
        told = [lesson for lesson in window if lesson["text"]][-TOLD:]
        if not told:
            return None
        lines = [tame(f"- {lesson['step']}: {lesson['text']}"[:_CHARS]) for lesson in told]
        block = framed(LESSONS, ["Earlier answers had these faults (quoted as data):", *lines])
        prompt = Prompt(params, self.field, owner="Lessons")
        if isinstance(prompt.value, str):
            return prompt.replaced(f"{block}\n\n{unframed(LESSONS, prompt.value)}")
        others = [each for each in prompt.value if LESSONS.begin not in str(content_of(each))]
        start = next((n for n, each in enumerate(others) if not is_system(each)), len(others))
        turn = turns(others, ("system", block))
        return prompt.replaced([*others[:start], *turn, *others[start:]])


def merge_lessons(held: list[Lesson] | None, new: list[Lesson] | None) -> list[Lesson]:
    """Reduce lessons into a window: each once, none from before its step's success, the last ten.

    Example:
        >>> wrong = Lesson(id="a", step="extract", text="/age: missing", at="2030-01-01")
        >>> right = Lesson(id="b", step="extract", text=None, at="2030-01-02")
        >>> merge_lessons([right], [wrong, wrong])
        [{'id': 'b', 'step': 'extract', 'text': None, 'at': '2030-01-02'}]
    """
    known = {lesson["id"]: lesson for lesson in (*(held or ()), *(new or ()))}
    ordered = sorted(known.values(), key=lambda lesson: (lesson["at"], lesson["id"]))
    right = {each["step"]: each for each in ordered if each["text"] is None}
    successes = [each for each in ordered if each is right.get(each["step"])]
    wrong = [each for each in ordered if each["at"] > right.get(each["step"], _NEVER)["at"]]
    return [*successes, *wrong[-KEPT:]]


def lessons_of(step: str, attempts: Sequence[Attempt]) -> list[Lesson]:
    """Return what some attempts of a step teach, for a state key with `merge_lessons`."""
    found: list[Lesson] = []
    for attempt in attempts:
        failure, text = attempt["failure"], None
        if failure is not None:
            faults = [issue_line(each, received=False) for each in attempt["issues"][:3]]
            text = tame("; ".join(faults) or failure["message"])[:_CHARS]
        if failure is None or failure["kind"] in _KINDS:
            at = attempt["started_at"]
            id_ = digest(attempt["idempotency_key"], at)
            found.append(Lesson(id=id_, step=step, text=text, at=at))
    return found
