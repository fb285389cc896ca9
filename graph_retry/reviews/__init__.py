"""Functions to show a review on your own page: its decisions, and the effect of an answer.

`offered` returns the decisions of a review as data. `foreseen` checks an answer without sending it.
`closed_by` tells a late reviewer who answered first. The page and the console of this library use
the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig

from graph_retry._core.ground.functions.arguments import async_twin, checked, in_sync
from graph_retry._core.ground.issues import SHOWN_ISSUES, top_of
from graph_retry._core.ground.json import is_object
from graph_retry._core.ground.schemas import alternatives, element, kinds_of
from graph_retry._core.output.json_schema.schema_validator import SchemaValidator
from graph_retry._core.review.answers import Decision, DecisionType
from graph_retry._core.review.decisions import (
    DECISIONS,
    ROWS,
    DecisionKind,
    decision_named,
    form_of,
)
from graph_retry._core.review.forms.restore import Field, branch_of, merged
from graph_retry._core.review.review_record import LISTED, AnyReview, Review
from graph_retry._core.state.attempts import is_returned, parsed_value
from graph_retry._core.threads.saved.why_closed import closing_event
from graph_retry.records import Attempt, Issue

__all__ = [
    "DECISIONS",
    "LISTED",
    "SHOWN_ISSUES",
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
    """One decision that a person may take in a review.

    word: The `type` of the decision, such as `edit`.
    does: The effect of the decision, as a text for people.
    form: The decision's JSON, with `…` in place of the values that a person enters.
    needs: The key whose value a person must enter, such as `params` or `output`; `""` if there is
        none.
    schema: The JSON Schema of this value; None if no value is needed.
    also: The JSON Schemas of keys that the decision may have in place of `needs`, such as the
        `choice` of an alternative.
    needs_words: Whether the decision needs a `message`.
    calls_again: Whether the decision calls the model again.
    waits: Whether the review stays open.
    outcome: The outcome of the call if the decision ends it, such as `cancelled`; otherwise None.
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
    """List the decisions that a person may take in a review, in the order of a page.

    Example:
        >>> from graph_retry import pending_reviews
        >>> from graph_retry.testing import waiting_thread
        >>> (review,) = pending_reviews(*waiting_thread())
        >>> [(each.word, each.needs) for each in offered(review)][:2]
        [('approve', ''), ('edit', 'params')]
    """
    words = sorted(review.allowed_decisions, key=lambda word: ROWS[word].place)
    return [_offered(review, word) for word in words]


def _offered(review: Review, word: str) -> Offered:
    row, schemas = ROWS[word], _schemas_of(review, word)
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
    """Return the record of the attempt under review; None if `history` does not have it.

    Example:
        >>> attempt_of(Review(review_id="r", function_name="f", attempt=1, params={}, failure=None))
    """
    records = [each for each in review.history if each["number"] == review.attempt]
    return records[-1] if records else None


@checked
def output_read(review: Review) -> Any:
    """Return the output that was read from the model, as a start for a person's changes.

    The result is `...` if nothing was read, or if the review is redacted.

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
    """List the errors that an answer would have, as texts. At most five errors are listed.

    This function validates by the JSON Schemas of the review. The run may find more errors.

    Example:
        >>> from graph_retry import edit, pending_reviews
        >>> from graph_retry.testing import waiting_thread
        >>> (review,) = pending_reviews(*waiting_thread({"limit": 3}))
        >>> foreseen(review, edit(limit=4))
        []
    """
    found = issues_in(review, decision)
    return [f"{one['path'] or 'the whole value'}: {one['message']}" for one in found[:5]]


@checked
def issues_in(review: Review, decision: Mapping[str, Any]) -> list[Issue]:
    """List the errors of an answer as issues. Each issue has the JSON Pointer of the wrong field.

    This function validates by the JSON Schemas of the review. The run validates by Python types, so
    the run may find more errors, or convert a value that a schema refuses. If a schema allows no
    text, a text such as `"3"` gives no error here, because the run reads the text as JSON.

    Example:
        >>> from graph_retry import pending_reviews, respond
        >>> from graph_retry.testing import waiting_thread
        >>> (review,) = pending_reviews(*waiting_thread(output=dict[str, int]))
        >>> [(one["path"], one["code"]) for one in issues_in(review, respond({"n": "many"}))]
        [('/n', 'type')]
    """
    told: list[Issue] = []
    for key, value in decision.items():
        schema = _schemas_of(review, decision["type"]).get(key)
        if key == "params" and is_object(value):
            whole, unread = after_edit(review, value)
            wrong = [] if unread else _wrong(review, schema, whole)
            # A redacted text may not fit the schema, so only changed fields are judged.
            told += unread or [one for one in wrong if top_of(one) in value]
        elif not isinstance(value, str) or "string" in kinds_of(schema, _root(review)):
            told += _wrong(review, schema, value)
    return told


def _schemas_of(review: Review, word: str) -> dict[str, Any]:
    """Return the JSON Schemas of the keys of a decision; empty if it is not offered."""
    branches: list[Any] = review.value["response_schema"]["oneOf"]
    named = (branch["properties"] for branch in branches)
    none = dict[str, Any]()
    return next((keys for keys in named if keys["type"]["const"] == word), none)


def _wrong(review: Review, schema: Any, value: Any) -> list[Issue]:
    wanted: Any = {} if schema is None else schema
    whole = {**_root(review), "allOf": [wanted]}
    try:
        return SchemaValidator(whole, check_formats="types").check(value).issues
    except ValueError:  # The schema has a part that our validator does not support.
        return []


def _root(review: Review) -> dict[str, Any]:
    return {"$defs": review.value["response_schema"].get("$defs", {})}


@checked
def after_edit(review: Review, params: Mapping[str, Any]) -> tuple[dict[str, Any], list[Issue]]:
    """Return the params after an edit, and an issue for each field that cannot be read.

    Example:
        >>> from graph_retry import pending_reviews
        >>> from graph_retry.testing import waiting_thread
        >>> (review,) = pending_reviews(*waiting_thread({"prompt": "how many?", "n": 1}))
        >>> after_edit(review, {"n": 2})
        ({'prompt': 'how many?', 'n': 2}, [])
    """
    issues: list[Issue] = []
    root, node = review.value["response_schema"], review.params_schema or {}
    is_open = bool(node.get("additionalProperties", True))
    whole = Field("", node, root, review.shown, review.shown, is_open=is_open)
    return merged(dict(params), whole, [node], issues), issues


@in_sync
async def closed_by(graph: Any, config: RunnableConfig, review_id: str | None = None) -> str:
    """Return a sentence that says what closed a review: an answer and its author, or an update.

    Without `review_id`, the sentence is about the last review of the thread. If the review still
    waits, or if nothing is known, the result is "".

    Example:
        >>> from graph_retry import edit, resume
        >>> from graph_retry.testing import waiting_thread
        >>> graph, config = waiting_thread()
        >>> _ = resume(graph, config, {**edit(value="3"), "by": "ada"})
        >>> "ada" in closed_by(graph, config)
        True
    """
    return await closing_event(graph, config, review_id)


aclosed_by = async_twin(closed_by)
