"""Hostile answers: each is refused with a reason or applied, and the next good one works.

`FUZZED_ANSWERS=10000` sends that many to graphs.
"""

import json
import os
from collections import Counter
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

from graph_retry import AnswerRefused, CallCancelled, StaleDecision, edit
from graph_retry._core.review.effects import Accepted
from graph_retry._core.review.review_record import MAX_PROBLEM, Refused
from tests.hostile.fuzzed import Grumpy, any_answers, fuzzed, json_answers, looped, nested
from tests.loops import Model, answer, one_call, refused, reviews, thread
from tests.parts import draws
from tests.review.questions import judge, question

QUESTIONS = [
    question(seen_decisions=("d1",)),
    question({"n": 1, "nested": {"a": [1.0]}}, suggested={"n": 2, "nested": {"a": [2**60 + 1]}}),
    question("bare", output=None, locked=("value",)),
    question({"n": 1}, output=None),
]


@pytest.mark.drawn
@pytest.mark.parametrize("number", range(4))
@pytest.mark.slow
def test_thousands_of_answers_get_a_verdict(number: int) -> None:
    """No answer raises; a problem is short text, and what is accepted can be stored."""
    serde, verdicts, drawn = JsonPlusSerializer(), Counter[type](), draws(250, 2_500)

    @fuzzed(any_answers, drawn, start=number)
    def check(given: Any) -> None:
        verdict = judge(given, QUESTIONS[number])
        verdicts[type(verdict)] += 1
        if isinstance(verdict, Refused):
            assert 0 < len(verdict.problem) <= MAX_PROBLEM
        else:
            kept = [dict(verdict.decision), verdict.params, verdict.types]
            assert serde.loads_typed(serde.dumps_typed(kept)) == kept

    check()
    assert verdicts.total() >= drawn
    assert (
        min(verdicts[Accepted], verdicts[Refused]) >= drawn // 125
    )  # what is drawn differs by version


@pytest.mark.parametrize(
    ("given", "why"),
    [
        pytest.param(nested(10_000), "cannot be written as JSON", id="deep-list"),
        pytest.param({"type": "edit", "params": nested(10_000, dict)}, "as JSON", id="deep-edit"),
        pytest.param("[" * 100_000 + "]" * 100_000, "not valid JSON", id="deep-text"),
        pytest.param({"type": "edit", "params": {"n": nested(150)}}, "100 levels", id="deep-param"),
        pytest.param({"type": "respond", "output": "\ud800"}, "surrogates", id="surrogate"),
        pytest.param({"type": "reject", "message": "x" * 5_000_000}, "10,000", id="long-reason"),
        pytest.param("x" * 5_000_000, "neither a known word", id="long-text"),
        pytest.param({f"k{i}": 1 for i in range(100_000)}, "no `type`", id="many-keys"),
        pytest.param('{"type": "edit", "type": "approve"}', "given twice", id="two-types"),
        pytest.param('{"type": "edit", "params": {"n": NaN}}', "NaN is not", id="nan"),
        pytest.param(
            {"type": "approve", "attempt": 10**5_000}, "range of floats", id="huge-number"
        ),
        pytest.param(looped(), "as JSON", id="holds-itself"),
        pytest.param({"type": Grumpy()}, "as JSON", id="object"),
    ],
)
def test_a_bomb_is_refused_in_clear_words(given: Any, why: str) -> None:
    """Size, depth and odd types are problems that say what is wrong."""
    verdict = judge(given, QUESTIONS[3])
    assert isinstance(verdict, Refused)
    assert why in verdict.problem
    assert len(verdict.problem) <= MAX_PROBLEM


def test_problems_with_very_many_fields_are_not_all_listed() -> None:
    """The first twenty misspelt fields are enough to be told."""
    verdict = judge({"type": "edit", "params": {f"k{i}": i for i in range(5_000)}}, QUESTIONS[0])
    assert isinstance(verdict, Refused)
    assert verdict.problem.count("There is no field") <= 20


def sendable(given: Any) -> bool:
    """Tell whether a checkpointer can store an answer; text and JSON always can."""
    try:
        JsonPlusSerializer().dumps_typed(given)
        json.dumps(given)
    except (TypeError, ValueError):
        return False
    return True


STORABLE = [
    "", 0, [], {}, "x" * 1_000_000, "[" * 10_000 + "]" * 10_000, "\0", "\ud800", float("nan"),
    nested(200), {"type": "edit", "params": {"n": nested(120)}}, {"type": "nil"},
    {"type": "approve", "attempt": 9}, {"type": "respond", "output": "\0"}, [[1], [2]],
    {"type": "edit", "params": "\0\ud800"}, {"resume": {"resume": {"resume": None}}},
]  # fmt: skip
UNSTORABLE = [object(), looped(), nested(10_000), {"type": Grumpy()}, {"\ud800": 1}, 2**80, len]


