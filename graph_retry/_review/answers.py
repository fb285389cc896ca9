"""The decisions about a review, the functions that make them, and the refusal of an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, Protocol

from langchain_core.runnables import Runnable
from typing_extensions import TypedDict

from graph_retry._functions.arguments import Count, checked
from graph_retry._review.review import Review
from graph_retry._texts.issues import SHOWN_ISSUES, as_json, cut
from graph_retry.records import Issue

MAX_PROBLEM = 2_000
"""Maximum characters of a refusal's text."""

ValidDecisionType = Literal["approve", "edit", "reject", "respond", "comment", "defer", "assign"]
"""The decisions after which an output is always of the type that the call asked for."""

DecisionType = Literal[ValidDecisionType, "accept"]


class Decision(TypedDict):
    """The decision of a person or an agent about one review.

    For an edit, `params` has the changed fields, which are merged onto the shown params. To
    respond, `output` is a whole output, which is validated like the model's; `changes` and
    `replace` change a part of the output that was read. For an approval, `choice` is the number of
    an alternative. `message` is the reason of a decision, or the text of a comment for the model.
    `until` (defer) is a time in ISO 8601. `to` (assign) is a person's name. `attempt` and
    `review_id` bind the decision to one question. A second delivery of the decision has the same
    `decision_id`. `by` is the author. `channel` is the client. If no channel is given, the form of
    the answer shows the client.
    """

    type: DecisionType
    params: NotRequired[Any]
    message: NotRequired[str | None]
    output: NotRequired[Any]
    choice: NotRequired[int]
    changes: NotRequired[dict[str, Any]]
    replace: NotRequired[dict[str, str]]
    until: NotRequired[str]
    to: NotRequired[str]
    attempt: NotRequired[int]
    review_id: NotRequired[str]
    decision_id: NotRequired[str]
    by: NotRequired[str]
    channel: NotRequired[str]


_FIELDS = "a dict of the fields to change (`edit(value=…)` for params that are one bare value)"
_HOW = "what `approve()`, `edit(…)` or `reject(…)` returns, or JSON (what a `Command` resumes with)"
_Edited = Annotated[Mapping[str, Any], _FIELDS]
Answer = Annotated[Mapping[str, Any] | Sequence[Any] | str | float | bool | None, _HOW]
"""An answer to a review: a `Decision`, or any JSON that a client sends."""


@dataclass
class Reading:
    """An answer while it is read, and the decision that was found in the answer.

    `offered` lists the decisions that the question offers. A client may send back the `titles` of
    questions. `from_form` means that the values of the decision came through text boxes.
    """

    offered: Sequence[str]
    titles: list[Any] = field(default_factory=list[Any])
    from_form: bool = False
    decision: Decision = field(default_factory=lambda: Decision(type="reject"))


class Refused(ValueError):
    """An answer that cannot be applied; `problem` gives the reason and the remedy.

    `kept` has the fields of a form that could be read; the next question shows these fields as the
    person typed them. `issues` has the reasons by field. Each reason names its field by a JSON
    Pointer into the params or the output of the answer.
    """

    def __init__(
        self, problem: str, kept: dict[str, Any] | None = None, issues: Sequence[Issue] = ()
    ) -> None:
        """Cut the text and the issues to their limits."""
        self.problem = cut(problem, MAX_PROBLEM)
        super().__init__(self.problem)
        self.kept = kept or {}
        self.issues = list(issues[:SHOWN_ISSUES])


@checked
def approve(choice: Count | None = None) -> Decision:
    """Call again with the suggested params, or with the same params if there is no suggestion.

    If a hook gave `Alternatives`, `choice` selects one by its number, from 1. In the review of a
    valid output (the option `review`), an approval takes the output, and calls no model.

    Example:
        >>> approve()
        {'type': 'approve'}
    """
    return {"type": "approve"} if choice is None else {"type": "approve", "choice": choice}


