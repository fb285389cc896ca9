"""The step `revise`, after a failed attempt, and the step `recall`, before the first attempt."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, cast

from langgraph.types import Overwrite

from graph_retry._core.ground.redact import redacted_fields
from graph_retry._core.ground.wording import counted, passed_as, with_article
from graph_retry._core.langgraph.run_config import thread_in_logs
from graph_retry._core.loop.after_attempt import finished, open_review, without_output
from graph_retry._core.loop.asking.hooks import Proposal, propose
from graph_retry._core.loop.run.keeping import in_state, whole_here
from graph_retry._core.loop.run.settings import Settings
from graph_retry._core.loop.run.step import StepInput
from graph_retry._core.params.prompt import seal
from graph_retry._core.state.attempts import times_sent
from graph_retry._core.state.position import LOOP, Loop, fresh_loop
from graph_retry._core.state.transitions import after_failure, goes_on, repeated_answer, why_no_call
from graph_retry.records import FAILURE_KINDS, Attempt, author_role

_LOG = logging.getLogger("graph_retry")


class _Stop(NamedTuple):
    """Why no automatic retry may follow, and what the developer can change about that."""

    why: str
    way_out: str


_NO_RETRIES = _Stop("`auto_retries` is 0", "raise it")
"""The reason if a hook proposed params, but `auto_retries` is 0 and nobody may be asked."""


async def revise_step(given: StepInput) -> dict[str, Any]:
    """The step `revise`: call the model again with new params, open a review, or give up."""
    plan, loop, settings = given.plan, given.loop, given.plan.settings
    # Hooks, feedback and budgets need all attempts. The rules need only the last two attempts, so
    # the earlier records need not be read from their checkpoints.
    all_needed = bool(plan.hooks or settings.feedback or settings.budget)
    attempts = await whole_here(given.attempts, 0 if all_needed else 2)
    record, ended = attempts[-1], {}
    # With `redact`, the `call` step leaves a failed record `running`. A redactor is user code and
    # may raise. Therefore the redactor runs only after the checkpoint of the paid call.
    if record["status"] == "running":
        failed: Any = {"number": record["number"], "status": "failed"}
        failed |= redacted_fields(record, settings.redact, plan.output_names)
        record = cast("Attempt", {**record, **failed})
        attempts, ended = [*attempts[:-1], record], {settings.keys["attempts"]: [failed]}
    # A `SharedBudget` is kept in memory, so it is empty after a restart. Therefore this step
    # reports all attempts. A `SharedBudget` counts each attempt once.
    if settings.budget is not None:
        with passed_as("budget"):
            settings.budget.count(*in_state(attempts))
    ended |= await finished(given, record)
    proposal: Proposal | None = None
    if hooks_may_help(record, settings):
        proposal = await propose(plan, given.params, attempts)
    stop = _stop(given, attempts, proposal)
    if stop is None and proposal is None and settings.auto_retries:
        stop = _unchanged(given, record)
    verdict = after_failure(
        changed=proposal is not None,
        stopped=stop is not None,
        automatic=loop["automatic"],
        auto_retries=settings.auto_retries,
        review=bool(settings.review or settings.reviewer),
    )
    if verdict == "give_up" or (stop is not None and settings.auto_retries > 0):
        what = "automation of `%s` stopped after attempt %s (%s): %s"
        stop = stop or (_NO_RETRIES if proposal else _unchanged(given, record))
        _LOG.warning(what, settings.name, record["number"], thread_in_logs(), stop.why)
    if verdict == "retry" and proposal is not None:
        revised: Loop = {
            **loop,
            "next": "call",
            "types": proposal.params.types,
            "author": proposal.author,
            "reason": failure_text(record),
            "added": seal(proposal.params.view, proposal.added),
            "automatic": loop["automatic"] + 1,
        }
        return ended | {LOOP: revised, settings.keys["params"]: proposal.params.view}
    if verdict == "ask":
        review = await open_review(given, proposal and proposal.suggested(), stop and stop.why)
        return ended | {LOOP: {**loop, "next": "review", "review": review}}
    given_up: Loop = {**loop, "next": "end", "stopped": stop and ": ".join(stop)}
    return ended | {LOOP: given_up} | without_output(plan, "exhausted")


def failure_text(record: Attempt) -> str:
    """Return the failure of an attempt as `Type: message`, in at most 300 characters."""
    failure = record["failure"]
    return "" if failure is None else f"{failure['type']}: {failure['message']}"[:300]


def hooks_may_help(record: Attempt, settings: Settings) -> bool:
    """Return whether this kind of failure and `max_attempts` allow asking the hooks."""
    kind = record["failure"] and record["failure"]["kind"]
    return record["number"] < settings.max_attempts and FAILURE_KINDS[kind or "permanent"].for_hooks


def _stop(given: StepInput, attempts: list[Attempt], proposal: Proposal | None) -> _Stop | None:
    settings, last = given.plan.settings, attempts[-1]
    kind = last["failure"] and last["failure"]["kind"]
    if kind and not FAILURE_KINDS[kind].for_hooks:
        why = f"{with_article(kind)} failure is not retried automatically"
        return _Stop(why, "correct its cause, or give it another kind with `classify`")
    again = repeated_answer(attempts)
    if again is not None and proposal is not None and author_role(proposal.author) == "feedback":
        why = f"despite feedback, the model repeated the refused answer of attempt {again}"
        return _Stop(why, "add a hook that changes more, such as `escalate`")
    spent = _spent(given, attempts)
    why_not = why_no_call(
        attempts,
        "hook" if proposal is None else proposal.author,
        sent=0 if proposal is None else times_sent(attempts, proposal.params),
        max_attempts=settings.max_attempts,
        person=bool(settings.review),
        spent=spent and spent.why,
        new_means=proposal is not None and proposal.new_means,
    )
    if spent is not None and why_not == spent.why:
        return spent
    is_last = last["number"] >= settings.max_attempts
    way_out = "raise `max_attempts`" if is_last else "let hooks change the params to new ones"
    return None if why_not is None else _Stop(why_not, way_out)


def _unchanged(given: StepInput, record: Attempt) -> _Stop:
    """Return the reason to stop if no hook and no feedback has changed the params."""
    hooks, feedback = given.plan.hooks, given.plan.settings.feedback
    kind = record["failure"]["kind"] if record["failure"] else "permanent"
    if not hooks and feedback is None:
        why, way_out = "no hook or feedback changed the params", "add one that does"
    else:
        asked = ["hooks"] * bool(hooks) + ["feedback"] * (feedback is not None)
        why = f"{' and '.join(asked)} changed nothing after {with_article(kind)} failure"
        way_out = "add a hook that changes the params"
    has_prompt = getattr(feedback, "has_prompt", None)
    if kind == "transient":
        way_out = f"to repeat such requests, give `transient=RetryPolicy(…)`, or {way_out}"
    elif kind == "rejected_input":
        way_out = (
            "if the same request may succeed later, give `transient=RetryPolicy(…)` and a "
            f'`classify=` that returns "transient" for this exception. Otherwise {way_out}'
        )
    elif has_prompt and not has_prompt(given.plan.codec.decode(*given.params)):
        way_out = (
            "give the params a `prompt` or `messages`, name the field for feedback with "
            f"`feedback=feedback(field=…)`, or {way_out}"
        )
    return _Stop(why, way_out)


def _spent(given: StepInput, attempts: list[Attempt]) -> _Stop | None:
    """Return the limit that stops automatic retries (`budget` or `auto_retries`), or None."""
    settings, before = given.plan.settings, given.loop["spent"]
    made, budget = given.loop["automatic"], settings.budget
    # The saved sum `spent` includes records whose checkpoints were deleted. Without this sum, the
    # budget counts all attempts.
    counted_now = attempts if before is None else given.attempts
    if budget is not None:
        with passed_as("budget"):
            overspent = budget.exceeded(in_state(counted_now), before)
        if overspent:
            return _Stop(overspent, "raise the budget")
    if settings.auto_retries and made >= settings.auto_retries:
        why = f"{counted(made, 'automatic retry', 'automatic retries')} did not help"
        return _Stop(why, "raise `auto_retries`")
    return None


async def recall_step(given: StepInput) -> dict[str, Any]:
    """The step `recall`: add known lessons to the params before the first attempt of a call."""
    plan, state, attempts = given.plan, given.state, given.attempts
    keys, lessons = plan.settings.keys, plan.settings.lessons
    assert lessons is not None  # noqa: S101 - the graph has this step only with lessons
    if attempts and goes_on(attempts[-1]):
        return {}
    window = lessons.reducer(state.get(keys["lessons"]), [*lessons.known])
    before = plan.codec.load(state.get(keys["params"]), given.loop["types"])
    taught = lessons.add_to(plan.codec.decode(*before), window)
    if taught is None:
        return {}
    params = plan.codec.encode(taught.params, owner="the params with lessons")
    loop: Loop = {
        **fresh_loop(),
        "types": params.types,
        "author": "lessons",
        "reason": taught.reason[:300],
        "added": seal(params.view, [*taught.added]),
        "identity": given.loop["identity"],
        "given": before.view,
    }
    none: Any = Overwrite([])
    return {LOOP: loop, keys["params"]: params.view} | (
        {keys["attempts"]: none} if attempts else {}
    )
