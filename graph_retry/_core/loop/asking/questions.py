"""Build the open question about an attempt from the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from graph_retry._core.ground.issues import json_problem
from graph_retry._core.ground.json import as_text
from graph_retry._core.ground.redact import redacted
from graph_retry._core.ground.wording import counted, passed_as, quoted_with_article
from graph_retry._core.langgraph.run_config import current_thread
from graph_retry._core.loop.run.keeping import in_state
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.output.build import SchemaOfParams
from graph_retry._core.output.failures import finish_kind
from graph_retry._core.output.validator import Validator
from graph_retry._core.params.patch import Encoded, readable_diff
from graph_retry._core.params.prompt import Added, named_fields
from graph_retry._core.review.review_record import Question, Told, accept_output
from graph_retry._core.state.attempts import (
    added_in,
    exact_value,
    is_rounded,
    params_at,
    parsed_value,
)
from graph_retry._core.state.position import Loop, OpenReview, decision_ids
from graph_retry.lossless._ground import as_repr, identical
from graph_retry.records import Attempt, Issue

TYPED = "what was typed"
"""The author of suggested params from the readable fields of a refused answer."""


def question_of(
    plan: Plan[Any],
    loop: Loop,
    attempts: list[Attempt],
    params: Encoded,
    output: dict[str, Any] | None = None,
) -> Question:
    """Build the open question about the last attempt.

    `output` is the output that a person can take, as `{"value": …}`, or None.
    """
    record, review = attempts[-1], loop["review"]
    if review is None or (record["failure"] is None and output is None):
        msg = f"`{plan.settings.name}` reached `review` with nothing to ask; state was edited."
        raise ValueError(msg)
    earlier = params_at(attempts[:-1])
    suggested = review["suggested"] and _known_fields(plan, review["suggested"])
    params = Encoded(_known_fields(plan, params.view), params.types)
    before, after = (
        (params.view, suggested) if suggested else (earlier and earlier.view, params.view)
    )
    raw_output, used_up = _raw_text(record), _used_up(plan, loop, attempts)
    added = added_in(attempts, params.view)
    shown = Told(*params, added)
    if suggested:
        shown = Told(suggested, review["suggested_types"], review["suggested_added"])
    redact = plan.settings.redact
    if redact is not None:
        before, after = (redacted(each, redact, plan.codec.names) for each in (before, after))
    question = Question(
        thread_id=current_thread(),
        function_name=plan.settings.name,
        attempt=record["number"],
        review_id=review["review_id"],
        failure=record["failure"],
        params=params.view,
        types=params.types,
        codec=plan.codec,
        suggested_params=suggested,
        suggested_types=review["suggested_types"],
        suggested_by=review["suggested_by"],
        added=added,
        suggested_added=review["suggested_added"],
        issues=record["issues"],
        repairs=record["repairs"],
        lossless=record["lossless"],
        output=output and _in_json(output["value"]),
        doubts=_doubts(record),
        takes_output=output is not None,
        read=_as_read(plan, record, output),
        part_to_change=(plan.validator or Validator()).part_to_change,
        raw_output=raw_output,
        reasoning=(record["raw"] or {}).get("reasoning"),
        sent=record.get("sent"),
        diff=readable_diff(before, after) if before is not None else [],
        note=_note(loop, review, used_up),
        problem=review["problem"],
        answer_issues=review["answer_issues"],
        asked_at=review["asked_at"],
        expires_at=review["expires_at"],
        allowed=plan.settings.allowed_decisions,
        used_up=used_up,
        locked=plan.settings.locked,
        labels=plan.settings.labels,
        subject=record.get("subject"),
        redact=redact,
        schema_of_output=_shown_schema(plan),
        check_output=plan.of_people.acheck_digits if plan.of_people else accept_output,
        with_comment=_commenting(plan, shown, record["issues"], raw_output or ""),
        seen_decisions=(*loop["seen"], *decision_ids(attempts)),
    )
    return replace(question, **review["noted"])


def _as_read(
    plan: Plan[Any], record: Attempt, output: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Return the output that a person may change in part; None if there is none.

    With `redact`, the record has only redacted texts. So a person can change only the output under
    review. A number that would lose digits as a float becomes a `Digits`.
    """
    if output is None and plan.settings.redact is not None:
        return None
    known = read_value(record, plan.validator) if output is None else output
    if known is None or json_problem(known["value"]):
        return None
    exact = exact_value(record) if is_rounded(record["repairs"]) else known["value"]
    return {"value": exact} if identical(exact, known["value"]) else known


