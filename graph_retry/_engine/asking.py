"""Make the open question from state, and make sure that it can be asked."""

from __future__ import annotations

from typing import Any

from graph_retry._engine.plan import Plan
from graph_retry._engine.run_config import current_saver
from graph_retry._engine.state import Loop, OpenReview
from graph_retry._params.codec import Encoded
from graph_retry._params.patch import readable_diff
from graph_retry._review.decision import DECISION_TYPES, DecisionType
from graph_retry._review.question import Question
from graph_retry.errors import InterventionRequired
from graph_retry.ledger import decision_ids, params_at
from graph_retry.records import Attempt


def question_of(plan: Plan[Any], loop: Loop, attempts: list[Attempt], params: Encoded) -> Question:
    """Make the open question from state."""
    record, review = attempts[-1], loop["review"]
    if review is None or record["failure"] is None:
        msg = f"`{plan.settings.name}` reached `review` without a failed attempt; state was edited."
        raise ValueError(msg)
    earlier = params_at(attempts[:-1])
    suggested = review["suggested"] and _known_fields(plan, review["suggested"])
    params = Encoded(_known_fields(plan, params.view), params.types)
    before, after = (
        (params.view, suggested) if suggested else (earlier and earlier.view, params.view)
    )
    raw = record["raw"] or {}
    return Question(
        name=plan.settings.name,
        attempt=record["number"],
        review_id=review["review_id"],
        failure=record["failure"],
        params=params.view,
        types=params.types,
        codec=plan.codec,
        suggested=suggested,
        suggested_types=review["suggested_types"],
        issues=record["issues"],
        repairs=record["repairs"],
        lossless=record["lossless"],
        raw_output=raw.get("text") if "text" in raw else _as_text(raw.get("value")),
        diff=readable_diff(before, after) if before is not None else [],
        note=_note(review),
        problem=review["problem"],
        asked_at=review["asked_at"],
        expires_at=review["expires_at"],
        allowed=_allowed(plan, loop, attempts),
        locked=plan.settings.locked,
        redact=plan.settings.redact,
        output_schema=plan.validator.schema if plan.validator else None,
        **({"check_output": plan.validator.check} if plan.validator else {}),
        seen_decisions=(*loop["seen"], *decision_ids(attempts)),
    )


def _known_fields(plan: Plan[Any], view: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the params type no longer has: nobody could edit it away."""
    fields = plan.codec.fields
    if fields is None:
        return view
    return {name: value for name, value in view.items() if name in fields}


def require_checkpointer(name: str, attempts: list[Attempt]) -> None:
    """Refuse to ask where the pause could not be saved."""
    if current_saver() is not None:
        return
    failure = attempts[-1]["failure"]
    why = f"{failure['type']}: {failure['message']}" if failure else "no reason recorded"
    msg = (
        f"`{name}` needs a person after {len(attempts)} attempt(s) ({why}), but this run has no "
        "checkpointer to pause on: compile the graph with one, e.g. "
        "`builder.compile(checkpointer=InMemorySaver())`, or pass `review=False`."
    )
    raise InterventionRequired(msg, attempts)


def possible(plan: Plan[Any], loop: Loop, attempts: list[Attempt]) -> tuple[DecisionType, ...]:
    """Return what can be decided at all: another attempt only while there is one left."""
    budget = plan.settings.budget
    over = budget is not None and budget.rounds_are_over(attempts, loop["spent"])
    left = attempts[-1]["number"] < plan.settings.max_attempts and not over
    return DECISION_TYPES if left else ("respond", "reject")


def _allowed(plan: Plan[Any], loop: Loop, attempts: list[Attempt]) -> tuple[DecisionType, ...]:
    can = possible(plan, loop, attempts)
    return tuple(kind for kind in can if kind in plan.settings.allowed_decisions) or ("reject",)


def _note(review: OpenReview) -> str | None:
    """Tell a person why automation stopped and what an agent would have done."""
    notes = [review["note"]]
    if review["suggested_by"]:
        notes.append(f"the suggestion is by {review['suggested_by']}")
    agent = review["agent"]
    if agent and agent["problem"]:
        proposed = "" if agent["decision"] is None else f" proposed {agent['decision']!r}"
        notes.append(f"{agent['by']}{proposed}: {agent['problem']}")
    return "; ".join(note for note in notes if note) or None


def _as_text(value: Any) -> str | None:
    return None if value is None else str(value)
