"""A review for your own page, console or message: what it offers, and what an answer would do.

`pending_reviews` and `list_reviews` return reviews, and `resume` answers them. `offered` has the
decisions of a review as data, `foreseen` tries an answer, and `closed_by` tells a late person who
was first. The page and the console of this library use the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig

from graph_retry._core.ground.functions.arguments import async_twin, checked, in_sync
from graph_retry._core.ground.schemas import alternatives, element
from graph_retry._core.review.decisions import (
    DECISIONS,
    ROWS,
    DecisionKind,
    decision_named,
    form_of,
)
from graph_retry._core.review.forms import foreseen as by_schemas
from graph_retry._core.review.forms.restore import branch_of
from graph_retry._core.review.review import AnyReview, Decision, DecisionType, Review
from graph_retry._core.state.attempts import is_returned, parsed_value
from graph_retry._core.threads.saved.why_closed import closing_event
from graph_retry.records import Attempt, Issue

__all__ = [
    "DECISIONS",
    "AnyReview",
    "Decision",
    "DecisionKind",
    "DecisionType",
    "Offered",
    "Review",
    "aclosed_by",
    "after_edit",
    "alternatives",
    "attempt_of",
    "branch_of",
    "closed_by",
    "decision_named",
    "element",
    "foreseen",
    "issues_in",
    "offered",
    "output_read",
]


@dataclass(frozen=True, kw_only=True)
class Offered:
    """One decision that a review offers.

    `word` is its `type`, and `form` its JSON with `…` for what a person gives. `does` tells them
    what it does. `needs` is the key whose value it needs, such as `params` or `output`, with its
    JSON `schema`; "" and None if it needs none. `needs_words` is true if it needs a `message`.
    `also` has the schemas of keys that it may have instead, such as the `choice` of an alternative.
    `calls_again` is true if the model is called again, `waits` if the review stays open. `outcome`
    is what becomes of the call if the decision ends it.
    """

    word: str
    does: str
    form: str
    needs: str = ""
    schema: Any = None
    also: Mapping[str, Any] = field(default_factory=dict[str, Any])
    needs_words: bool = False
    calls_again: bool = False
    waits: bool = False
    outcome: str | None = None


@checked
def offered(review: Review) -> list[Offered]:
    """List the decisions that a review offers, in the order in which a page shows them.

    Example:
        >>> from graph_retry import pending_reviews, retry_llm_call
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def count(prompt):
        ...     return retry_llm_call(lambda given: given, prompt, output=int)
        >>> _ = count.invoke("many", {"configurable": {"thread_id": "1"}})
        >>> (review,) = pending_reviews(count, {"configurable": {"thread_id": "1"}})
        >>> [(each.word, each.needs) for each in offered(review)][:2]
        [('approve', ''), ('edit', 'params')]
    """
    words = sorted(review.allowed_decisions, key=lambda word: ROWS[word].place)
    return [_offered(review, word) for word in words]


def _offered(review: Review, word: str) -> Offered:
    row, schemas = ROWS[word], by_schemas.schemas_of(review, word)
    return Offered(
        word=word,
        does=row.does(review),
        form=form_of(word),
        needs=row.data or "",
        schema=schemas.get(row.data or ""),
        also={key: schemas[key] for key in row.parts if key in schemas},
        needs_words=row.message == "needed",
        calls_again=row.calls[review.failure is None],
        waits=row.waits,
        outcome=row.outcome,
    )


@checked
def attempt_of(review: Review) -> Attempt | None:
    """Return the record of the attempt under review; None if its ledger cannot be read.

    Example:
        >>> attempt_of(Review(review_id="r", function_name="f", attempt=1, params={}, failure=None))
    """
    records = [each for each in review.history if each["number"] == review.attempt]
    return records[-1] if records else None


@checked
def output_read(review: Review) -> Any:
    """Return the output that was read, for a person to change; `...` if there is none.

    Example:
        >>> output_read(
        ...     Review(review_id="r", function_name="f", attempt=1, params={}, failure=None)
        ... )
        Ellipsis
    """
    if review.output is not None:
        return review.output
    last = attempt_of(review)
    if last is None or not is_returned(last) or review.redacted:
        return ...  # A redacted text must not become the output.
    try:
        # If the output type takes text, the model's text was not read as JSON.
        return parsed_value(last, as_text=last["lossless"] is None)
    except ValueError:
        return ...


@checked
def foreseen(review: Review, decision: Mapping[str, Any]) -> list[str]:
    """List the errors that the review's schemas find in an answer; a run may find more.

    Example:
        >>> from graph_retry import edit, pending_reviews, retry_llm_call
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> def ask(params: dict[str, int]) -> str:
        ...     return "many"
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def count(limit):
        ...     return retry_llm_call(ask, {"limit": limit}, output=int)
        >>> _ = count.invoke(3, {"configurable": {"thread_id": "1"}})
        >>> (review,) = pending_reviews(count, {"configurable": {"thread_id": "1"}})
        >>> foreseen(review, edit(limit=4))
        []
    """
    found = by_schemas.issues_in(review, decision)
    return [f"{one['path'] or 'the whole value'}: {one['message']}" for one in found[:5]]


@checked
def issues_in(review: Review, decision: Mapping[str, Any]) -> list[Issue]:
    """List the same errors by field, for a form: each has the JSON Pointer of its place.

    Example:
        >>> from graph_retry import pending_reviews, respond, retry_llm_call
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def count(prompt):
        ...     return retry_llm_call(lambda given: given, prompt, output=dict[str, int])
        >>> _ = count.invoke("many", {"configurable": {"thread_id": "1"}})
        >>> (review,) = pending_reviews(count, {"configurable": {"thread_id": "1"}})
        >>> [(one["path"], one["code"]) for one in issues_in(review, respond({"n": "many"}))]
        [('/n', 'type')]
    """
    return by_schemas.issues_in(review, decision)


@checked
def after_edit(review: Review, params: Mapping[str, Any]) -> tuple[dict[str, Any], list[Issue]]:
    """Return the params as an edit will change them, and the fields that cannot be read.

    Example:
        >>> from graph_retry import pending_reviews, retry_llm_call
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def count(prompt):
        ...     return retry_llm_call(lambda given: "many", {"prompt": prompt, "n": 1}, output=int)
        >>> _ = count.invoke("how many?", {"configurable": {"thread_id": "1"}})
        >>> (review,) = pending_reviews(count, {"configurable": {"thread_id": "1"}})
        >>> after_edit(review, {"n": 2})
        ({'prompt': 'how many?', 'n': 2}, [])
    """
    return by_schemas.with_edit(review, params)


@in_sync
async def closed_by(graph: Any, config: RunnableConfig, review_id: str | None = None) -> str:
    """Tell what closed a review: its answer with the author, an input or an update; or "".

    Without `review_id`, the thread's last review is meant. A review that still waits is not closed.

    Example:
        >>> from graph_retry import edit, pending_reviews, resume, retry_llm_call
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from langgraph.func import entrypoint
        >>> @entrypoint(checkpointer=InMemorySaver())
        ... def count(prompt):
        ...     return retry_llm_call(lambda given: given, prompt, output=int)
        >>> config = {"configurable": {"thread_id": "1"}}
        >>> _ = count.invoke("many", config)
        >>> (review,) = pending_reviews(count, config)
        >>> _ = resume(count, config, {**edit(value="3"), "by": "ada"})
        >>> "ada" in closed_by(count, config, review.review_id)
        True
    """
    return await closing_event(graph, config, review_id)


aclosed_by = async_twin(closed_by)
