"""Random loops: whatever happened, a replay reproduces it and a rewind costs what comes after."""

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from graph_retry import (
    AnswerRefused,
    Completion,
    approve,
    edit,
    pending_reviews,
    reject,
    respond,
    resume,
    retry_llm_call,
)
from graph_retry.data import replay
from graph_retry.threads import attempts_of, rewind
from tests.loops import Model, State, one_call, thread
from tests.parts import draws

pytestmark = pytest.mark.drawn


class AuthenticationError(Exception):
    """A failure nothing but a person helps with."""


OUTCOMES = {
    "good": '{"n": 1}',
    "fenced": '```json\n{"n": 1,}\n```',
    "coerced": {"n": "2"},
    "wrong": '{"n": "many"}',
    "broken": "no JSON here",
    "cut off": Completion('{"n": [1, 2', finish_reason="length"),
    "filtered": Completion('{"n": 1}', finish_reason="content_filter"),
    "object": object(),
    "slow": TimeoutError("30 s"),
    "denied": AuthenticationError("no key"),
}
NUMBERS = st.integers(0, 9)
STEPS = st.one_of(
    st.just(("approve",)),
    st.tuples(st.just("edit"), NUMBERS),
    st.tuples(st.just("again"), NUMBERS, NUMBERS),
    st.tuples(st.just("instead"), NUMBERS, NUMBERS),
)
LOOPS = st.fixed_dictionaries(
    {
        "table": st.lists(
            st.sampled_from(sorted(OUTCOMES)), min_size=10, max_size=10
        ),
        "hooked": st.integers(1, 3),
        "auto": st.integers(0, 2),
        "steps": st.lists(STEPS, max_size=4),
        "last": st.sampled_from(["paused", "reject", "respond"]),
    }
)  # fmt: skip
SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


class Loop:
    """One random loop: its graph, its model, and how it is driven."""

    def __init__(self, form, plan):
        def answer(params):
            outcome = OUTCOMES[plan["table"][params["n"]]]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        def hook(error, attempt, params):
            moved = {**params, "n": (params["n"] + 1) % 10}
            return moved if params["n"] % plan["hooked"] == 0 else None

        self.model, self.hook = Model(answer), hook
        self.options = {"output": dict[str, int], "auto_retries": plan["auto"], "name": "count"}
        self.graph = one_call(form, None, self.model, InMemorySaver(), hook, **self.options)
        self.graph.invoke({"params": {"n": 0}}, thread())
        for step in plan["steps"]:
            if not self.is_paused():
                break
            with suppress(AnswerRefused):
                self.take(*step)
        if self.is_paused() and plan["last"] == "respond":
            self.answer(respond({"n": 5}))

    def is_paused(self):
        return bool(pending_reviews(self.graph, thread()))

    def attempts(self):
        (ledger,) = [each for each in attempts_of(self.graph, thread()) if each.current]
        return ledger.attempts

    def answer(self, decision):
        resume(self.graph, thread(), decision)

    def take(self, kind, *numbers):
        """Apply one step of the plan to the open review."""
        at = 1 + numbers[0] % len(self.attempts()) if numbers else 0
        if kind == "approve":
            self.answer(approve())
        elif kind == "edit":
            self.answer(edit(n=numbers[0]))
        elif kind == "again":
            rewind(self.graph, thread(), attempt=at, params={"n": numbers[1]})
        else:
            rewind(self.graph, thread(), attempt=at, decision=edit(n=numbers[1]))


@settings(max_examples=draws(20, 250), suppress_health_check=SLOW)
@given(plan=LOOPS)
def test_a_replay_reproduces_every_ledger_without_a_call(form, plan):
    """Loops of each form: random failures, hooks, decisions and forks."""
    loop = Loop(form, plan)
    calls, attempts = len(loop.model.calls), loop.attempts()

    replayed = replay(attempts, loop.hook, check=True, **loop.options)

    assert [each.attempt for each in replayed] == attempts
    assert [each["number"] for each in attempts] == [*range(1, len(attempts) + 1)]
    assert len(loop.model.calls) == calls
    keys = [each["idempotency_key"] for each in attempts]
    assert len(set(keys)) == len(keys)


@settings(max_examples=draws(20, 250), suppress_health_check=SLOW)
@given(plan=LOOPS, number=NUMBERS)
def test_a_rewind_to_every_attempt_costs_the_calls_after_it(form, plan, number):
    """Earlier attempts stay as they are; the fork is the first new record and says so."""
    loop = Loop(form, plan)
    for attempt in range(len(loop.attempts()), 0, -1):
        before, calls = loop.attempts(), len(loop.model.calls)
        rewind(loop.graph, thread(), attempt=attempt, params={"n": number}, reason="try")
        after = loop.attempts()
        assert len(loop.model.calls) - calls == len(after) - (attempt - 1)
        assert after[: attempt - 1] == before[: attempt - 1]
        assert (after[attempt - 1]["author"], after[attempt - 1]["reason"]) == ("rewind", "try")
        assert loop.model.calls[calls]["n"] == number
        assert not {a["idempotency_key"] for a in after[attempt - 1 :]} & {
            a["idempotency_key"] for a in before
        }


