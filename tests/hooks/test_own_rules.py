"""Budgets, lessons and gates that somebody else writes, on public names alone."""

import json

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from graph_retry import AttemptsExhausted, Completion, edit, pending_reviews, resume, retry_llm_call
from graph_retry.hooks import Budget, BudgetRule, LessonsRule, Taught


class Model:
    """Gives its answers in turn, and remembers what it was sent."""

    def __init__(self, *answers):
        """Keep the answers."""
        self.answers, self.seen = [*answers], []

    def __call__(self, params):
        """Give the next answer."""
        self.seen.append(params)
        return self.answers.pop(0)


LARGE = "word " * 2_000
"""An answer that is too large to stay in state, so that its record becomes a stub."""


class Sevens(BudgetRule):
    """Allows seven tokens; counts what it is asked and told."""

    def __init__(self, *, sums=True):
        """Keep sums, or read all records each time."""
        self.sums, self.told, self.seen = sums, set(), []

    def spent_on(self, attempts, before=None):
        """Add up the tokens."""
        if not self.sums:
            return None
        return {"all": (before or {"all": 0})["all"] + self._tokens(attempts)}

    def exceeded(self, attempts, before=None):
        """Stop at seven tokens."""
        spent = (before or {"all": 0})["all"] + self._tokens(attempts)
        self.seen.append(spent)
        return f"seven tokens are spent ({spent})" if spent >= 7 else None

    def count(self, *attempts):
        """Note the keys."""
        self.told.update(attempt["idempotency_key"] for attempt in attempts)

    @staticmethod
    def _tokens(attempts):
        return sum(attempt["usage"]["total_tokens"] for attempt in attempts)


class Again:
    """A hook that tries other means after each failure."""

    new_means = True

    def __call__(self, error, attempt, params):
        """Change the params."""
        return {"prompt": f"try {attempt}"}


def flow_of(model, **options):
    """Return a workflow of one call whose answer must be a number."""

    @entrypoint(checkpointer=InMemorySaver())
    def flow(prompt):
        return retry_llm_call(model, {"prompt": prompt}, output=int, **options)

    return flow


CONFIG = {"configurable": {"thread_id": "1"}}


@pytest.mark.parametrize("sums", [True, False])
def test_a_budget_of_ones_own_is_as_good_as_ours(sums):
    """It counts every attempt once, also those that left state, and a person goes on after it."""
    usage = {"total_tokens": 2}
    answers = [*(Completion(f"{n} {LARGE}", usage=usage) for n in "abcd"), "5"]
    model, own = Model(*answers), Sevens(sums=sums)
    flow = flow_of(model, on_retry=Again(), auto_retries=9, budget=own)
    flow.invoke("Hi", CONFIG)
    (review,) = pending_reviews(flow, CONFIG)
    assert "seven tokens are spent (8)" in review.value["description"]
    assert (len(model.seen), own.seen, len(own.told)) == (4, [2, 4, 6, 8], 4)
    assert resume(flow, CONFIG, edit(prompt="now")) == 5


class Closed(BudgetRule):
    """Allows no call without a person, and no second attempt."""

    def exceeded(self, attempts, before=None):
        """Never stop."""

    def refused(self):
        """Refuse."""
        return "closed on Sundays"

    def used_up(self, attempts, before=None):
        """Allow no further attempt."""
        return "one attempt is enough"


def test_a_budget_refuses_calls_and_decisions():
    """No call is made without a person, and a question offers what the budget leaves."""
    model = Model()
    flow = flow_of(model, budget=Closed())
    flow.invoke("Hi", CONFIG)
    (review,) = pending_reviews(flow, CONFIG)
    assert model.seen == []
    assert review.value["failure"]["message"] == "closed on Sundays"
    assert "one attempt is enough" in review.value["description"]
    assert set(review.allowed_decisions) == {"reject", "respond"}


def test_what_is_no_budget_is_refused():
    """An object without the methods is told what to give, before any call."""
    with pytest.raises(TypeError, match="your own `BudgetRule`"):
        retry_llm_call(Model(), "Hi", budget=object())
    with pytest.raises(TypeError, match="your own `BudgetRule`"):
        retry_llm_call(Model(), "Hi", budget=Budget)


def test_an_error_of_a_budget_names_it():
    """The user sees which of the functions was wrong."""

    class Broken(BudgetRule):
        def exceeded(self, attempts, before=None):
            raise KeyError("prices")

    with pytest.raises(KeyError) as raised:
        retry_llm_call(Model("no"), "Hi", output=int, review=False, budget=Broken())
    assert "`budget`" in raised.value.__notes__[0]


class Motto(LessonsRule):
    """Tells the failures of earlier calls as they are."""

    known = ({"why": "too long"},)

    @property
    def reducer(self):
        """Keep all."""
        return joined

    def learned(self, step, attempts):
        """Learn the kinds of failures."""
        return [{"why": one["failure"]["kind"]} for one in attempts if one["failure"]]

    def add_to(self, params, window):
        """Write them before the prompt."""
        told = json.dumps([lesson["why"] for lesson in window])
        return Taught({"prompt": f"{told} {params['prompt']}"}, "a motto")


def joined(window, new):
    """Join lessons, each once."""
    known = [*(window or [])]
    return known + [lesson for lesson in new or [] if lesson not in known]


def test_lessons_of_ones_own_change_the_first_params():
    """They reach the model, and the ledger says why the params are other ones."""
    model = Model("no")
    with pytest.raises(AttemptsExhausted) as raised:
        retry_llm_call(model, {"prompt": "Hi"}, output=int, review=False, lessons=Motto())
    assert [params["prompt"] for params in model.seen] == ['["too long"] Hi']
    (attempt,) = raised.value.attempts
    assert (attempt["author"], attempt["reason"]) == ("lessons", "a motto")
    told = {each["why"] for each in raised.value.lessons}
    assert (len(raised.value.lessons), told) == (2, {"too long", "invalid_syntax"})


def test_a_gate_of_ones_own_puts_its_verdict_into_the_ledger():
    """A function that returns a verdict is a gate."""

    def gate(attempt):
        return {"ask": True, "sampled": False, "confidence": 0.2, "needed": 0.5}

    flow = flow_of(Model("5"), review=gate)
    flow.invoke("Hi", CONFIG)
    (review,) = pending_reviews(flow, CONFIG)
    assert review.history[-1]["gate"]["confidence"] == 0.2
