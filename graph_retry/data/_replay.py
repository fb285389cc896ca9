"""Process a ledger's recorded raw outputs again, without the model, and compare the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, Unpack, cast

from graph_retry._core.loop.asking.hooks import propose
from graph_retry._core.loop.check import read_raw, validate_attempt
from graph_retry._core.loop.revise import hooks_may_help
from graph_retry._core.loop.run.plan import Plan, make_plan
from graph_retry._core.loop.run.receiving import stopped_again
from graph_retry._core.loop.run.step import in_place
from graph_retry._core.output.failures import announced, classified
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.params.patch import Encoded
from graph_retry._core.state.attempts import is_returned, params_at, readable
from graph_retry.errors import ReplayMismatch
from graph_retry.ledger import OneCall, attempts_in
from graph_retry.options import OnRetry, RetryOptions, settle
from graph_retry.plugins import async_twin, identical, in_sync
from graph_retry.records import Attempt, Failure, author_role

__all__ = ["ReplayOptions", "Replayed", "areplay", "replay"]

_JUDGED = ("status", "failure", "issues", "repaired", "repairs", "lossless")
_AUTOMATIC = ("hook", "feedback")


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """The new result of one recorded attempt.

    number: The attempt's number.
    attempt: The new record.
    output: The valid output as JSON; None if the attempt failed.
    author: The hooks that revised the params; None if no hook revised them.
    params: The revised params as JSON; None if no hook revised them.
    differs: The differences, each as (field of the record or `next params`, recorded value, new
        value).
    """

    number: int
    attempt: Attempt
    output: Any
    author: str | None
    params: dict[str, Any] | None
    differs: list[tuple[str, Any, Any]]


class ReplayOptions(RetryOptions, total=False):
    """Options of `replay`. They include all options of a call.

    output: The output type of the call.
    params_type: The type in which hooks get the params (default `dict`).
    check: Raise at the first difference (default False).
    """

    output: Any
    params_type: Any
    check: bool


@in_sync
async def replay(
    attempts: OneCall,
    on_retry: OnRetry[Any] = None,
    **options: Unpack[ReplayOptions],
) -> list[Replayed]:
    """Repair, validate and classify recorded raw outputs again; no model is called.

    With the arguments of the original call, nothing differs. With a different `output`, `repair`
    level, `classify` or hook, the result shows which attempts would now succeed, fail or be
    revised. Hooks run only if `on_retry` or `feedback` is given. Options about model calls and
    reviews have no effect.

    Raises:
        ReplayMismatch: If a result differs and `check` is set, or a newer version wrote the ledger.

    Example:
        >>> from graph_retry import InterventionRequired, retry_llm_call
        >>> try:
        ...     retry_llm_call(lambda params: '{"n": "1"}', {}, output=dict[str, int], strict=True)
        ... except InterventionRequired as error:
        ...     (now,) = replay(error.attempts, output=dict[str, int])
        >>> now.output, now.differs[0]
        ({'n': 1}, ('status', 'failed', 'succeeded'))
    """
    ledger, given = readable(list(attempts_in(attempts))), cast("dict[str, Any]", options)
    output, check = given.pop("output", None), given.pop("check", False)
    codec = ParamsCodec[Any](given.pop("params_type", dict))
    settings = settle("replay", "node", cast("RetryOptions", given))
    plan = make_plan(_no_model, codec, on_retry, output, settings)
    replayed: list[Replayed] = []
    for index, record in enumerate(ledger):
        gone = record["kept_in"] is not None  # The record is lost, so it cannot be judged.
        now, accepted = record, None
        if not gone:
            now, accepted = await _judged_again(ledger[:index], record, plan)
        following = ledger[index + 1] if index + 1 < len(ledger) else None
        proposal = None
        asked = not gone and (plan.hooks or plan.settings.feedback)
        if asked and now["status"] == "failed" and hooks_may_help(now, plan.settings):
            then = cast("Attempt", {**now, "decision": None})
            params = cast("Encoded", params_at(ledger, record["number"]))
            proposal = await propose(plan, params, [*ledger[:index], then], in_place)
        result = Replayed(
            number=record["number"],
            attempt=now,
            output=accepted,
            author=None if proposal is None else proposal.author,
            params=None if proposal is None else proposal.params.view,
            differs=[] if record["status"] == "running" else _differences(record, now),
        )
        if asked and following is not None and author_role(following["author"]) in _AUTOMATIC:
            recorded = params_at(ledger, following["number"])
            expected = (following["author"], recorded and recorded.view)
            actual = (result.author, result.params)
            if not identical(expected, actual):
                result.differs.append(("next params", expected, actual))
        if check and result.differs:
            field, expected, actual = result.differs[0]
            raise ReplayMismatch(
                f"attempt {result.number} differs in its {field}: recorded {expected!r:.200}, "
                f"now {actual!r:.200}. Replay it with what the call was given, or look at what "
                "was changed since.",
                ledger,
                attempt=result.number,
                expected=expected,
                actual=actual,
            )
        replayed.append(result)
    return replayed


areplay = async_twin(replay)


def _no_model(_params: Any) -> NoReturn:
    raise AssertionError("a replay calls no model")


async def _judged_again(
    before: list[Attempt], record: Attempt, plan: Plan[Any]
) -> tuple[Attempt, Any]:
    """Judge an attempt's raw output again; return the new record and the valid output."""
    raw, validator = record["raw"], plan.validator
    failure = _failure_of_call(record, plan)
    if failure is not None:
        failed = {"status": "failed", "failure": failure}
        return cast("Attempt", {**record, **failed}), None
    now = cast("Attempt", {**record, "parsed": None, "issues": []})
    if validator is None:
        none: Any = {"status": "succeeded", "failure": None, "repairs": [], "repaired": None}
        return cast("Attempt", {**now, **none, "lossless": None}), (raw or {}).get("value")
    if stopped := stopped_again(record, validator, plan.settings):
        return cast("Attempt", {**now, **stopped, "status": "failed"}), None
    now.update(cast("Attempt", read_raw(now, validator, plan.settings)))
    output: Any = None
    update, checked = await validate_attempt([*before, now], validator)
    now.update(cast("Attempt", update))
    if checked is not None:
        output = checked.jsonable
    now["status"] = "failed" if now["failure"] else "succeeded"
    return now, output


def _failure_of_call(record: Attempt, plan: Plan[Any]) -> Failure | None:
    """Return the failure that was known before the output was read.

    The call raised it, or the provider announced it (such as by a finish reason).
    """
    failure, validator = record["failure"], plan.validator
    if not is_returned(record):
        if failure is None:
            return None
        raised = type(failure["type"], (Exception,), {})(failure["message"])
        kind = classified(raised, plan.settings.classify)
        return {**failure, "kind": kind} if kind else failure
    if validator is None:  # `permanent` marks a result that could not be saved.
        return failure if failure and failure["kind"] == "permanent" else None
    raw = record["raw"] or {}
    if "type" in raw:
        return failure
    refused = failure["message"] if failure and failure["type"] == "Refusal" else None
    is_read = "text" in raw and not validator.wants_text
    return announced(record["finish_reason"], refused, is_read=is_read)


def _differences(record: Attempt, now: Attempt) -> list[tuple[str, Any, Any]]:
    """List the fields that differ from the record, as (name, recorded value, new value)."""
    pairs = ((field, record.get(field), now.get(field)) for field in _JUDGED)
    return [(field, was, is_) for field, was, is_ in pairs if not identical(was, is_)]
