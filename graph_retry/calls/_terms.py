"""Judge recorded attempts again, by other output types, hooks or options, without model calls."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, cast

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.functions.signatures import LLMCall, OnRetry, name_of
from graph_retry._core.ground.redact import redacted
from graph_retry._core.loop.asking.hooks import Proposal, propose
from graph_retry._core.loop.check import read_raw, validate_attempt
from graph_retry._core.loop.revise import hooks_may_help
from graph_retry._core.loop.run.plan import Plan, make_plan
from graph_retry._core.loop.run.receiving import stopped_again
from graph_retry._core.loop.run.step import in_place
from graph_retry._core.output.failures import announced, classified
from graph_retry._core.output.validator import Validator
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.params.patch import Encoded
from graph_retry._core.state.attempts import is_returned, params_at, readable
from graph_retry.ledger import OneCall, attempts_in
from graph_retry.options import RetryOptions, settle
from graph_retry.records import Attempt, Failure


@dataclass(frozen=True, kw_only=True)
class Rejudged:
    """The new result of a recorded attempt, judged by another output type, options or hooks.

    attempt: The new record of the attempt.
    output: The valid output as JSON; None if the attempt failed.
    author: The hook or feedback that now proposes changed params, such as `hook:shorten`, or None.
    params: The proposed params as JSON, or None.
    """

    attempt: Attempt
    output: Any = None
    author: str | None = None
    params: dict[str, Any] | None = None


@checked
class Terms:
    """An output type, hooks and options, by which recorded attempts are judged again.

    Args:
        llm_call: The function of the calls. Its name and type hints are used. It is never called.
        on_retry: Hooks, as in `retry_llm_call`.
        output: The wanted output, as in `retry_llm_call`.
        options: See `RetryOptions`.
        params_type: The type in which functions and hooks get the params.

    Example:
        >>> import asyncio
        >>> from graph_retry import InterventionRequired, retry_llm_call
        >>> async def judged(attempts):
        ...     return [each.output async for each in Terms(output=str).again(attempts)]
        >>> try:
        ...     retry_llm_call(lambda params: "one", {}, output=int)
        ... except InterventionRequired as error:
        ...     asyncio.run(judged(error.attempts))
        ['one']
    """

    def __init__(
        self,
        llm_call: LLMCall[Any, Any] | None = None,
        on_retry: OnRetry[Any] = None,
        output: Any = None,
        options: RetryOptions | None = None,
        *,
        params_type: Any = dict,
    ) -> None:
        self._codec = ParamsCodec[Any](params_type)
        form: Any = "function" if llm_call else "node"
        name = name_of(llm_call, "llm_call") if llm_call else "again"
        settings = settle(name, form, options or {}, output)
        self._plan = make_plan(llm_call or _no_model, self._codec, on_retry, output, settings)

    @property
    def name(self) -> str:
        """The name of the calls."""
        return self._plan.settings.name

    @property
    def validator(self) -> Validator | None:
        """The validator of the outputs; None if the call has no `output`."""
        return self._plan.validator

    @property
    def revises(self) -> bool:
        """Whether there are hooks or feedback, which can propose changed params."""
        return bool(self._plan.hooks or self._plan.settings.feedback)

    def redacted(self, value: Any) -> Any:
        """Return a JSON value whose texts were redacted by the function of the option `redact`."""
        return redacted(value, self._plan.settings.redact)

    def params_of(self, attempts: OneCall, number: int) -> Any:
        """Return the params of a recorded attempt as `params_type`; None if they are unknown."""
        encoded = params_at(attempts_in(attempts), number)
        return None if encoded is None else self._codec.decode(*encoded)

    def encoded(self, params: Any, owner: str = "params") -> tuple[dict[str, Any], dict[str, str]]:
        """Return params as JSON, and their Python types by path. Errors call them `owner`."""
        view, types = self._codec.encode(params, owner=owner)
        return view, types

    async def again(self, attempts: OneCall) -> AsyncIterator[Rejudged]:
        """Judge each recorded attempt again, without calling the model.

        Raises:
            ReplayMismatch: If a newer version wrote the ledger.
        """
        ledger = readable(list(attempts_in(attempts)))
        for index, record in enumerate(ledger):
            if record["kept_in"] is not None:  # The record is lost, so it cannot be judged.
                yield Rejudged(attempt=record)
                continue
            now, output = await judged_again(ledger[:index], record, self._plan)
            proposal = None
            if self.revises and now["status"] == "failed":
                proposal = await proposed_again(ledger[:index], now, self._plan)
            author, params = (proposal.author, proposal.params.view) if proposal else (None, None)
            yield Rejudged(attempt=now, output=output, author=author, params=params)


def _no_model(_params: Any) -> Any:
    raise AssertionError("no model is called")


async def proposed_again(before: list[Attempt], now: Attempt, plan: Plan[Any]) -> Proposal | None:
    """Ask the hooks again about a failed attempt; None if no hook proposes changed params."""
    if not hooks_may_help(now, plan.settings):
        return None
    then = cast("Attempt", {**now, "decision": None})
    params = cast("Encoded", params_at([*before, now], now["number"]))
    return await propose(plan, params, [*before, then], in_place)


async def judged_again(
    before: list[Attempt], record: Attempt, plan: Plan[Any]
) -> tuple[Attempt, Any]:
    """Validate the recorded output of an attempt again; return the new record and valid output."""
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
    """Return the failure that was known before the output was read, or None."""
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
