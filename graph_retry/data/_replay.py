"""Process a ledger's raw outputs again, without the model, and compare the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack, cast

from graph_retry.calls import Rejudged, Terms
from graph_retry.errors import ReplayMismatch
from graph_retry.ledger import OneCall, attempts_in, params_in
from graph_retry.options import OnRetry, RetryOptions
from graph_retry.plugins import as_repr, async_twin, identical, in_sync
from graph_retry.records import Attempt, author_role

_JUDGED = ("status", "failure", "issues", "repaired", "repairs", "lossless")
_AUTOMATIC = ("hook", "feedback")


@dataclass(frozen=True, kw_only=True)
class Replayed(Rejudged):
    """The new result of one recorded attempt, and its differences from the record.

    number: The attempt's number.
    differs: Tuples `(field, recorded value, new value)`. For the params that hooks propose for the
        next attempt, `field` is `next params`, and each value is `(author, params)`.
    """

    number: int
    differs: list[tuple[str, Any, Any]]


class ReplayOptions(RetryOptions, total=False):
    """Options of `replay`. They include all options of a call.

    output: The output type of the call.
    params_type: The type in which hooks get the params (default `dict`).
    check: Whether to raise at the first difference (default False).
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
    """Repair, validate and classify recorded raw outputs again, without calling the model.

    Use `replay` after you changed `output`, the `repair` level, `classify` or a hook. The result
    shows which attempts would now succeed, fail or be revised. With the arguments of the recorded
    call, nothing differs from the record. Hooks run only if `on_retry` or `feedback` is given.
    Options about model calls and reviews have no effect.

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
    given = cast("dict[str, Any]", options)
    output, check = given.pop("output", None), given.pop("check", False)
    params_type, named = given.pop("params_type", dict), {"name": "replay", **given}
    terms = Terms(None, on_retry, output, cast("RetryOptions", named), params_type=params_type)
    records, replayed = list(attempts_in(attempts)), list[Replayed]()
    async for now in terms.again(records):
        record, *later = records[len(replayed) :]
        result = Replayed(
            **vars(now),
            number=record["number"],
            differs=[] if record["status"] == "running" else _differences(record, now.attempt),
        )
        asked = terms.revises and record["kept_in"] is None
        if asked and later and author_role(later[0]["author"]) in _AUTOMATIC:
            expected = (later[0]["author"], params_in(records, later[0]["number"]))
            actual = (result.author, result.params)
            if not identical(expected, actual):
                result.differs.append(("next params", expected, actual))
        if check and result.differs:
            field, was, is_ = result.differs[0]
            raise ReplayMismatch(
                f"attempt {result.number} differs in its {field}: recorded {as_repr(was, 200)}, "
                f"now {as_repr(is_, 200)}. Replay with the arguments of the recorded call, or "
                "check the changes since then.",
                records,
                attempt=result.number,
                expected=was,
                actual=is_,
            )
        replayed.append(result)
    return replayed


areplay = async_twin(replay)


def _differences(record: Attempt, now: Attempt) -> list[tuple[str, Any, Any]]:
    pairs = ((field, record.get(field), now.get(field)) for field in _JUDGED)
    return [(field, was, is_) for field, was, is_ in pairs if not identical(was, is_)]
