"""Answer many reviews from a file of JSON Lines, first as a dry run."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graph_retry import PendingReview
from graph_retry.desk.cli.exits import ExitCode, Stop
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.source import Source
from graph_retry.errors import AnswerRefused, StaleDecision
from graph_retry.plugins import NotJsonError, counted, error_text, is_object, read_json
from graph_retry.reviews import DECISIONS, Decision, foreseen
from graph_retry.threads import read_answer


@dataclass
class Line:
    """One line of the file: an answer, and its result."""

    number: int
    thread_id: str
    review_id: str
    decision: Decision
    result: str = "open"


def answer_from(
    source: Source, screen: Screen, file: Path, by: str | None, *, apply: bool
) -> ExitCode:
    """Print the review of each line of a file. With `apply`, send the answers.

    Without `apply`, the output also names the values that the question's schemas refuse. All
    answers to a thread are applied in one run.

    A line is an object with `thread_id`, `review_id` and `decision`. For example, add a decision to
    a line of `inbox --json`.

    Raises:
        Stop: If a line cannot be read. No line is applied then.
    """
    lines = _lines(file)
    waiting = {review.review_id: review for review in source.inbox()}
    code = ExitCode.DONE
    threads: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        found = _look(line, waiting.get(line.review_id))
        if found is not ExitCode.STALE:
            threads[line.thread_id].append(line)
        if found is ExitCode.STALE or not apply:
            code = max(code, found)
    with screen.progress("threads", len(threads)) as advance:
        for thread_id, answers in threads.items() if apply else ():
            code = max(code, _apply(source, thread_id, answers, by))
            advance()
    rows = [
        (str(line.number), line.thread_id, line.review_id[:8], line.decision["type"], line.result)
        for line in lines
    ]
    screen.table(("line", "thread", "review", "decision", "result"), rows)
    if not apply:
        ready = counted(sum(map(len, threads.values())), "review")
        screen.say(f"Nothing was sent yet. With `--apply`, {ready} are answered.")
    return code


def _lines(file: Path) -> list[Line]:
    try:
        # The file may begin with a byte order mark, which some programs write.
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Stop(ExitCode.USAGE, f"the answers cannot be read: {error_text(error)}.") from None
    lines: dict[str, Line] = {}
    for number, written in enumerate(text.split("\n"), 1):
        if not written.strip():
            continue
        try:
            line = _line(number, read_json(written))
            if earlier := lines.get(line.review_id):
                raise NotJsonError(f"line {earlier.number} answers the same review")
        except NotJsonError as error:
            told = f"line {number} of {file}: {error}. Write one JSON object on each line."
            raise Stop(ExitCode.USAGE, told) from None
        lines[line.review_id] = line
    return [*lines.values()]


def _line(number: int, given: Any) -> Line:
    keys = ("thread_id", "review_id", "decision")
    if missing := [key for key in keys if not is_object(given) or key not in given]:
        raise NotJsonError(f"`{missing[0]}` is missing: a line needs {', '.join(keys)}")
    thread_id, review_id, decision = (given[key] for key in keys)
    try:
        read_answer(decision)
    except ValueError as refused:
        raise NotJsonError(error_text(refused).removesuffix(".")) from None
    if not is_object(decision) or decision.get("type") not in DECISIONS:
        raise NotJsonError(f"the decision needs a `type`: {', '.join(DECISIONS)}")
    known: Any = decision
    return Line(number, str(thread_id), str(review_id), known)


def _look(line: Line, review: PendingReview | None) -> ExitCode:
    """Note in a line whether its review is open and allows its answer; return the exit code."""
    if review is None or review.thread_id != line.thread_id:
        line.result = "not open: answered, expired or deferred"
        return ExitCode.STALE
    if line.decision["type"] not in review.allowed_decisions:
        line.result = f"not offered: choose from {', '.join(review.allowed_decisions)}"
        return ExitCode.STALE
    if wrong := foreseen(review, line.decision):
        line.result = f"may be refused: {'; '.join(wrong)}"
        return ExitCode.ASKED_AGAIN
    return ExitCode.DONE


def _apply(source: Source, thread_id: str, lines: list[Line], by: str | None) -> ExitCode:
    """Answer reviews of one thread. Note the result of each line, even if it is an error."""
    reasons: dict[str, str] = {}
    code, result = ExitCode.DONE, "answered"
    try:
        source.answer(thread_id, {line.review_id: line.decision for line in lines}, by)
    except AnswerRefused as refused:
        code, reasons = ExitCode.ASKED_AGAIN, refused.reasons
    except StaleDecision as stale:
        code, result = ExitCode.STALE, f"not open: {stale.message}"
    except Exception as error:  # noqa: BLE001 - of the graph or the server
        code, result = ExitCode.FAILED, f"{type(error).__name__}: {error_text(error)}"
    for line in lines:
        why = reasons.get(line.review_id)
        line.result = result if why is None else f"asked again: {why}"
    return code
