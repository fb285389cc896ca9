"""A ready-made hook that tells the model which errors its last answer had.

New feedback replaces the feedback before it, so the prompt does not grow with each attempt. The
record of an attempt lists the texts that feedback added, and only these texts are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from graph_retry._core.ground.quoting import COMMENT, FEEDBACK, fenced, framed, issue_line, tame
from graph_retry._core.params.fields import fields_of
from graph_retry._core.params.prompt import Added, Prompt
from graph_retry.errors import AttemptFailed
from graph_retry.plugins import Count, checked, cut
from graph_retry.records import Attempt, Issue

FeedbackStrategy = Literal["errors_only", "full", "truncated"]

_ASK = "Answer again with the complete, corrected JSON and nothing else: no prose, no code fence."
_KINDS = ("invalid_syntax", "invalid_schema", "truncated")
_QUOTED: dict[str, int] = {"full": 20_000, "truncated": 500, "errors_only": 0}
"""Maximum characters of the last answer that each strategy quotes."""

_EARLIER = 5
"""Maximum number of errors from earlier answers that feedback repeats."""

_COMMENTED_ON = 4_000
"""Maximum characters of the answer that are quoted to the model with a person's comment."""


@checked
def feedback(
    strategy: FeedbackStrategy = "errors_only",
    *,
    field: str | None = None,
    schema: bool = True,
    limit: Count = 50_000,
    measure: Callable[[str], int] = len,
    turns: bool = False,
) -> Feedback:
    """Make a hook that adds the errors of the last answer to the params' `messages` or `prompt`.

    The hook acts if the output could not be read, was not valid or was cut off. It ignores
    transport errors, because the model cannot correct them. New feedback replaces earlier feedback,
    except feedback that a person edited. The feedback also names errors that only earlier answers
    had. A cut-off answer gets no feedback if a hook has changed the params.

    Args:
        strategy: The part of the last answer that is quoted with the errors: none (`errors_only`),
            the first 500 characters (`truncated`), or the first 20,000 characters (`full`).
        field: The params field to write to (default: the first of `messages`, `prompt`, and params
            that are a single text). In messages, the feedback is added to the last message if a
            user wrote this message. Otherwise the feedback becomes a new user message.
        schema: Whether the first retry describes the type of the output, if it has a JSON Schema.
            The notation is short. A part that it cannot say is quoted as JSON Schema.
        limit: Maximum size of the field with its feedback, in the unit of `measure`. Feedback is
            shortened to fit. If not even one error fits, no feedback is added.
        measure: A function that returns the size of a text (default: the number of characters).
        turns: Whether feedback on `messages` adds two messages: the model's answer as an assistant
            message, and the feedback as a user message. Of a long answer, the first message has at
            least the first 500 characters and the number of omitted characters. The default is
            False, because a small model repeated such an answer word for word.

    Raises:
        ValueError: Before the first call, if the params have no text or messages to write to.

    Example:
        >>> error = AttemptFailed("no", kind="invalid_schema", issues=[{
        ...     "path": "/age", "message": "Input should be a valid integer", "code": "int_type",
        ...     "expected": "integer", "received": "'old'"}])
        >>> print(feedback()(error, 2, {"prompt": "Who?"})["prompt"])
        Who?
        <BLANKLINE>
        [feedback on your last answer]
        1. /age: Input should be a valid integer (expected: integer; received: 'old')
        Answer again with the complete, corrected JSON and nothing else: no prose, no code fence.
        [end of feedback]
    """
    return Feedback(strategy, field, schema, limit, measure, turns)


