"""What decides about a review before a person is asked."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from langchain_core.runnables import Runnable

from graph_retry._review.decisions import Decision
from graph_retry._review.review import Review


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
