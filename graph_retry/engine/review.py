"""The `review` step: ask once, take one answer, never raise because of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, NoReturn, cast

from langgraph.config import get_config
from langgraph.graph import StateGraph
from langgraph.types import Overwrite, interrupt
from typing_extensions import TypedDict

from graph_retry.engine.events import emit
from graph_retry.engine.fork import fork_of, forked
from graph_retry.engine.plan import Plan
from graph_retry.engine.reviewers import ask_reviewers
from graph_retry.engine.state import ANSWER, LOOP, Loop, OpenReview, call_namespace, loop_of
from graph_retry.errors import InterventionRequired
from graph_retry.flow import Ask, Flow
from graph_retry.ledger import digest, params_at
from graph_retry.params.codec import Encoded
from graph_retry.params.patch import readable_diff
from graph_retry.records import Attempt, Issue
from graph_retry.review.answer_schema import response_schema
from graph_retry.review.decision import DecisionType
from graph_retry.review.judge import judge
from graph_retry.review.payload import build_payload
from graph_retry.review.question import Accepted, Question, Refused


class _Nothing(TypedDict):
    pass


@cache
def _probe() -> Any:
    """Return a graph whose only use is to ask whether this run has a checkpointer."""
    builder = StateGraph(_Nothing).add_node("probe", lambda state: state)
    return builder.set_entry_point("probe").compile()


def review_step(plan: Plan[Any]) -> Callable[[Mapping[str, Any]], Flow[dict[str, Any]]]:
    """Return the step that asks a person and applies the answer, or asks again."""
    keys, settings = plan.settings.keys, plan.settings

    def flow(state: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        attempts: list[Attempt] = state[keys["attempts"]]
        loop, number = loop_of(state), attempts[-1]["number"]
        params = Encoded(state[keys["params"]], loop["types"])
        recorded, author = state.get(ANSWER), "human"
        fork = None if recorded is None else fork_of(recorded["value"], attempts)
        question = None if fork else question_of(plan, loop, attempts, params)
        if question is None or recorded is not None:
            answer = cast("Any", recorded)["value"]
        elif settings.reviewer and loop["review"] and loop["review"]["agent"] is None:
            author, answer, problem = yield from ask_reviewers(plan, question, attempts)
            if answer is None:
                return _escalate(plan, loop, author, None, problem)
        else:
            yield from _require_checkpointer(settings.name, attempts)
            payload = {**build_payload(question), "checkpoint_ns": call_namespace()}
            answer = interrupt(payload, response_schema=response_schema(question))
            fork = fork_of(answer, attempts)
        at = loop
        if fork is not None:
            at, author, answer = forked(loop), "rewind", fork.answer
            question = question_of(plan, at, fork.attempts, fork.params)
            if fork.again:  # the attempt is taken back, so it does not count as used
                question = replace(question, allowed=settings.allowed_decisions)
        verdict = judge(answer, cast("Question", question))
        if isinstance(verdict, Refused):
            if author.startswith("agent"):
                return _escalate(plan, loop, author, answer, verdict.problem)
            if attempts[-1]["failure"] is None:
                raise ValueError(f"this rewind is refused: {verdict.problem}")
            again = _ask_again(loop, attempts[-1], verdict.problem)
            emit("review_asked", settings.name, number, review_id=again["review_id"])
            return {LOOP: {**loop, "review": again}, ANSWER: None}
        decision = verdict.decision
        by = decision.get("by")
        author = f"{author}:{by}" if by else author
        emit("review_answered", settings.name, number, decision=decision["type"], author=author)
        note = {
            key: value for key, value in decision.items() if key not in ("params", "output")
        } | {"author": author, "at": datetime.now(UTC).isoformat(timespec="milliseconds")}
        ledger: Any = [{"number": number, "decision": note}]
        if fork is not None:
            ledger = Overwrite(fork.kept(note))
        update = _apply(plan, at, verdict, author, fork and fork.reason)
        return {ANSWER: None, keys["attempts"]: ledger, **update}

    return flow


def _escalate(
    plan: Plan[Any], loop: Loop, author: str, decision: Any, problem: str | None
) -> dict[str, Any]:
    """Keep what the automatic reviewers said, and go on to the person, if one may be asked."""
    agent = {"by": author, "decision": decision, "problem": problem}
    noted = {**loop, "review": {**cast("OpenReview", loop["review"]), "agent": agent}}
    if plan.settings.review:
        return {LOOP: noted}
    return {LOOP: {**noted, "next": "end"}, plan.settings.keys["status"]: "exhausted"}


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
        allowed=_allowed(plan, attempts),
        locked=plan.settings.locked,
        output_schema=plan.validator.schema if plan.validator else None,
        check_output=lambda value: _output_issues(plan, value),
        seen_decisions=tuple(
            str(attempt["decision"]["decision_id"])
            for attempt in attempts
            if attempt["decision"] and "decision_id" in attempt["decision"]
        ),
    )


def _known_fields(plan: Plan[Any], view: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the params type no longer has: nobody could edit it away."""
    fields = plan.codec.fields
    if fields is None:
        return view
    return {name: value for name, value in view.items() if name in fields}