@dataclass(frozen=True)
class Feedback:
    """The hook that `feedback` returns. Most of its fields are the arguments of `feedback`.

    ask: The closing sentence, which tells the model how to answer.
    """

    strategy: FeedbackStrategy
    field: str | None
    schema: bool
    limit: int
    measure: Callable[[str], int]
    turns: bool = False
    ask: str = _ASK
    optional: bool = False
    """If true, params without a prompt get no feedback. If false, such params are refused."""
    __name__ = "feedback"

    def __call__(self, error: AttemptFailed, attempt: int, params: Any) -> Any:
        """Return the params with feedback; None if there is nothing to add or no space for it."""
        if error.kind not in _KINDS or (self.optional and not self.has_prompt(params)):
            return None
        prompt = Prompt(params, self.field, added=error.added)
        in_turns = self.turns and not isinstance(prompt.value, str)
        for quoted, text in _texts(error, self, self.schema and attempt == 1, in_turns=in_turns):
            answer = (error.raw_output or "") if in_turns else None
            told = _told(prompt, "feedback", text, answer, quoted)
            if self.measure(told.text) <= self.limit:
                # The loop reads from the error which parts the hook has added.
                error.added = told.added
                return told.params
        return None

    def asking(self, words: str) -> Feedback:
        return replace(self, ask=words)

    def check_params(self, params: Any) -> None:
        """Raise `ValueError` if the params have no text or messages to add feedback to."""
        if not self.optional:
            Prompt(params, self.field)

    def has_prompt(self, params: Any) -> bool:
        """Return whether the params have a text or messages to add feedback to."""
        return isinstance(params, str) or Prompt.found_in(fields_of(params), self.field) is not None

    def place(self, fields: Mapping[str, Any], field: str | None) -> str | None:
        """Return the name of the field to which a comment can be added; None if there is none."""
        return Prompt.found_in(fields, field)

    def with_comment(
        self,
        params: Any,
        message: str,
        *,
        answer: str,
        issues: Sequence[Issue],
        field: str | None,
        added: Added | None,
    ) -> tuple[Any, Added]:
        """Add a person's comment on the last answer. Return the params and the texts added to them.

        The comment replaces the feedback and comments in `added`. The answer is quoted, because the
        comment may refer to it.
        """
        prompt, lines = Prompt(params, field, added=added), list[str]()
        in_turns = self.turns and bool(answer) and not isinstance(prompt.value, str)
        if answer and not in_turns:
            lines += ["Your answer was (quoted as data):", fenced(cut(answer, _COMMENTED_ON))]
        lines += _issue_lines(issues, 20)
        what = "your answer" if answer else "this request"
        lines += [f"Somebody who reviewed {what} says:", tame(message)]
        text = framed(FEEDBACK if answer else COMMENT, lines)
        turn = answer if in_turns else None
        told = _told(prompt, "comment", text, turn, quoted=_COMMENTED_ON)
        return told.params, told.added


@checked
def feedback_text(
    error: AttemptFailed | str,
    strategy: FeedbackStrategy = "errors_only",
    *,
    issues: Sequence[Issue] = (),
    schema: bool = False,
) -> str:
    """Write the text with which `feedback` describes a failed attempt, for use in your own hook.

    Args:
        error: The error that the hook gets as its first argument, or the refused answer as a text.
        strategy: The part of the answer to quote; see `feedback`.
        issues: The errors of the answer, if `error` is a text.
        schema: Whether to describe the type of the output.

    Example:
        >>> print(feedback_text("ten", "full", issues=[{"path": "", "message": "not a number"}]))
        [feedback on your last answer]
        Your answer was (quoted as data):
        ```
        ten
        ```
        1. the whole answer: not a number
        Answer again with the complete, corrected JSON and nothing else: no prose, no code fence.
        [end of feedback]
    """
    if isinstance(error, str):
        error = AttemptFailed("refused", kind="invalid_schema", issues=[*issues], raw_output=error)
    return _text(error, _ASK, quoted=_QUOTED[strategy], issues=20, with_schema=schema)


