"""What one step got wrong, passed on to the steps after it: a rolling window that calls share.

The window is a list in graph state that merges the same way in any order, so that parallel calls
and repeated writes do no harm. A step's lessons go when it succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from graph_retry._json import digest, is_object
from graph_retry.hooks._prompt import Prompt, content_of, is_system, turns
from graph_retry.hooks._quoting import LESSONS, Frame, framed, issue_line, tame, unframed
from graph_retry.records import Attempt

_WINDOW = 10
"""Lessons that a window keeps."""

_PASSED_ON = 3
"""Lessons that are passed on to a step, the newest."""

_LENGTH = 400
"""Characters of one lesson."""

_KINDS = ("invalid_syntax", "invalid_schema")


class Lesson(TypedDict):
    """What was wrong with one attempt of a step."""

    id: str
    """Known by its attempt: a repeated write adds nothing."""

    step: str
    """The name of the call that made the attempt."""

    text: str | None
    """What was wrong; None says that the step succeeded, which ends its earlier lessons."""

    at: str
    """The attempt's start, in ISO 8601."""


@dataclass(frozen=True, kw_only=True)
class Lessons:
    """How a call learns from other steps: the option `lessons`.

    field: The params field to write to (default: `messages`, `prompt`, or the bare text).
    known: Lessons to start with, where the call has no state key `lessons` (function form).
    """

    field: str | None = None
    known: Sequence[Lesson] = ()

    def __post_init__(self) -> None:
        if not all(map(is_object, self.known)):
            raise TypeError(f"`known` is {self.known!r:.80}: give what `lessons_of` returns.")

    def add_to(self, params: Any, window: list[Lesson]) -> tuple[Any, str] | None:
        """Return the params with the last lessons in front, and why; None without any."""
        lessons = [lesson for lesson in window if lesson["text"]][-_PASSED_ON:]
        if not lessons:
            return None
        lines = [tame(f"- {lesson['step']}: {lesson['text']}"[:_LENGTH]) for lesson in lessons]
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


def merge_lessons(window: list[Lesson] | None, new: list[Lesson] | None) -> list[Lesson]:
    """Reduce lessons into a window: each once, none from before its step's success, the last ten.

    Example:
        >>> wrong = Lesson(id="a", step="extract", text="/age: missing", at="2030-01-01")
        >>> right = Lesson(id="b", step="extract", text=None, at="2030-01-02")
        >>> merge_lessons([right], [wrong, wrong])
        [{'id': 'b', 'step': 'extract', 'text': None, 'at': '2030-01-02'}]
    """
    by_id = {lesson["id"]: lesson for lesson in (*(window or ()), *(new or ()))}
    ordered = sorted(by_id.values(), key=lambda lesson: (lesson["at"], lesson["id"]))
    last_success = {lesson["step"]: lesson for lesson in ordered if lesson["text"] is None}
    still_wrong = [
        lesson
        for lesson in ordered
        if lesson["step"] not in last_success or lesson["at"] > last_success[lesson["step"]]["at"]
    ]
    successes = [lesson for lesson in ordered if lesson is last_success.get(lesson["step"])]
    return [*successes, *still_wrong[-_WINDOW:]]


def lessons_of(step: str, attempts: Sequence[Attempt]) -> list[Lesson]:
    """Return what some attempts of a step teach, for a state key with `merge_lessons`.

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
