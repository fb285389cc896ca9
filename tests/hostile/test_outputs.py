"""Hostile outputs: an attempt always ends, and a failed one can be answered."""

from collections import Counter
from itertools import count
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import Completion, edit
from graph_retry._core.ground.functions.awaiting import run_sync
from graph_retry._core.loop.check import read_raw, validate_attempt
from graph_retry._core.loop.outcome import store
from graph_retry._core.output.completion import read_result
from graph_retry._core.output.failures import failure_of
from graph_retry.hooks import Budget
from graph_retry.options import settle
from graph_retry.output import build_validator
from tests.hostile.fuzzed import (
    Boxed,
    Grumpy,
    Speechless,
    any_outputs,
    fuzzed,
    looped,
    nested,
)
from tests.loops import answer, one_call, reviews, thread
from tests.parts import draws

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
KINDS = {"typed": dict[str, int], "schema": SCHEMA, "text": str, "function": lambda value: True}


@pytest.mark.drawn
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_thousands_of_outputs_are_read_and_judged(kind: str) -> None:
    """Reading, repairing and judging never raise, and say why in bounded words."""
    validator, verdicts = build_validator(KINDS[kind]), Counter[str]()
    drawn, settings = draws(300, 2_500), settle("count", "node", {"repair": "standard"})

    @fuzzed(any_outputs, drawn, start=kind)
    def check(output: Any) -> None:
        if isinstance(output, Exception):
            verdicts["raised"] += 1
            assert len(failure_of(output)["message"]) <= 4_000
            return
        reading = read_result(output)
        value = None if reading.text is not None else store(reading.value)
        if reading.text is None and value is None:
            verdicts["no JSON"] += 1
            return
        raw = {"text": reading.text} if value is None else value.view
        reason = reading.finish_reason
        record: Any = {"number": 1, "raw": raw, "finish_reason": reason, "parsed": None}
        record |= read_raw(record, validator, settings)
        if record["failure"] is None:
            record |= run_sync(validate_attempt([record], validator))[0]
        verdicts["accepted" if record.get("failure") is None else "failed"] += 1
        assert len(str(record["issues"])) + len(str(record.get("failure"))) < 200_000

    check()
    assert verdicts.total() >= drawn
    assert (
        min(verdicts[each] for each in ("raised", "no JSON", "accepted", "failed")) >= drawn // 150
    )


def run(form: str, mode: Any, saver: Any, name: str, given: Any, **options: Any) -> Any:
    """Let a model give one output, answer the review if there is one, and return the end."""

    def model(params: Any) -> Any:
        if params["n"] == 1:
            return '{"n": 1}'
        if isinstance(given, Exception):
            raise given
        return given

    options = {"output": dict[str, int], "feedback": "full", **options}
    graph = one_call(form, mode, mode.colour(model), saver, **options)
    done = mode.invoke(graph, {"params": {"n": 0, "prompt": "Count."}}, thread(name))
    for review in reviews(mode, graph, thread(name)):
        assert review.failure["kind"]
        assert review.error
        done = answer(mode, graph, thread(name), edit(n=1))
        assert done["output"] == {"n": 1}
    return done


@pytest.mark.drawn
def test_hundreds_of_outputs_through_the_engine(form: str, mode: Any) -> None:
    """Each run ends with an output: at once, or after the answer to the one review it opened."""
    saver, threads, drawn = InMemorySaver(), count(1), draws(20, 100)

    @fuzzed(any_outputs, drawn, start=form + mode.name, smaller=False)
    def check(output: Any) -> None:
        # By a schema: an `int` that a type brings back may be too large for the graph around.
        assert "output" in run(form, mode, saver, str(next(threads)), output, output=SCHEMA)

    check()
    assert next(threads) > drawn


NAMED = {
    "nothing": None,
    "nul": "\0",
    "surrogate": "\ud800",
    "surrogate-inside": '{"n": "\ud800"}',
    "deep": "[" * 10_000,
    "deep-value": nested(10_000),
    "itself": looped(),
    "object": Grumpy(),
    "model-of-object": Boxed(content=object()),
    "model-of-itself": Boxed(content=looped()),
    "odd-usage": Completion("x", {"total_tokens": "many", "cost": object()}),
    "huge-usage": Completion("x", {"total_tokens": 2**90}),
    "odd-reason": Completion("x", None, object()),  # type: ignore[arg-type]
    "no-text": Completion(5),  # type: ignore[arg-type]
    "speechless": Speechless(),
    "raised-surrogate": ValueError("\ud800\0"),
}


@pytest.mark.slow
def test_odd_outputs_on_every_storage(form: str, mode: Any, checkpointer: Any) -> None:
    """What cannot be dumped, spelled or stored still ends in a review that can be answered."""
    for name, output in NAMED.items():
        budget = Budget(tokens=10)
        done = run(form, mode, checkpointer, name, output, auto_retries=1, budget=budget)
        assert done["output"] == {"n": 1}
