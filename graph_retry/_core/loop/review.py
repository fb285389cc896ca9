"""The step `review`: ask the open question, take one answer, and apply it.

An answer that cannot be applied is refused, and the question is asked again. The step does not
raise, because an error would fail the user's run.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from graph_retry._core.ground.issues import cut
from graph_retry._core.ground.redact import redacted
from graph_retry._core.langgraph.run_config import thread_in_logs
from graph_retry._core.loop.after_attempt import without_output
from graph_retry._core.loop.asking.person import Taken, take_answer
from graph_retry._core.loop.asking.questions import TYPED, proposal_in_words
from graph_retry._core.loop.asking.reviewers import not_again
from graph_retry._core.loop.run.keeping import stubs_again
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.loop.run.step import StepInput
from graph_retry._core.params.prompt import seal
from graph_retry._core.review.answers import Decision, reject
from graph_retry._core.review.deadline import is_expired, now
from graph_retry._core.review.decisions import ROWS
from graph_retry._core.review.effects import Accepted, CallAgain, Effect, End, Wait
from graph_retry._core.review.judge import judge
from graph_retry._core.review.review_record import Question, Refused
from graph_retry._core.state.position import (
    ANSWER,
    LOOP,
    REVIEWED,
    WRITES,
    Loop,
    OpenReview,
    review_id_of,
)
from graph_retry._core.state.rewinding import RewindRefused, is_reopened
from graph_retry.records import Attempt, Issue

_LOG = logging.getLogger("graph_retry.reviews")


REMARK, MOST_OF_REMARK = "remark", 190
"""The label with the message of a `defer` or `assign`, and its maximum length."""


async def review_step(given: StepInput) -> dict[str, Any]:
    """Take one answer and apply it. If it cannot be applied, ask the question again."""
    taken = await take_answer(given)
    if taken.by_agent and taken.value is None:
        return _escalate(given, taken)
    verdict: Accepted | Refused
    # An answer that a person gave after the review had expired does not count.
    if taken.author == "human" and is_expired(taken.question.expires_at, taken.came_at):
        taken = replace(taken, author="system")
        verdict = await _default(given, taken.question)
    elif taken.problem is not None:
        verdict = Refused(taken.problem)
    else:
        verdict = await judge(taken.value, taken.question)
    # A person may repeat a call with the same params. Automatic reviewers may repeat it only once,
    # because a second repetition would be a blind retry.
    if taken.by_agent and isinstance(verdict, Accepted):
        blind = await not_again(given.plan, given.attempts, taken.author, verdict)
        verdict = verdict if blind is None else Refused(blind)
    if isinstance(verdict, Accepted) and isinstance(verdict.effect, Wait):
        if taken.author == "human":
            return _left_open(given, taken, verdict.decision, verdict.effect)
        verdict = Refused(
            f"to {verdict.decision['type']} leaves the review open: only a person may"
        )
    if isinstance(verdict, Refused):
        return _refused(given, taken, verdict)
    return _accepted(given, taken, verdict)


def _left_open(given: StepInput, taken: Taken, decision: Decision, effect: Wait) -> dict[str, Any]:
    """Save a decision that leaves the review open, such as `defer`, and ask again."""
    plan, loop, record = given.plan, given.loop, given.attempts[-1]
    again = _ask_again(loop, record, None)
    note = _note(_redacted(plan, decision), taken)
    again["noted"] = {**again["noted"], **effect.fields}
    if message := note.get("message"):
        # A message to the person who will answer stays visible until the review is answered.
        labels = again["noted"].get("labels", taken.question.labels)
        said = f"{note['author'].partition(':')[2] or 'somebody'}: {message}"
        again["noted"]["labels"] = {**labels, REMARK: cut(" ".join(said.split()), MOST_OF_REMARK)}
    again["before"] = [*again["before"], note]
    about: Any = {
        "review_id": note["review_id"],
        "decision": decision["type"],
        "author": taken.author,
    }
    given.run.emit("review_left_open", record["number"], **about)
    return {LOOP: {**loop, "review": again}, ANSWER: None}


def _refused(given: StepInput, taken: Taken, verdict: Refused) -> dict[str, Any]:
    """Refuse an answer, and ask again: the same person, or a person in place of an agent.

    If some fields of a person's answer could be read, the new question suggests their values.
    """
    plan, loop, record = given.plan, given.loop, given.attempts[-1]
    problem = verdict.problem
    if taken.by_agent:
        return _escalate(given, taken, problem)
    # If the call did not wait before a rewind, there is no open question to ask again. `rewind`
    # catches this error, restores the thread and reports the problem.
    if is_reopened(loop):
        raise RewindRefused(problem)
    again = _ask_again(loop, record, problem, verdict.issues)
    if verdict.kept:
        shown = {**taken.question.shown, **verdict.kept}
        typed = plan.codec.load(shown, taken.question.shown_types)
        again["suggested"], again["suggested_types"] = typed.view, typed.types
        again["suggested_by"] = TYPED
        again["suggested_added"] = taken.question.added_in(typed.view)
    about: Any = {"review_id": taken.question.review_id, "author": taken.author}
    given.run.emit("answer_refused", record["number"], **about)
    return {LOOP: {**loop, "review": again}, ANSWER: None}


def _accepted(given: StepInput, taken: Taken, verdict: Accepted) -> dict[str, Any]:
    """Write an accepted decision into the ledger, and return the state update that applies it."""
    plan, settings, record = given.plan, given.plan.settings, given.attempts[-1]
    verdict = verdict._replace(decision=_redacted(plan, verdict.decision))
    output = given.state.get(REVIEWED)
    review: Any = given.loop["review"] or {}
    note = {
        **_note(verdict.decision, taken),
        **_counted(plan, verdict.effect, output),
        **{key: review[key] for key in ("suggested_by", "before") if review.get(key)},
    }
    # The budget counted the attempt before it had a decision. `Budget.rounds` counts decisions.
    if settings.budget is not None:
        settings.budget.count(cast("Attempt", {**record, "decision": note}))
    rewound, keys = taken.rewound, settings.keys
    ledger: Any = {keys["attempts"]: [{"number": record["number"], "decision": note}]}
    if rewound is not None:
        # A rewind removes later attempts from the ledger, so state gets the earlier params back.
        kept = Overwrite(stubs_again(rewound.kept(note)))
        ledger = {keys["attempts"]: kept, keys["params"]: rewound.params.view}
    update = _apply(plan, taken.loop, verdict, output, note["author"], rewound and rewound.reason)
    return {ANSWER: None, REVIEWED: None, **ledger, **update}


async def _default(given: StepInput, question: Question) -> Accepted:
    """Apply the option `default_decision` to an expired review. If this fails, reject the call."""
    plan, attempts = given.plan, given.attempts
    verdict = await judge(plan.settings.default_decision, replace(question, allowed=None))
    problem: str | None
    if isinstance(verdict, Accepted):
        problem = await not_again(plan, attempts, "system", verdict)
        if problem is None:
            return verdict
    else:
        problem = verdict.problem
    why = f"nobody answered in time, and by default: {problem}"
    return Accepted(reject(why), End("cancelled", without_output=True))


def _redacted(plan: Plan[Any], decision: Decision) -> Decision:
    """Redact the texts of a decision. Its params and its output are redacted elsewhere."""
    row, redact = ROWS[decision["type"]], plan.settings.redact
    written = {"message", row.data, *row.parts} - {"params", "output"}
    said: Any = {
        key: redacted(part, redact) if key in written else part for key, part in decision.items()
    }
    return cast("Decision", said)


def _note(decision: Decision, taken: Taken) -> dict[str, Any]:
    """Return a decision as the ledger records it, without its params and output."""
    said = {key: value for key, value in decision.items() if key not in ("params", "output")}
    user = _user() if taken.author == "human" else None
    by = user or decision.get("by")
    return {
        "channel": decision.get("channel") or taken.channel,
        **said,
        **({"user": user} if user else {}),
        "review_id": taken.question.review_id,
        "author": f"{taken.author}:{by}" if by else taken.author,
        "at": now(),
    }


def _counted(plan: Plan[Any], effect: Effect, reviewed: dict[str, Any] | None) -> dict[str, Any]:
    """Return the redacted output that a decision supplies or accepts, as `{"output": …}`."""
    if not isinstance(effect, End) or effect.without_output:
        return {}
    output = effect.output or (reviewed if effect.status == "overruled" else None)
    redact, names = plan.settings.redact, plan.output_names
    return {} if output is None else {"output": redacted(output["value"], redact, names)}


def _user() -> str | None:
    """Return the user that a server has authenticated for this run; None if there is none."""
    server = getattr(get_runtime(), "server_info", None)
    return getattr(getattr(server, "user", None), "identity", None)


def _escalate(given: StepInput, taken: Taken, problem: str | None = None) -> dict[str, Any]:
    """Record that no automatic reviewer decided. Ask a person, or end the call as `exhausted`."""
    plan, loop, settings = given.plan, given.loop, given.plan.settings
    passed = list(taken.passed)
    if problem is not None:
        passed.append({"by": taken.author, "decision": taken.value, "problem": problem})
    about = taken.question.review_id, settings.name, thread_in_logs()
    for one in passed:
        told = redacted(proposal_in_words(one), settings.redact)
        _LOG.warning("a reviewer did not decide review %s of `%s` (%s): %s", *about, told)
    noted = {**loop, "review": {**cast("OpenReview", loop["review"]), "agents": passed}}
    if settings.review:
        return {LOOP: noted}
    _LOG.warning("review %s of `%s` (%s): no reviewer decided, and nobody may be asked", *about)
    given_up = {**noted, "next": "end", "stopped": "no reviewer decided: add one that does"}
    return {LOOP: given_up} | without_output(plan, "exhausted")


def _ask_again(
    loop: Loop, record: Attempt, problem: str | None, issues: Sequence[Issue] = ()
) -> OpenReview:
    review = loop["review"]
    assert review is not None  # noqa: S101
    # The question gets a new id, so that an answer to the earlier question is recognised as late.
    round_ = review["round"] + 1
    review_id = review_id_of(record["idempotency_key"], round_)
    return {
        **review,
        "review_id": review_id,
        "round": round_,
        "problem": problem,
        "answer_issues": list(issues),
    }


def _apply(
    plan: Plan[Any],
    loop: Loop,
    verdict: Accepted,
    reviewed: dict[str, Any] | None,
    author: str,
    why: str | None,
) -> dict[str, Any]:
    """Return the state update that ends the call or starts its next attempt.

    `reviewed` is the output under review. `why` is the reason of a rewind, or None.
    """
    keys, decision, effect = plan.settings.keys, verdict.decision, verdict.effect
    # `auto_retries` counts the automatic attempts between two reviews, so a decision sets it to 0.
    closed: Loop = {**loop, "review": None, "automatic": 0, "author": author}
    if isinstance(effect, End):
        ended: dict[str, Any] = {LOOP: {**closed, "next": "end"}}
        if effect.without_output:
            return ended | without_output(plan, effect.status)
        output = reviewed if effect.output is None else effect.output
        if effect.output is not None:
            ended = {LOOP: {**closed, "next": "end", "output_types": {}}, WRITES: None}
        return {**ended, keys["output"]: output and output["value"], keys["status"]: effect.status}
    assert isinstance(effect, CallAgain)  # noqa: S101 - `Wait` was handled before
    by = loop["review"] and loop["review"]["suggested_by"]
    approved = f"approved {by}" if by else "approved the same params"
    if effect.unchanged_edit:
        approved = f"{approved}: the edit changed nothing"
    edited = "edited" if decision.get("params") else "called again with the same params"
    default = why or (approved if decision["type"] == "approve" else edited)
    reason = decision.get("message") or default
    retry: Loop = {**closed, "next": "call", "types": effect.types, "reason": reason}
    retry["added"] = seal(effect.params, effect.added)
    return {LOOP: retry, keys["params"]: effect.params}
