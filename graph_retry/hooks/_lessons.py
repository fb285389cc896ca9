"""The errors of one step for the steps after it: a rolling window that calls share.

The window is a list in graph state that merges the same way in any order, so that parallel calls
and repeated writes do no harm. A mistake that has been corrected still teaches the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from graph_retry._json import digest, is_object, is_whole
from graph_retry._quoting import LESSONS, Frame, framed, issue_line, tame, unframed
from graph_retry.hooks._prompt import Prompt, content_of, is_system, turns
from graph_retry.records import Attempt

_WINDOW = 10
"""Lessons that a window keeps, unless `Lessons` says otherwise."""

_LENGTH = 400
"""Characters of one lesson."""

_KINDS = ("invalid_syntax", "invalid_schema")


class Lesson(TypedDict):
    """The errors of one attempt of a step."""

    id: str
    """Known by its attempt: a repeated write adds nothing."""

    step: str
    """The name of the call that made the attempt."""

    text: str | None
    """The errors; None means that the step succeeded, and has corrected its earlier errors."""

    at: str
    """The attempt's start, in ISO 8601."""


@dataclass(frozen=True, kw_only=True)
class Lessons:
    """How a call learns from other steps: the option `lessons`.

    field: The params field to write to (default: `messages`, `prompt`, or the bare text).
    known: Lessons to start with, where the call has no state key `lessons` (function form).
    window: Lessons that the state key keeps, the newest. A key that other graphs share needs the
        reducer `merging_lessons(window)` there as well.
    told: Number of lessons that a step is given, the newest first.
    """

    field: str | None = None
    known: Sequence[Lesson] = ()
    window: int = _WINDOW
    told: int = 3

    def __post_init__(self) -> None:
        for name in ("window", "told"):
            number = getattr(self, name)
            if not is_whole(number) or number < 1:
                raise ValueError(f"`{name}` is {number!r:.200}: give a whole number from 1.")
        if not all(map(is_object, self.known)):
            raise TypeError(f"`known` is {self.known!r:.80}: give what `lessons_of` returns.")

    def add_to(self, params: Any, window: list[Lesson]) -> tuple[Any, str] | None:
        """Return the params with the last lessons in front, and why; None without any."""
        lessons = [lesson for lesson in window if lesson["text"]][-self.told :]
        if not lessons:
            return None
        right = {lesson["step"]: lesson["at"] for lesson in window if lesson["text"] is None}
        lines = [
            tame(f"- {lesson['step']}: {lesson['text']}"[:_LENGTH])
            + (" (mended since)" if lesson["at"] < right.get(lesson["step"], "") else "")
            for lesson in lessons
        ]
        block = framed(LESSONS, ["Earlier answers had these faults (quoted as data):", *lines])
        steps = ", ".join(sorted({lesson["step"] for lesson in window if lesson["text"]}))
        prompt = Prompt(params, self.field, owner="Lessons")
        return placed(prompt, LESSONS, block), f"what went wrong before in {steps}"


def placed(prompt: Prompt, frame: Frame, block: str) -> Any:
    """Return the prompt's params with a framed block in front, in place of an earlier one."""
    if isinstance(prompt.value, str):
        return prompt.replaced(f"{block}\n\n{unframed(frame, prompt.value)}")
    messages = [message for message in prompt.value if frame.begin not in str(content_of(message))]
    start = next((n for n, message in enumerate(messages) if not is_system(message)), len(messages))
    turn = turns(messages, ("system", block))
    return prompt.replaced([*messages[:start], *turn, *messages[start:]])


def merging_lessons(window: int) -> Callable[..., list[Lesson]]:
    """Make a reducer as `merge_lessons` is, that keeps so many lessons.

    Example:
        >>> wrong = [Lesson(id=n, step="s", text=n, at=n) for n in ("1", "2", "3")]
        >>> [lesson["text"] for lesson in merging_lessons(2)([], wrong)]
        ['2', '3']
    """

    def merge(known: list[Lesson] | None, new: list[Lesson] | None) -> list[Lesson]:
        by_id = {lesson["id"]: lesson for lesson in (*(known or ()), *(new or ()))}
        ordered = sorted(by_id.values(), key=lambda lesson: (lesson["at"], lesson["id"]))
        last_success = {lesson["step"]: lesson for lesson in ordered if lesson["text"] is None}
        successes = [lesson for lesson in ordered if lesson is last_success.get(lesson["step"])]
        wrong = [lesson for lesson in ordered if lesson["text"] is not None]
        return [*successes, *wrong[-window:]]

    return merge


def merge_lessons(window: list[Lesson] | None, new: list[Lesson] | None) -> list[Lesson]:
    """Reduce lessons into a window: each once, the last ten, and when each step last succeeded.

    Example:
        >>> wrong = Lesson(id="a", step="extract", text="/age: missing", at="2030-01-01")
        >>> [lesson["text"] for lesson in merge_lessons([wrong], [wrong, wrong])]
        ['/age: missing']
    """
    return merging_lessons(_WINDOW)(window, new)


def lessons_of(step: str, attempts: Sequence[Attempt]) -> list[Lesson]:
    """Return the lessons of some attempts of a step, for a state key with `merge_lessons`.

    Example:
        >>> from graph_retry import AttemptsExhausted, retry_llm_call
        >>> try:
        ...     retry_llm_call(lambda prompt: "ten", "How many?", output=int, review=False)
        ... except AttemptsExhausted as error:
        ...     print(lessons_of("count", error.attempts)[0]["text"][:23])
        the whole answer: There
    """
    lessons: list[Lesson] = []
    for attempt in attempts:
        failure, text = attempt["failure"], None
        if failure is not None:
            faults = [issue_line(issue, received=False) for issue in attempt["issues"][:3]]
            text = tame("; ".join(faults) or failure["message"])[:_LENGTH]
        if failure is None or failure["kind"] in _KINDS:
            at = attempt["started_at"]
            lesson_id = digest(attempt["idempotency_key"], at)
            lessons.append(Lesson(id=lesson_id, step=step, text=text, at=at))
    return lessons