@pytest.mark.parametrize("way", ["resume", "command"])
def test_a_review_outlives_hostile_answers(
    way: str, form: str, mode: Any, checkpointer: Any
) -> None:
    """Bad answers, one after another on one thread, are asked again; a good one ends the call."""
    model = Model()
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    for given in STORABLE:
        before = reviews(mode, graph, thread())[0].review_id
        if way == "resume":
            refused(mode, graph, thread(), given)
        elif given != {}:  # LangGraph takes an empty dict for no answer
            mode.invoke(graph, Command(resume=given), thread())
        (review,) = reviews(mode, graph, thread())
        assert given == {} or (review.problem and review.review_id != before)
    assert len(model.calls) == 1
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}
    assert len(model.calls) == 2


def test_null_leaves_the_question_open(form: str, mode: Any) -> None:
    """By its id it is refused; alone, LangGraph takes it for no answer or raises before it runs."""
    model = Model()
    graph = one_call(form, mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    with suppress(UnboundLocalError):  # LangGraph 1.2
        mode.invoke(graph, Command(resume=None), thread())
    (before,) = mode.invoke(graph, None, thread())["__interrupt__"]
    mode.invoke(graph, Command(resume={before.id: None}), thread())
    (review,) = reviews(mode, graph, thread())
    assert "The answer null is not a decision" in str(review.problem)
    assert len(model.calls) == 1
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}


def test_an_answer_that_cannot_be_stored_changes_nothing(
    form: str, mode: Any, checkpointer: Any
) -> None:
    """It is refused like any other or raises before anything is written; the review stays open."""
    model = Model()
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    for given in UNSTORABLE:
        try:
            answer(mode, graph, thread(), given)
        except AnswerRefused:
            pass
        except (TypeError, ValueError):
            assert not sendable(given)
        assert len(reviews(mode, graph, thread())) == 1
    assert len(model.calls) == 1
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}


def see(mode: Any, graph: Any, here: Any, given: Any) -> dict[str, Any] | None:
    """Run a thread on and return its one open question, or None if the call is over."""
    asked = mode.invoke(graph, given, here).get("__interrupt__", ())
    (question,) = [each.value for each in asked] or [None]
    return question


@pytest.mark.drawn
@pytest.mark.slow
def test_a_thousand_answers_to_a_graph(form: str, mode: Any) -> None:
    """A quarter of them each way: none hides the review, and the next good answer ends the call."""
    told, threads, model = Counter[str](), count(), Model()
    graph = one_call(form, mode, model, InMemorySaver())
    # LangGraph takes these two for no answer.
    taken = json_answers.filter(lambda given: given is not None and given != {})
    each_way = int(os.environ.get("FUZZED_ANSWERS", draws(200, 1_000))) // 4

    @fuzzed(taken, each_way, start=form + mode.name, smaller=False)
    def check(given: Any) -> None:
        here, before = thread(str(next(threads))), len(model.calls)
        asked: Any = see(mode, graph, here, {"params": {"n": 0}})
        try:
            now = see(mode, graph, here, Command(resume=given))
        except CallCancelled:
            now = None
        except (TypeError, ValueError, AnswerRefused):
            assert not sendable(given)
            now = {"attempt_count": len(model.calls) - before, "problem": "not stored"}
        made = len(model.calls) - before
        verdict = "over" if now is None else ("refused", "again")[now["attempt_count"] - 1]
        told[verdict] += 1
        assert made <= 2
        if now is None:
            return
        assert now["attempt_count"] == made
        assert now.get("review_id") != asked["review_id"]
        assert verdict == "again" or 0 < len(now["problem"]) <= MAX_PROBLEM
        assert len(reviews(mode, graph, here)) == 1
        assert see(mode, graph, here, Command(resume={"type": "edit", "params": {"n": 1}})) is None

    check()
    assert told.total() >= each_way
    assert min(told["over"], told["again"], told["refused"]) >= each_way // 50


@pytest.mark.drawn
def test_three_hundred_answers_by_resume(form: str, mode: Any) -> None:
    """Also of any Python value: the thread waits, ends, or was told to stop: it is never stuck."""
    graph, threads = one_call(form, mode, Model(), InMemorySaver()), count()
    drawn = draws(15, 75)

    @fuzzed(any_answers, drawn, start=form + mode.name, smaller=False)
    def check(given: Any) -> None:
        here, done = thread(str(next(threads))), None
        mode.invoke(graph, {"params": {"n": 0}}, here)
        try:
            done = answer(mode, graph, here, given)
        except CallCancelled:
            return
        except AnswerRefused:
            assert len(reviews(mode, graph, here)) == 1
        except (TypeError, ValueError, StaleDecision):
            assert not sendable(given) or "review_id" in given
        for review in reviews(mode, graph, here):
            assert review.params is not None
            done = answer(mode, graph, here, {"type": "edit", "params": {"n": 1}})
        assert done is not None
        assert done.get("output") == {"n": 1} or "status" in done or "output" in done

    check()
    assert next(threads) >= drawn
