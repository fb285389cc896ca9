"""Hostile outputs: an attempt always ends, and a failed one can be answered."""

import random
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import Completion, edit
from graph_retry.budget import Budget
from graph_retry.engine.check import hold, read_raw
from graph_retry.failures import failure_of
from graph_retry.options import settle
from graph_retry.outcome import read_result
from graph_retry.validate import build_validator
from tests.hostile.odd import Boxed, Grumpy, Speechless, looped, nested, odd_output
from tests.loops import answer, one_call, reviews, thread

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
KINDS = [dict[str, int], SCHEMA, str, lambda value: isinstance(value, dict)]


@pytest.mark.parametrize("kind", KINDS, ids=["typed", "schema", "text", "function"])
def test_ten_thousand_outputs_are_read_and_judged(kind: Any) -> None:
    """Reading, repairing and judging never raise, and say why in bounded words."""
    chance, validator = random.Random(11), build_validator(kind)
    settings = settle("count", "node", {"repair": "standard"})
    verdicts = set()
    for _ in range(2_500):
        output = odd_output(chance)
        if isinstance(output, Exception):
            assert len(failure_of(output)["message"]) <= 4_000
            continue
        text = read_result(output).text
        if text is None:
            continue
        record: Any = {"number": 1, "raw": {"text": text}, "finish_reason": None, "parsed": None}
        record |= read_raw(record, validator, settings)
        if record["failure"] is None:
            record |= hold([record], validator)[0]
        verdicts.add(record.get("failure") is None)
        assert len(str(record["issues"])) + len(str(record.get("failure"))) < 200_000
    assert verdicts == {True, False}


def run(form: str, mode: Any, saver: Any, name: str, output: Any, **options: Any) -> Any:
    """Let a model give one output, answer the review if there is one, and return the end."""

    def model(params: Any) -> Any:
        if params["n"] == 1:
            return '{"n": 1}'
        if isinstance(output, Exception):
            raise output
        return output

    options = {"output": dict[str, int], "feedback": "full", **options}
    graph = one_call(form, mode, mode.colour(model), saver, **options)
    done = mode.invoke(graph, {"params": {"n": 0, "prompt": "Count."}}, thread(name))
    for review in reviews(mode, graph, thread(name)):
        assert review.failure["kind"]
        assert review.error
        done = answer(mode, graph, thread(name), edit(n=1))
        assert done["output"] == {"n": 1}
    return done


def test_hundreds_of_outputs_through_the_engine(form: str, mode: Any) -> None:
    """Each run ends with an output: at once, or after the answer to the one review it opened."""
    chance, saver = random.Random(13), InMemorySaver()
    for number in range(100):
        assert "output" in run(form, mode, saver, str(number), odd_output(chance))


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


def test_odd_outputs_on_every_storage(form: str, mode: Any, checkpointer: Any) -> None:
    """What cannot be dumped, spelled or stored still ends in a review that can be answered."""
    for name, output in NAMED.items():
        budget = Budget(tokens=10)
        done = run(form, mode, checkpointer, name, output, auto_retries=1, budget=budget)
        assert done["output"] == {"n": 1}
