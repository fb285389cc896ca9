"""Budgets of one call: every limit stops automation and never a person."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import Completion, approve, edit, respond
from graph_retry.hooks import Budget
from tests.loops import Model, answer, one_call, refused, reviews, thread

USAGE = {"input_tokens": 60, "output_tokens": 40, "total_tokens": 100}


def bump(error, attempt, params):
    """Change something, so that only a budget stops automation."""
    return {**params, "n": params["n"] + 1}


def spending(usage=USAGE):
    """Make a model that always fails, in a new way each time, and tells its usage."""
    return Model(lambda params: Completion(f'{{"n": "{params["n"]}x"}}', usage))


def run(form, mode, model, budget, **options):
    """Start a call that would retry automatically for long."""
    options = {"auto_retries": 9, "budget": budget, **options}
    graph = one_call(form, mode, model, InMemorySaver(), mode.colour(bump), **options)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    return graph


@pytest.mark.parametrize(
    ("budget", "note"),
    [
        (Budget(tokens=300), "the budget of 300 tokens is spent (300)"),
        (Budget(tokens=250), "the budget of 250 tokens is spent (300)"),
        (Budget(cost=0.75, price=lambda a: 0.25), "the budget of 0.75 is spent (0.75)"),
        (
            Budget(cost=3, price=lambda a: a["usage"]["output_tokens"] / 40),
            "the budget of 3 is spent (3)",
        ),
    ],
)
def test_a_spent_budget_goes_to_review_with_the_reason(form, mode, budget, note):
    """It is checked before the next call: three calls, then a person is asked."""
    model = spending()
    graph = run(form, mode, model, budget)
    assert len(model.calls) == 3
    (review,) = reviews(mode, graph, thread())
    assert note in review.value["note"]
    assert review.suggested_params == {"n": 3}


def test_a_total_is_at_least_the_sum_of_its_parts():
    """Some servers report a total of 0 beside the parts."""
    attempt = {"usage": {**USAGE, "total_tokens": 0}, "duration_s": 1.0, "decision": None}
    assert Budget().spent_on([attempt])["tokens"] == 100


def test_a_person_may_extend_a_spent_budget_by_one_attempt(form, mode):
    """An approval or an edit makes one more call, then the question comes back."""
    model = spending()
    graph = run(form, mode, model, Budget(tokens=200))
    assert len(model.calls) == 2
    answer(mode, graph, thread(), approve())
    answer(mode, graph, thread(), edit(n=50))
    assert [params["n"] for params in model.calls] == [0, 1, 2, 50]
    assert len(reviews(mode, graph, thread())) == 1


def test_model_seconds_count_and_a_persons_do_not(form, mode, monkeypatch):
    """Ten seconds in the model trip the budget; a year of waiting does not."""
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    model = spending()

    def slow(params):
        now[0] += 4.0
        return model(params)

    budget = Budget(seconds=10)
    graph = one_call(form, mode, mode.colour(slow), InMemorySaver(), budget=budget)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    for n in (1, 2):
        (review,) = reviews(mode, graph, thread())
        assert review.value["note"] is None
        now[0] += 31_536_000.0
        answer(mode, graph, thread(), edit(n=n))
    (review,) = reviews(mode, graph, thread())
    assert review.value["note"] == "the budget of 10 model seconds is spent (12.0)"


@pytest.mark.parametrize("budget", [Budget(tokens=1), Budget(cost=1, price=lambda attempt: None)])
def test_what_nobody_reports_is_unknown_and_trips_nothing(form, mode, budget):
    """No usage, no price: all automatic retries are made."""
    model = spending(usage=None)
    run(form, mode, model, budget, auto_retries=4)
    assert len(model.calls) == 5


def test_after_the_last_round_only_an_output_or_a_rejection_is_taken(form, mode):
    """`rounds` bounds how often reviewers may send the call round again."""
    model = spending()
    graph = run(form, mode, model, Budget(rounds=2), auto_retries=0)
    for n in (10, 20):
        answer(mode, graph, thread(), edit(n=n))
    (review,) = reviews(mode, graph, thread())
    assert review.value["review_configs"][0]["allowed_decisions"] == ["reject", "respond"]
    assert "the budget of 2 decisions is spent" in review.value["note"]
    assert "not allowed here: the budget of 2 d" in str(refused(mode, graph, thread(), approve()))
    assert len(model.calls) == 3
    assert answer(mode, graph, thread(), respond({"n": 1}))["output"] == {"n": 1}