@settings(max_examples=draws(10, 40), suppress_health_check=SLOW)
@given(plan=LOOPS, number=NUMBERS)
def test_an_old_review_is_answered_differently_without_a_call(plan, number):
    """Rejecting or responding at an earlier review ends the call there; it may have been over."""
    loop = Loop("node", plan)
    failed = [a["number"] for a in loop.attempts() if a["status"] == "failed"]
    for attempt in reversed(failed):
        calls = len(loop.model.calls)
        decision = reject("no") if number % 2 else respond({"n": number})
        state = rewind(loop.graph, thread(), attempt=attempt, decision=decision)
        assert state["status"] == ("cancelled" if number % 2 else "succeeded")
        assert len(state["attempts"]) == attempt
        assert state["attempts"][-1]["decision"]["author"] == "rewind"
        assert len(loop.model.calls) == calls
        numbers = [each["number"] for each in state["attempts"]]
        assert all(b - a == 1 for a, b in pairwise(numbers))


CITIES = ["Paris", "Rome", "Oslo", "Bern"]
CALLS = st.fixed_dictionaries(
    {
        "table": st.lists(st.sampled_from(sorted(OUTCOMES)), min_size=10, max_size=10),
        "hooked": st.integers(1, 3),
        "decisions": st.lists(st.one_of(st.none(), NUMBERS), max_size=3),
    }
)  # fmt: skip


class Together:
    """Calls of one node, which starts them in another order each time, answered to the end."""

    def __init__(self, plans, draw):
        def answer(params):
            outcome = OUTCOMES[plans[params["item"]]["table"][params["n"]]]
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        def hook(error, attempt, params):
            moved = {**params, "n": (params["n"] + 1) % 10}
            return moved if params["n"] % plans[params["item"]]["hooked"] == 0 else None

        def node(state):
            results = {}
            for item in draw.sample(sorted(plans), len(plans)):
                results[item] = retry_llm_call(self.model, {"item": item, "n": 0}, hook, **options)
            return {"output": [results[item] for item in sorted(plans)]}

        self.model = Model(answer)
        options = {
            "output": dict[str, int],
            "auto_retries": 1,
            "max_attempts": 30,
            "name": "count",
        }
        builder = StateGraph(State).add_node("all", node).add_edge(START, "all")
        self.graph = builder.compile(checkpointer=InMemorySaver())
        self.graph.invoke({"params": None}, thread())
        left = {item: list(plan["decisions"]) for item, plan in plans.items()}
        decided = {}
        while open_ := pending_reviews(self.graph, thread()):
            for review in open_:
                if review.review_id not in decided:
                    decisions = left[review.params["item"]]
                    decided[review.review_id] = decision(decisions.pop(0) if decisions else "last")
            answers = {review.review_id: decided[review.review_id] for review in open_}
            with suppress(AnswerRefused):
                resume(self.graph, thread(), answers=answers)
        self.output = self.graph.get_state(thread()).values["output"]

    def calls_of(self, item):
        """List the params of a call's model calls."""
        return [params for params in self.model.calls if params["item"] == item]

    def story_of(self, item):
        """Tell a call's ledger without times and keys."""
        for ledger in attempts_of(self.graph, thread()):
            if ledger.current and ledger.params_at(1)["item"] == item:
                kept = ("number", "status", "author", "reason", "params_patch", "raw", "failure")
                return [{key: attempt[key] for key in kept} for attempt in ledger.attempts]
        return None


def decision(planned):
    """Return the decision that a plan means: an edit by number, or a retry, or the end."""
    if planned == "last":
        return respond({"n": 5})
    return approve() if planned is None else edit(n=planned)


@settings(max_examples=draws(10, 100), suppress_health_check=SLOW)
@given(plans=st.lists(CALLS, min_size=2, max_size=4), draw=st.randoms(use_true_random=False))
@pytest.mark.slow
def test_calls_started_in_random_order_go_as_each_would_alone(plans, draw):
    """Each has the model calls, the ledger and the result that it has as a node's only call."""
    named = dict(zip(CITIES, plans, strict=False))
    together = Together(named, draw)
    for place, (item, plan) in enumerate(sorted(named.items())):
        alone = Together({item: plan}, draw)
        assert together.output[place] == alone.output[0]
        assert together.calls_of(item) == alone.calls_of(item)
        assert together.story_of(item) == alone.story_of(item)
