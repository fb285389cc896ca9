"""Tell later calls of a graph about the errors in the outputs of earlier calls.

A lesson describes the errors of one attempt. A key of the graph's state keeps a list of the newest
lessons, the window. The reducer of this key gives the same result in any order, so parallel calls
and repeated writes are safe. The lesson of a corrected error stays, because other calls may make
the same error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict

from graph_retry._core.ground.functions.steering import LessonsRule, Taught
from graph_retry._core.ground.quoting import LESSONS, framed, issue_line, tame
from graph_retry._core.params.prompt import Prompt
from graph_retry.plugins import Count, checked, cut, digest
from graph_retry.records import Attempt

_WINDOW = 10
"""Number of lessons that a state key keeps by default."""

_LENGTH = 400
"""Maximum characters of one lesson."""

_SAID = 200
"""Maximum characters of the model's answer that a lesson keeps."""

_KINDS = ("invalid_syntax", "invalid_schema")


class Lesson(TypedDict):
    """The errors of one attempt of a step.

    id: A hash of the attempt, so that a repeated write adds nothing.
    step: The name of the attempt's call.
    text: The errors as a text. Old saved windows may also hold successes, with None as text.
    at: The attempt's start, in ISO 8601.
    attempt: The attempt's number. Lessons of older versions lack it.
    mended: The start of the later attempt with which the call succeeded, in ISO 8601.
    said: The beginning of the model's answer, only for people: it is never put into a prompt.
    """

    id: str
    step: str
    text: str
    at: str
    attempt: NotRequired[int]
    mended: NotRequired[str]
    said: NotRequired[str]


@checked
@dataclass(frozen=True, kw_only=True)
class Lessons(LessonsRule):
    """The option `lessons`: add the errors of other steps to a call's prompt.

    field: The params field to write to (default: `messages`, `prompt` or params that are a text).
    known: Lessons to start with. In the function form, pass the lessons of earlier steps here. A
        retry node reads them from its state key `lessons`.
    window: Number of newest lessons that the state key keeps. If your own state schema declares
        this key, give it the reducer `merging_lessons(window)`.
    told: Number of newest lessons to add to the params.
    """

    field: str | None = None
    known: Annotated[Sequence[Lesson], "what `lessons_of` returns"] = ()
    window: Count = _WINDOW
    told: Count = 3

    @property
    def reducer(self) -> Callable[..., list[Lesson]]:
        """The LangGraph reducer of the state key with the lessons: `merging_lessons(window)`."""
        return merging_lessons(self.window)

    def learned(self, step: str, attempts: Sequence[Attempt]) -> list[Lesson]:
        """Return the lessons of some attempts; see `lessons_of`."""
        return lessons_of(step, attempts)

    def add_to(self, params: Any, window: list[Lesson]) -> Taught | None:
        """Return the params with the newest lessons, and a reason; None without lessons."""
        taught = self.taught(params, window)
        return taught and Taught(taught[0].params, taught[1], taught[0].added.parts)

    def taught(self, params: Any, window: list[Lesson]) -> tuple[Prompt, str] | None:
        """Return a prompt with the newest lessons, and a reason; None without lessons."""
        lessons = [lesson for lesson in window if lesson["text"]][-self.told :]  # See `text`.
        if not lessons:
            return None
        often = Counter(lesson["step"] for lesson in lessons)
        lines = [
            tame(f"- {_named(lesson, often)}: {lesson['text']}"[:_LENGTH])
            + (" (mended since)" if lesson.get("mended") else "")
            for lesson in lessons
        ]
        block = framed(LESSONS, ["Earlier answers had these faults (quoted as data):", *lines])
        steps = ", ".join(sorted({lesson["step"] for lesson in window if lesson["text"]}))
        prompt = Prompt(params, self.field, owner="Lessons")
        return prompt.placed("lessons", block), f"what went wrong before in {steps}"

    def newest(self, window: Any, step: str, own: Sequence[Attempt]) -> list[Lesson]:
        """Return the newest lessons, at most `told`, of `window` and of the step's own attempts."""
        return super().newest(window, step, own)[-self.told :]


def _named(lesson: Lesson, often: Counter[str]) -> str:
    """Return the name of a lesson's step, with attempt and time if it has several lessons."""
    if often[lesson["step"]] < 2:
        return lesson["step"]
    number = f"attempt {lesson['attempt']}" if "attempt" in lesson else ""
    told = ", ".join(filter(None, (number, lesson["at"][11:19])))
    return f"{lesson['step']} ({told})" if told else lesson["step"]


@checked
@lru_cache(maxsize=64)
def merging_lessons(window: Count) -> Callable[..., list[Lesson]]:
    """Make a reducer for a state key that keeps the `window` newest lessons, like `merge_lessons`.

    Example:
        >>> wrong = [Lesson(id=n, step="s", text=n, at=n) for n in ("1", "2", "3")]
        >>> [lesson["text"] for lesson in merging_lessons(2)([], wrong)]
        ['2', '3']
    """

    def merge(known: list[Lesson] | None, new: list[Lesson] | None) -> list[Lesson]:
        given = [lesson for lesson in (*(known or ()), *(new or ())) if lesson["text"]]
        # If there are two copies of a lesson, the copy with `mended` is kept.
        by_id = {each["id"]: each for each in sorted(given, key=lambda one: one.get("mended", ""))}
        return sorted(by_id.values(), key=lambda each: (each["at"], each["id"]))[-window:]

    return merge


@checked
def merge_lessons(window: list[Lesson] | None, new: list[Lesson] | None) -> list[Lesson]:
    """Merge new lessons into the list of a state key. Use this function as the reducer of the key.

    The list keeps the ten newest lessons, each once.

    Example:
        >>> wrong = Lesson(id="a", step="extract", text="/age: missing", at="2030-01-01")
        >>> [lesson["text"] for lesson in merge_lessons([wrong], [wrong, wrong])]
        ['/age: missing']
    """
    return merging_lessons(_WINDOW)(window, new)


@checked
def lessons_of(step: str, attempts: Sequence[Attempt]) -> list[Lesson]:
    """Return one lesson for each attempt whose output could not be read or was not valid.

    Write the lessons to a state key with the reducer `merge_lessons`. If the last attempt
    succeeded, the lessons of the earlier attempts are marked as `mended`.

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
        failure, at = attempt["failure"], attempt["started_at"]
        if failure is None or failure["kind"] not in _KINDS:
            continue
        faults = [issue_line(issue, received=False) for issue in attempt["issues"][:3]]
        text = tame("; ".join(faults) or failure["message"])[:_LENGTH]
        lesson_id = digest(attempt["idempotency_key"], at)
        lesson = Lesson(id=lesson_id, step=step, text=text, at=at, attempt=attempt["number"])
        said = (attempt["raw"] or {}).get("text")
        if isinstance(said, str):
            lesson["said"] = cut(said, _SAID)
        later = [one["started_at"] for one in attempts if one["number"] > attempt["number"]]
        if later and attempts[-1]["failure"] is None:
            lesson["mended"] = later[-1]
        lessons.append(lesson)
    return lessons