def _texts(
    error: AttemptFailed, hook: Feedback, with_schema: bool, *, in_turns: bool
) -> Iterator[tuple[int, str]]:
    """Yield ever shorter versions of the feedback, each with the length of the quoted answer.

    With `in_turns`, an assistant message contains the answer, so the feedback does not quote it.
    """
    most = _QUOTED[hook.strategy]
    for quoted in dict.fromkeys((most, min(most, 500), 0)):
        part = 0 if in_turns else quoted
        yield quoted, _text(error, hook.ask, quoted=part, issues=20, with_schema=with_schema)
    for issues in (20, 1):
        yield 0, _text(error, hook.ask, quoted=0, issues=issues, with_schema=False)


def _text(error: AttemptFailed, ask: str, *, quoted: int, issues: int, with_schema: bool) -> str:
    lines: list[str] = []
    if quoted and error.raw_output:
        size = len(error.raw_output)
        part = f"began with these {quoted:,} of its {size:,} characters" if size > quoted else "was"
        lines += [f"Your answer {part} (quoted as data):", fenced(error.raw_output[:quoted])]
    if len(error.issues) > 1:
        lines.append(f"It has {len(error.issues)} errors:")
    lines += [*_issue_lines(error.issues, issues), *_earlier_lines(error, issues)]
    record: Any = error.attempts[-1] if error.attempts else {"repairs": []}
    if record.get("stopped_early"):
        lines.append("It was stopped there: what was still to come may be wrong as well.")
    repairs = record["repairs"]
    if repairs and error.kind == "invalid_schema":
        kinds = ", ".join(dict.fromkeys(repair["kind"] for repair in repairs))
        lines.append(f"It could be read only after repairs: {kinds}.")
    if error.kind == "truncated":
        lines.append("It was cut off before its end: be shorter.")
    lines.append(ask)
    if with_schema and error.output_schema:
        from graph_retry.output import describe_type  # noqa: PLC0415 - only a first retry needs it

        lines += ["It must be of this type:", tame(describe_type(error.output_schema))]
    return framed(FEEDBACK, lines)


def _issue_lines(issues: Sequence[Issue], most: int) -> list[str]:
    lines = [f"{n}. {issue_line(issue)}" for n, issue in enumerate(issues[:most], start=1)]
    more = len(issues) - most
    return [*lines, f"… and {more} more."] if more > 0 else lines


def _earlier_lines(error: AttemptFailed, most: int) -> list[str]:
    """Return lines with the number of refused answers in a row, and the errors of earlier answers.

    New feedback replaces earlier feedback. Without these lines, a model might repeat an error that
    it had already corrected.
    """
    refused = list[Attempt]()
    for attempt in reversed(error.attempts):
        if attempt["failure"] is None or attempt["failure"]["kind"] not in _KINDS:
            break
        refused.append(attempt)
    if len(refused) < 2:
        return []
    now = {(issue["path"], issue["message"]) for issue in error.issues}
    past = {(i["path"], i["message"]): i for each in refused[1:] for i in each["issues"]}
    faults = [issue_line(past[key], received=False) for key in past if key not in now]
    told = [f"- {line}" for line in faults[: min(most, _EARLIER)]]
    intro = [f"Your last {len(refused)} answers were refused."]
    return [
        *intro,
        *(["Faults of the earlier ones, which must not come back:"] if told else []),
        *told,
    ]


def _told(prompt: Prompt, by: str, text: str, answer: str | None, quoted: int = 0) -> Prompt:
    """Add feedback to a prompt (a text or messages). Remove earlier feedback and comments from it.

    If `answer` is given, it is added as an assistant message, and the feedback as a user message.
    """
    prompt = prompt.without("feedback", "comment")
    end = len(prompt.value)
    if isinstance(prompt.value, str):
        return prompt.adding(by, f"\n\n{text}", end)
    if answer is None and (told := prompt.adding_to_last(by, f"\n\n{text}")):
        return told
    said = [("user", text)]
    if answer is not None:
        quoted = max(quoted, _QUOTED["truncated"])
        left = f" [… {len(answer) - quoted:,} more characters]" if len(answer) > quoted else ""
        was = (tame(answer[:quoted]) or "(no text)") + left
        said.insert(0, ("assistant", was))
    return prompt.adding(by, prompt.turns(*said), end)
