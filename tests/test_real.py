"""Completions of a real model, recorded by `bench/real`, are read and gated as they were."""

from collections import Counter

import pytest

from bench.real.__main__ import asked_by, case_text, rows_of
from bench.real.families import COMPUTED, cases
from bench.real.lanes import ONCE
from bench.real.served import Served, Unasked
from graph_retry.hooks import Gate

RECORDED = Served(None, kept=None)


@pytest.mark.parametrize(
    ("lane", "n", "valid", "right"), [("free", 62, 40, 25), ("constrained", 61, 55, 32)]
)
def test_recorded_answers_are_read_as_they_were(lane, n, valid, right):
    """A change of reading or validation that changes a verdict about a real answer is seen."""
    rows = rows_of(RECORDED, ONCE[lane], [*cases()])
    assert len(rows) == n
    assert sum(outcome.is_valid for _, outcome in rows) == valid
    assert sum(outcome.is_right for _, outcome in rows) == right


def test_the_gate_catches_what_it_caught():
    """Of constrained, valid answers: how many have doubts about their values, and are wrong."""
    rows = rows_of(RECORDED, ONCE["constrained"], [*cases()])
    gate = Gate(confidence=0.9, of="input", input=case_text, computed=COMPUTED)
    found = Counter(asked_by(gate, rows))
    # (is wrong, a person is asked)
    assert found == {
        (True, True): 14,
        (True, False): 9,
        (False, True): 3,
        (False, False): 29,
    }


def test_mistakes_of_whole_answers_are_named():
    """The model wrote its values into the schema, for which one issue is told."""
    rows = rows_of(RECORDED, ONCE["free"], [*cases()])
    codes = Counter(
        issue["code"] for _, outcome in rows for issue in outcome.attempts[-1]["issues"]
    )
    assert codes["framed"] == 7


def test_a_request_that_is_not_recorded_is_no_answer():
    """Without a model nothing is made up."""
    with pytest.raises(Unasked):
        RECORDED.ask([{"role": "user", "content": "never asked"}])
