"""Completions of a real model, recorded by `bench/real`, are read and gated as they were."""

import gzip
import json
from collections import Counter
from functools import cache

import pytest

from bench.real.__main__ import asked_by, case_text, rows_of
from bench.real.contest import OURS, UNSEEN
from bench.real.families import COMPUTED, cases
from bench.real.lanes import ONCE, RETRIES
from bench.real.record import replayed
from bench.real.served import RECORDED as FILE
from bench.real.served import Served, Unasked
from graph_retry.hooks import Gate

RECORDED = Served(None, kept=None)


@cache
def once(name):
    """Return the recorded first answers of a lane."""
    return rows_of(RECORDED, ONCE[name], [*cases()])


@pytest.mark.parametrize(
    ("lane", "n", "valid", "right"), [("free", 62, 40, 25), ("constrained", 61, 55, 32)]
)
def test_recorded_answers_are_read_as_they_were(lane, n, valid, right):
    """A change of reading or validation that changes a verdict about a real answer is seen."""
    rows = once(lane)
    assert len(rows) == n
    assert sum(outcome.is_valid for _, outcome in rows) == valid
    assert sum(outcome.is_right for _, outcome in rows) == right


@pytest.mark.parametrize(
    ("lane", "valid", "right"),
    [("graph-retry, text", 58, 24), ("graph-retry, constrained", 65, 31)],
)
def test_two_requests_make_what_the_comparison_says(lane, valid, right):
    """On 72 inputs that nothing was chosen on, with feedback after a refused answer."""
    unseen = [case for case in cases(UNSEEN[1]) if case.number >= UNSEEN[0]]
    rows = rows_of(RECORDED, OURS[lane], unseen)
    assert len(rows) == 72
    assert sum(outcome.is_valid for _, outcome in rows) == valid
    assert sum(outcome.is_right for _, outcome in rows) == right


def test_the_gate_catches_what_it_caught():
    """Of constrained, valid answers: how many have doubts about their values, and are wrong."""
    rows = once("constrained")
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
    codes = Counter(
        issue["code"] for _, outcome in once("free") for issue in outcome.attempts[-1]["issues"]
    )
    assert codes["framed"] == 7


@pytest.mark.parametrize(
    ("lane", "right", "repeated"),
    [
        ("feedback with the type", 8, 0),
        ("the same, in messages", 8, 0),
        ("feedback as turns, with the wrong answer", 0, 20),
    ],
)
def test_feedback_earns_what_the_docs_say(lane, right, repeated):
    """Of 22 refused answers; in messages the default sends the same request as in a prompt."""
    refused = [case for case, outcome in once("free") if not outcome.is_valid]
    rows = rows_of(RECORDED, RETRIES[lane], refused, retried=True)
    same = [len({one["text"].strip() for one in outcome.answers}) == 1 for _, outcome in rows]
    assert (len(rows), sum(outcome.is_right for _, outcome in rows)) == (22, right)
    assert sum(same) == repeated


def test_the_file_has_only_what_is_replayed():
    """`bench.real.record` writes the same file again; nothing of an earlier form is left in it."""
    served = Served(None, kept=None)
    replayed(served, RECORDED)
    with gzip.open(FILE, "rt") as lines:
        assert {json.loads(line)["key"] for line in lines} == {*served.read}


def test_a_request_that_is_not_recorded_is_no_answer():
    """Without a model nothing is made up."""
    with pytest.raises(Unasked):
        RECORDED.ask([{"role": "user", "content": "never asked"}])
