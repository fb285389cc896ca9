"""Repeat recorded calls with a new model, prompt or options, and compare the results.

The main result is how often a person would still be asked. The calls run outside any graph, so
nothing is written to the recorded threads.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from pathlib import Path
from typing import Any, NamedTuple, Unpack, cast

from pydantic_core import to_jsonable_python

from graph_retry.calls import Call, Terms
from graph_retry.data._corrections.past_corrections import PastCorrections
from graph_retry.data._corrections.record import check_names, expected_value
from graph_retry.data._evaluation import (
    Compare,
    Ended,
    Evaluation,
    Judged,
    agreement_of,
)
from graph_retry.data._metrics import summarize
from graph_retry.errors import AttemptsExhausted, InterventionRequired
from graph_retry.hooks import Budget
from graph_retry.ledger import Ledger, params_in
from graph_retry.options import LLMCall, OnRetry, RetryOptions
from graph_retry.output import Validator
from graph_retry.plugins import (
    Count,
    as_repr,
    async_twin,
    digest,
    in_sync,
    is_object,
    is_sync,
    known_sum,
    passed_as,
)
from graph_retry.records import author_role
from graph_retry.threads import LedgerSource, aevery_ledger, every_ledger

_LOG = logging.getLogger("graph_retry")
_VERSION = 1


class EvaluateOptions(RetryOptions, total=False):
    """Options of `evaluate`. They include all options of a call.

    params_type: The type in which `llm_call` gets the params (default `dict`).
    change: A function `params -> params` that changes the recorded first params (default: none).
    compare: The comparison of the new output with the expected one (default `equal`); see
        `Compare`.
    calls: Only calls with these names. Required if the source has calls of several names.
    labels_wanted: Only calls that had these labels.
    threads: Ids of the threads to read (default: all).
    where: A function `Ledger -> bool` that selects calls.
    concurrency: The number of calls that run at the same time (default 4).
    limit: A `Budget` or `SharedBudget` of `tokens`, `cost` or `seconds`. When the budget is spent,
        no further call starts. The `price` of the budget also gives the `cost` in the results.
    path: A file that stores each result. Another run with the same file skips the stored calls.
        The file knows only names: give a new one if a model, a prompt or an option changes.
    progress: A function that gets the `Evaluation` after each result.
    """

    params_type: Any
    change: Callable[[Any], Any]
    compare: Compare
    calls: Collection[str]
    labels_wanted: Mapping[str, str]
    threads: Iterable[str]
    where: Callable[[Ledger], bool]
    concurrency: Count
    limit: Budget
    path: str | Path
    progress: Callable[[Evaluation], Any]


class _Case(NamedTuple):
    """A recorded call to repeat: its id, its ledger, and its params."""

    id: str
    ledger: Ledger
    params: Any


@in_sync
async def evaluate(
    source: LedgerSource,
    llm_call: LLMCall[Any, Any],
    on_retry: OnRetry[Any] = None,
    *,
    output: Any = None,
    **options: Unpack[EvaluateOptions],
) -> Evaluation:
    """Make recorded calls again with another model, prompt or options, and compare the outputs.

    Each new call starts with the params of the recorded call's first attempt. It runs outside any
    graph. Nobody is asked: where a person would decide, the new call ends. If a person supplied,
    accepted or approved an output of the recorded call, the new output is compared with it.
    With `lessons=PastCorrections(…)`, a new call does not see the corrections of its recorded call.

    Args:
        source: A source that `graph_retry.threads.every_ledger` takes.
        llm_call: The function of the params to evaluate, sync or async, or a runnable.
        on_retry: Hooks, as in `retry_llm_call`.
        output: The output type, as in `retry_llm_call`.
        **options: See `EvaluateOptions`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If an option has a value that is not allowed, if `source` has calls of several
            names and `calls` is missing, if `calls` has a name that no call has, if the recorded
            calls had an `output` but none is given, or if `path` is not a file of this evaluation.

    Example:
        >>> from graph_retry import InterventionRequired, retry_llm_call
        >>> try:
        ...     retry_llm_call(lambda prompt: "ten", "How many?", output=int)
        ... except InterventionRequired as error:
        ...     ledger = Ledger(error.attempts)
        >>> better = evaluate([ledger], lambda params: "10", output=int)
        >>> better.figures()["valid at once"], better.results[0]["output"]
        (1, 10)
    """
    run, threads = _Run(llm_call, on_retry, output, {**options}), options.get("threads")
    if not is_sync():
        return await run.on(aevery_ledger(source, threads=threads))

    async def ledgers() -> AsyncIterator[Ledger]:
        for ledger in every_ledger(source, threads=threads):
            yield ledger

    async def all_of_them() -> Evaluation:
        loop = asyncio.get_running_loop()
        # Sync functions run in this executor, so it needs a thread for each concurrent call.
        loop.set_default_executor(ThreadPoolExecutor(run.concurrency))
        return await run.on(ledgers())

    # A notebook already runs an event loop, so this needs another thread.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, all_of_them()).result()


aevaluate = async_twin(evaluate)


class _Run:
    """One evaluation: its checked options and its results so far."""

    def __init__(
        self, llm_call: Any, on_retry: OnRetry[Any], output: Any, options: dict[str, Any]
    ) -> None:
        take = options.pop
        params_type = take("params_type", dict)
        self._change, self._compare = take("change", None), take("compare", "equal")
        self._calls, self._labels = take("calls", None), take("labels_wanted", {})
        self._where, self._progress = take("where", None), take("progress", None)
        self._limit, self._path = take("limit", None) or Budget(), take("path", None)
        if not {self._limit.rounds, getattr(self._limit, "failures", None)} <= {None}:
            raise ValueError(
                "`limit` takes only `tokens`, `cost` or `seconds`: leave out its other limits."
            )
        self.concurrency: int = take("concurrency", 4)
        take("threads", None)
        self._call = (llm_call, on_retry, output, options)
        given = cast("RetryOptions", options)
        self._terms = Terms(llm_call, on_retry, output, given, params_type=params_type)
        self._function = Terms(llm_call, params_type=params_type).name
        self.evaluation = Evaluation(self._terms.name)
        self._names: set[str] = set()
        self._known: set[str] = set()
        self._spent = Budget().spent_on([])
        self._done = self._read() if self._path else {}

    async def on(self, ledgers: AsyncIterator[Ledger]) -> Evaluation:
        """Evaluate the selected calls. If one raises, the running calls are cancelled."""
        pending: set[asyncio.Task[None]] = set()
        try:
            async for ledger in ledgers:
                case = self._case(ledger)
                if case is None:
                    continue
                while len(pending) >= self.concurrency:
                    pending = await _first_done(pending)
                if case.id in self._done:
                    self.evaluation.results.append(self._done.pop(case.id))
                elif self._limit.exceeded([], self._spent):
                    self.evaluation.left += 1
                else:
                    # The context is empty, because `evaluate` may be called inside a graph's step.
                    task = asyncio.create_task(self._judge(case), context=Context())
                    pending.add(task)
            while pending:
                pending = await _first_done(pending)
            self._check_names()
        finally:
            for task in pending:
                task.cancel()
        return self.evaluation

    def _check_names(self) -> None:
        """Refuse a name in `calls` that no call has. If there are results, only log a warning."""
        try:
            check_names(self._calls or (), self._known)
        except ValueError as error:
            if not self.evaluation.results:
                raise
            _LOG.warning("%s", error)

    def _case(self, ledger: Ledger) -> _Case | None:
        """Return the call to repeat; None if it is not selected, or if its params are missing."""
        self._known.add(ledger.name)
        if not (ledger.attempts and ledger.current and self._is_wanted(ledger)):
            return None
        self._names.add(ledger.name)
        if self._calls is None and len(self._names) > 1:
            names = ", ".join(f"`{name}`" for name in sorted(self._names))
            raise ValueError(
                f"`source` has calls of several names ({names}): choose some with `calls` (in "
                "the terminal, `--name`)."
            )
        was_read = any(attempt["lossless"] is not None for attempt in ledger.attempts)
        if was_read and self._terms.validator is None and not callable(self._compare):
            raise ValueError(
                f"the recorded calls of `{ledger.name}` had an `output=`: give it to "
                "`evaluate`, too, so that new and recorded outputs can be equal."
            )
        first = ledger.attempts[0]
        if params_in(ledger, first["number"]) is None or first["kept_in"] is not None:
            self.evaluation.skipped["the first attempt's record was deleted"] += 1
            return None
        params = self._terms.params_of(ledger, first["number"])
        if self._change is not None:
            with passed_as("change"):
                params = self._change(params)
        asked = self._terms.encoded(params, owner="the params that `change` returned")
        made = digest(first["idempotency_key"], first["started_at"], *asked)
        return _Case(made, ledger, params)

    def _is_wanted(self, ledger: Ledger) -> bool:
        labels = ledger.attempts[0].get("labels", {})
        with passed_as("where"):
            return (
                (self._calls is None or ledger.name in self._calls)
                and self._labels.items() <= labels.items()
                and (self._where is None or bool(self._where(ledger)))
            )

    async def _judge(self, case: _Case) -> None:
        llm_call, on_retry, output, given = self._call
        options = {**given}
        if isinstance(past := options.get("lessons"), PastCorrections):
            options["lessons"] = past.without(case.ledger.attempts)
        call = Call(llm_call, case.params, on_retry, output, cast("RetryOptions", options))
        value, failure = None, None
        ended: Ended = "would_ask"
        try:
            value, attempts = await call.ainvoke()
        except (InterventionRequired, AttemptsExhausted) as error:
            attempts = error.attempts
            failure = attempts[-1]["failure"] if attempts else None
        else:
            value = to_jsonable_python(value, fallback=str)
            ended = "at_once" if len(attempts) == 1 else "after_automation"
        expected, vouched = expected_value(case.ledger)
        if vouched:
            expected = await _today(expected, self._terms.validator)
        compared = vouched and ended != "would_ask"
        agreement = agreement_of(self._compare, value, expected) if compared else None
        first = case.ledger.attempts[0]
        self._keep(
            {
                "id": case.id,
                "thread": self._terms.redacted(case.ledger.thread),
                "call": case.ledger.name,
                "labels": self._terms.redacted(first.get("labels", {})),
                "asked_before": _was_asked(case.ledger),
                "ended": ended,
                "attempts": len(attempts),
                "output": self._terms.redacted(value),
                "failure": failure,
                "expected": self._terms.redacted(expected) if vouched else None,
                "agreement": agreement,
                "tokens": summarize([attempts])["tokens"],
                "cost": known_sum(map(self._limit.cost_of, attempts)),
                "seconds": round(sum(one["duration_s"] for one in attempts), 6),
                "redacted": bool(first.get("redacted")),
            }
        )

    def _count(self, judged: Judged) -> None:
        self._spent["tokens"] += judged["tokens"]["total_tokens"] or 0
        self._spent["cost"] += judged["cost"] or 0.0
        self._spent["seconds"] += judged["seconds"]

    def _keep(self, judged: Judged) -> None:
        self._count(judged)
        if self._path:
            with Path(self._path).open("a", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps(judged) + "\n")
        self.evaluation.results.append(judged)
        if self._progress is not None:
            with passed_as("progress"):
                self._progress(self.evaluation)

    def _read(self) -> dict[str, Judged]:
        """Read the results of an earlier run from `path`, and remove an incomplete last line."""
        path, name = Path(self._path), self.evaluation.name
        made = {"graph_retry_evaluation": _VERSION, "name": name, "function": self._function}
        head = f"{json.dumps(made)}\n".encode()
        whole = path.read_bytes() if path.exists() else b""
        kept = whole[: whole.rfind(b"\n") + 1] or (head if head.startswith(whole) else whole)
        first, *results = _json_in(kept)
        if not is_object(first) or first.get("graph_retry_evaluation") != _VERSION:
            raise ValueError(f"`path` is {path}, which `evaluate` did not write: give a new file.")
        if first.get("name") != name:
            raise ValueError(
                f"`path` is {path}, which holds the evaluation of {as_repr(first.get('name'))}: "
                f"for {as_repr(name)}, give a new file, or the `name=` of the first evaluation."
            )
        # A function may have been renamed, so this is no error. Older files do not name it.
        if (other := first.get("function", self._function)) != self._function:
            what = "`path` has results of the function `%s`, and they count as results of `%s`: "
            _LOG.warning(what + "give a new file if these are two models", other, self._function)
        if kept != whole:
            path.write_bytes(kept)
        done: dict[str, Judged] = {one["id"]: one for one in results}
        for one in done.values():
            self._count(one)
        return done


def _json_in(lines: bytes) -> list[Any]:
    """Read JSON Lines. If a line is not JSON, return `[None]`."""
    try:
        return [json.loads(line) for line in lines.splitlines()]
    except ValueError:
        return [None]


async def _first_done(pending: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
    """Wait for the first of some tasks to end, raise its error, and return the other tasks."""
    done, left = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    return left


async def _today(expected: Any, validator: Validator | None) -> Any:
    """Convert a recorded value with the new validator, unless the validator refuses it."""
    if validator is None:
        return expected
    checked = await validator.acheck(expected)
    return checked.jsonable if checked.ok else expected


def _was_asked(ledger: Ledger) -> bool:
    """Say whether a person was asked about a recorded call, or is being asked now."""
    authors = [one["author"] for one in ledger.attempts]
    authors += [one["decision"]["author"] for one in ledger.attempts if one["decision"]]
    asked = {"human", "system", "state edit"}.intersection(map(author_role, authors))
    return ledger.waits is True or bool(asked)
