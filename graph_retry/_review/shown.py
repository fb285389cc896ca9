"""A review as reviewers see it, human or agent."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, Protocol

from langchain_core.runnables import Runnable

from graph_retry._redact import shown_record
from graph_retry._review.decision import Decision
from graph_retry.records import Attempt, Failure, Issue


@dataclass(frozen=True, kw_only=True)
class Review:
    """One open question: what failed, with which params, and what is proposed.

    Of a valid output there is no `failure`, and `error` is empty. `output` is what may be taken: a
    valid output by an approval, one that is not valid by `accept`. `value` is the whole payload, of
    which the other fields are parts. `asked_at` and `expires_at` are ISO 8601 in UTC, the latter
    None where nothing expires. `history` is the ledger so far; it is empty where the call's own
    state is out of reach (in a server's inbox, for one).
    """

    thread_id: str | None
    review_id: str
    function_name: str
    attempt: int
    error: str
    failure: Failure | None
    issues: list[Issue]
    raw_output: str | None
    output: Any
    params: dict[str, Any]
    suggested_params: dict[str, Any] | None
    suggested_by: str | None
    diff: list[dict[str, Any]]
    problem: str | None
    asked_at: str | None
    expires_at: str | None
    labels: dict[str, str]
    value: dict[str, Any] = field(repr=False)
    history: list[Attempt] = field(repr=False)


class ReviewFunction(Protocol):
    """A reviewer as a function, sync or async."""

    def __call__(self, review: Review, /) -> Decision | Awaitable[Decision | None] | None:
        """Decide about a review.

        Args:
            review: The open question. Changing it changes nothing: the decision is all that counts.

        Returns:
            A decision (`approve()`, `edit(…)`, `comment(…)`, …, or its JSON), which is judged like
            a person's answer; or None to leave it to the next reviewer, at last to a person. What
            cannot be applied, and an exception, is shown to the person.
        """
        ...


Reviewer = ReviewFunction | Runnable[Review, Decision | None]
"""What decides about a review before a person is asked: a function, or a LangChain runnable."""


def parts_of(
    value: dict[str, Any], history: list[Attempt], thread_id: str | None
) -> dict[str, Any]:
    """Return the fields of a `Review` from its payload."""
    same = ("review_id", "function_name", "error", "failure", "issues", "raw_output", "params")
    return {
        **{name: value[name] for name in (*same, "diff", "problem")},
        "thread_id": thread_id,
        "output": value.get("output"),
        "labels": value.get("labels", {}),
        "asked_at": value.get("asked_at"),
        "expires_at": value.get("expires_at"),
        "attempt": value["attempt_count"],
        "suggested_params": value["suggested_params"],
        "suggested_by": value.get("suggested_by"),
        "value": value,
        "history": list(map(shown_record, history)),
    }
