"""Events: what happens to a call, in one form for everybody who watches the call.

The stream, the log, OpenTelemetry and the user's observers get the same events. No observer can
stop or change a call. If an observer raises, the error is only logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from langgraph.types import StreamWriter

from graph_retry._core.langgraph.run_config import thread_in_logs
from graph_retry.records import Attempt, author_role

_LOG = logging.getLogger("graph_retry.reviews")

EventKind = Literal[
    "attempt_started",
    "partial_output",
    "attempt_finished",
    "review_asked",
    "answer_refused",
    "review_left_open",
    "review_answered",
    "call_ended",
]


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to a call. The option `observers` takes functions of an `Event`.

    The run of the call waits for each observer, so an observer should be quick. If a step runs
    again after a crash, it sends its events again.

    kind: `attempt_started`, `partial_output`, `attempt_finished`, `review_asked`,
        `answer_refused`, `review_left_open` (by `defer` or `assign`), `review_answered` or
        `call_ended`.
    name: The name of the call.
    attempt: The number of the attempt; the first is 1.
    thread_id: The id of the thread; None outside any thread.
    labels: The labels of the call.
    details: Further facts. A finished attempt and an ended call have a `status`, and a partial
        output has its `value`. All events about a review have the `review_id`. `review_asked` has
        `again`: whether the question was asked before. `answer_refused` has the `author`,
        `review_left_open` also the `decision`, and `review_answered` also `asked_at`.
    record: The redacted record of the attempt, for `attempt_finished` and `review_answered`; None
        for all other kinds.

    Example:
        >>> from graph_retry import retry_llm_call
        >>> kinds = []
        >>> watch = lambda event: kinds.append(event.kind)
        >>> retry_llm_call(lambda prompt: "5", "How many?", output=int, observers=[watch])
        5
        >>> kinds
        ['attempt_started', 'attempt_finished', 'call_ended']
    """

    kind: EventKind
    name: str
    attempt: int
    thread_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    record: Attempt | None = None


Observer = Callable[[Event], Any]
"""A function that is called with each event. Its result is ignored."""

_STREAMED: dict[str, tuple[str, ...]] = {
    "attempt_started": (),
    "partial_output": ("value",),
    "attempt_finished": ("status",),
    "review_asked": ("review_id",),
    "review_answered": ("decision", "author"),
}
"""The kinds of events in the custom stream, each with its details.

`call_ended` is left out, because LangGraph's stream shows the end of a run.
"""


def streaming(write: StreamWriter) -> Observer:
    """Return an observer that writes `{"type": "graph_retry", "event": …}` to the stream."""

    def stream(event: Event) -> None:
        if event.kind in _STREAMED:
            shown = {name: event.details[name] for name in _STREAMED[event.kind]}
            about = {"event": event.kind, "name": event.name, "attempt": event.attempt}
            write({"type": "graph_retry", **about, **shown})

    return stream


def log_review(event: Event) -> None:
    """Log what happens to a review. The log line has no text of a model or a person."""
    told, decision = event.details, event.details.get("decision")
    by = author_role(told.get("author", ""))
    words = {
        "review_asked": "asked",
        "answer_refused": "refused an answer",
        "review_left_open": f"left open by {decision}",
        "review_answered": "expired" if by == "system" else f"answered with {decision}",
    }
    if event.kind in words:
        about = told["review_id"], event.name, event.attempt, thread_in_logs(), words[event.kind]
        by = f" by {by}" if by else ""
        _LOG.info("review %s of `%s` (attempt %s, %s) was %s%s", *about, by)