@checked
def edit(params: _Edited | None = None, /, **changes: Any) -> Decision:
    """Call again with some fields of the params changed; the other fields stay as shown.

    An edit that changes nothing counts as an approval, and the ledger records `approve`.

    Example:
        >>> edit(temperature=0.0)
        {'type': 'edit', 'params': {'temperature': 0.0}}
    """
    return {"type": "edit", "params": {**(params or {}), **changes}}


@checked
def reject(reason: str | None = None) -> Decision:
    """Stop the call without an output, with a reason for the ledger.

    Example:
        >>> reject("the input has no invoice in it")
        {'type': 'reject', 'message': 'the input has no invoice in it'}
    """
    return {"type": "reject", "message": reason}


@checked
def respond(
    output: Any = ...,
    *,
    changes: dict[str, Any] | None = None,
    replace: dict[str, str] | None = None,
) -> Decision:
    """Supply the output, or change a part of it; the result is validated like the model's output.

    Args:
        output: The whole output. A model, a dataclass or a date becomes the JSON that its type
            writes, under aliases. The output type of the call reads it back; without one, the call
            returns this JSON.
        changes: Fields to change in the output that was read, whether it is valid or not. The
            changes are merged like the fields of an edit. The other fields stay.
        replace: A dict from old words to new words, for the texts of the output that was read. Each
            old word must occur exactly once.

    Raises:
        TypeError: If `output` is given together with a part, or nothing is given.

    Example:
        >>> respond({"name": "Ada"})
        {'type': 'respond', 'output': {'name': 'Ada'}}
        >>> respond(changes={"age": 36}, replace={"Monday": "Tuesday"})
        {'type': 'respond', 'changes': {'age': 36}, 'replace': {'Monday': 'Tuesday'}}
    """
    decision: Decision = {"type": "respond"}
    if changes is not None:
        decision["changes"] = changes
    if replace is not None:
        decision["replace"] = replace
    if (output is ...) == (len(decision) == 1):
        raise TypeError("`respond` takes either a whole output, or `changes`, `replace` or both.")
    if output is not ...:
        decision["output"] = as_json(output)
    return decision


@checked
def comment(message: str) -> Decision:
    """Add a message for the model to the prompt or messages in the params, and call again.

    Example:
        >>> comment("the total is on the second page")
        {'type': 'comment', 'message': 'the total is on the second page'}
    """
    return {"type": "comment", "message": message}


@checked
def accept(reason: str | None = None) -> Decision:
    """Take an invalid output unchanged. The option `allowed_decisions` must include `accept`.

    The call ends with the status `overruled` and with the JSON that was read.

    Example:
        >>> accept("a total of zero is right here")
        {'type': 'accept', 'message': 'a total of zero is right here'}
    """
    return {"type": "accept", "message": reason}


@checked
def defer(until: str) -> Decision:
    """Hide an open review from the inbox until a time in ISO 8601, in UTC if it names no zone.

    The review can be answered earlier. The option `allowed_decisions` must include `defer`.

    Example:
        >>> defer("2030-05-01T08:00")
        {'type': 'defer', 'until': '2030-05-01T08:00'}
    """
    return {"type": "defer", "until": until}


@checked
def assign(to: str) -> Decision:
    """Set the label `assignee` of a review, which stays open.

    The option `allowed_decisions` must include `assign`.

    Example:
        >>> assign("ada")
        {'type': 'assign', 'to': 'ada'}
    """
    return {"type": "assign", "to": to}


class ReviewFunction(Protocol):
    """The signature of a reviewer that is a function, sync or async."""

    def __call__(self, review: Review, /) -> Decision | Awaitable[Decision | None] | None:
        """Decide about a review.

        Args:
            review: The open question. Changes to this object have no effect.

        Returns:
            A decision (`approve()`, `edit(…)`, `comment(…)`, …, or its JSON), which is checked like
            a person's answer. None leaves the decision to the next reviewer, and finally to a
            person. If the decision cannot be applied, or the function raises, the person sees this.
        """
        ...


Reviewer = ReviewFunction | Runnable[Review, Decision | None]
"""A reviewer that decides before a person is asked: a function, or a LangChain runnable."""