def _require_checkpointer(name: str, attempts: list[Attempt]) -> Flow[None]:
    """Refuse to ask where the pause could not be saved."""
    try:
        yield Ask(_probe(), "get_state", (get_config(),))
    except ValueError as error:
        if "checkpointer" not in str(error):
            raise
        _intervene(name, attempts)


def _intervene(name: str, attempts: list[Attempt]) -> NoReturn:
    failure = attempts[-1]["failure"]
    why = failure["message"] if failure else "no reason recorded"
    msg = (
        f"`{name}` needs a person after {len(attempts)} attempt(s) ({why}), but this run has no "
        "checkpointer to pause on: compile the graph with one, e.g. "
        "`builder.compile(checkpointer=InMemorySaver())`, or pass `review=False`."
    )
    raise InterventionRequired(msg, attempts) from None


def _allowed(plan: Plan[Any], attempts: list[Attempt]) -> tuple[DecisionType, ...]:
    budget = plan.settings.budget
    over = budget is not None and budget.rounds_are_over(attempts)
    if attempts[-1]["number"] < plan.settings.max_attempts and not over:
        return plan.settings.allowed_decisions
    last: tuple[DecisionType, ...] = ("respond", "reject")
    return tuple(kind for kind in last if kind in plan.settings.allowed_decisions) or ("reject",)


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


def _output_issues(plan: Plan[Any], value: Any) -> list[Issue]:
    return [] if plan.validator is None else plan.validator.check(value).issues


def _as_text(value: Any) -> str | None:
    return None if value is None else str(value)


def _ask_again(loop: Loop, record: Attempt, problem: str) -> OpenReview:
    review = loop["review"]
    assert review is not None  # noqa: S101
    round_ = review["round"] + 1
    review_id = digest(record["idempotency_key"], round_)
    return {**review, "review_id": review_id, "round": round_, "problem": problem}


def _apply(
    plan: Plan[Any], loop: Loop, verdict: Accepted, author: str, why: str | None
) -> dict[str, Any]:
    """Turn an accepted decision into the state that follows it."""
    keys, decision = plan.settings.keys, verdict.decision
    closed: Loop = {**loop, "review": None, "automatic": 0, "author": author}
    if decision["type"] == "reject":
        return {LOOP: {**closed, "next": "end"}, keys["status"]: "cancelled"}
    if decision["type"] == "respond":
        output = decision.get("output")
        if plan.validator is not None:
            output = plan.validator.check(output).jsonable
        return {
            LOOP: {**closed, "next": "end", "output_types": {}},
            keys["output"]: output,
            keys["status"]: "succeeded",
        }
    suggested_by = loop["review"] and loop["review"]["suggested_by"]
    approved = f"approved {suggested_by}" if suggested_by else "approved the same params"
    default = why or (approved if decision["type"] == "approve" else "edited")
    reason = decision.get("message") or default
    retry: Loop = {**closed, "next": "call", "types": verdict.types, "reason": reason}
    return {LOOP: retry, keys["params"]: verdict.params}