def _shown_schema(plan: Plan[Any]) -> dict[str, Any] | None:
    """Return the JSON Schema of the output for clients; None if it must not be shown.

    A schema that comes from the params is shown only if `redact` changes nothing in it.
    """
    schema = plan.of_people.schema if plan.of_people else None
    is_public = not isinstance(plan.validator, SchemaOfParams)
    return schema if is_public or redacted(schema, plan.settings.redact) == schema else None


def _known_fields(plan: Plan[Any], view: dict[str, Any]) -> dict[str, Any]:
    """Return params without fields that their declared type no longer has.

    A reviewer could not remove such fields.
    """
    fields = plan.codec.fields
    if fields is None:
        return view
    return {name: value for name, value in view.items() if name in fields}


def _used_up(plan: Plan[Any], loop: Loop, attempts: list[Attempt]) -> str | None:
    """Return why no further attempt is possible; None if a person may allow one."""
    budget, last = plan.settings.budget, attempts[-1]
    if budget is not None:
        with passed_as("budget"):
            used_up = budget.used_up(in_state(attempts), loop["spent"])
        if used_up:
            return used_up
    is_last = last["number"] >= plan.settings.max_attempts
    return f"the limit of {counted(last['number'], 'attempt')} is reached" if is_last else None


def _doubts(record: Attempt) -> str | None:
    """Return the output fields that a gate doubts, one `path: reasons` on each line, or None."""
    lines = dict[str, list[str]]()
    for doubt in record.get("gate", {}).get("doubts", []):
        lines.setdefault(doubt["path"] or "the whole output", []).append(doubt["why"])
    return "\n".join(f"{path}: {', '.join(whys)}" for path, whys in lines.items()) or None


def _note(loop: Loop, review: OpenReview, used_up: str | None) -> str | None:
    """Return all notes for a reviewer as one text; None if there are none."""
    notes = [review["note"], used_up, loop["note"]]
    if review["suggested_by"]:
        role, _, name = review["suggested_by"].partition(":")
        typed = "the fields of the last answer that could be read are shown as typed"
        is_typed = review["suggested_by"] == TYPED
        by = f"other params are suggested by the {role} {name}".rstrip()
        notes.append(typed if is_typed else by)
    notes += map(proposal_in_words, review["agents"] or ())
    return "; ".join(note for note in notes if note) or None


def read_value(record: Attempt, validator: Validator | None) -> dict[str, Any] | None:
    """Return an invalid output as `{"value": …}`; None if it was cut off or could not be read."""
    if finish_kind(record["finish_reason"]) is not None:
        return None
    with suppress(ValueError, RecursionError):  # A deeply nested value raises `RecursionError`.
        value = parsed_value(record, as_text=validator is not None and validator.wants_text)
        return None if json_problem(value) is not None else {"value": value}
    return None


def proposal_in_words(agent: Mapping[str, Any]) -> str:
    """Return a text with a reviewer's proposal and the reason why it was not applied."""
    proposed = "" if agent["decision"] is None else f" proposed {as_repr(agent['decision'], 300)}"
    return f"{agent['by']}{proposed}: {agent['problem']}"


def _commenting(
    plan: Plan[Any], shown: Told, issues: list[Issue], answer: str
) -> Callable[[str], Told] | None:
    """Return a function that adds a comment to the params; None if no field can hold one."""
    field = getattr(plan.settings.feedback, "field", None)
    name = plan.comment_field(shown.view)
    if name is None or name in plan.settings.locked:
        return None

    def commented(message: str) -> Told:
        params = plan.codec.decode(shown.view, shown.types)
        before = Added(named_fields(params), shown.added)
        told, added = plan.settings.own_feedback.with_comment(
            params, message, answer=answer, issues=issues, field=field, added=before
        )
        encoded = plan.codec.encode(told, owner="the params with a comment")
        return Told(*encoded, added.parts)

    return commented


def _in_json(output: Any) -> Any:
    """Return an output as JSON for clients.

    A message becomes its text. An object without a JSON form becomes the name of its class.
    """
    if isinstance(output, AIMessage) and output.tool_calls:
        calls = [{"name": call["name"], "args": call["args"]} for call in output.tool_calls]
        return {"text": str(output.text), "tool_calls": calls}
    if isinstance(output, BaseMessage):
        return str(output.text)
    return f"({quoted_with_article(type(output).__name__)})" if json_problem(output) else output


def _raw_text(record: Attempt) -> str | None:
    """Return the model's text, or its structured value as JSON text."""
    raw = record["raw"] or {}
    if "received" in raw:
        return f"{raw['received']} (the stream broke off here)"
    value = raw.get("value")
    if "text" in raw or value is None:
        return raw.get("text")
    return as_text(value)
