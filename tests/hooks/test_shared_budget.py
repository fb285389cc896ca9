"""One budget for many calls: what they spend together stops automation, and never a person."""

import re
import threading

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import graph_retry.threads
from graph_retry import (
    AttemptsExhausted,
    Completion,
    approve,
    edit,
    pending_reviews,
    respond,
    retry_llm_call,
)
from graph_retry.hooks import Budget, SharedBudget
from graph_retry.testing import ScriptedLLM
from tests.loops import Model, answer, one_call, refused, reviews, thread

USAGE = {"input_tokens": 60, "output_tokens": 40, "total_tokens": 100}


def bump(error, attempt, params):
    """Change something, so that only a budget stops automation."""
    return {**params, "n": params["n"] + 1}


def spending():
    """Make a model that fails below 1,000, in a new way each time, and tells its usage."""
    return Model(
        lambda params: Completion(
            f'{{"n": {params["n"]}}}' if params["n"] >= 1_000 else f'{{"n": "{params["n"]}x"}}',
            USAGE,
        )
    )


def run(mode, graph, name, n=0):
    """Start a call in a thread of its own; return its open reviews."""
    mode.invoke(graph, {"params": {"n": n}}, thread(name))
    return reviews(mode, graph, thread(name))


LIMITS = [
    ({"tokens": 300}, "the budget of 300 tokens is spent (300)"),
    ({"cost": 0.75, "price": lambda attempt: 0.25}, "the budget of 0.75 is spent (0.75)"),
]


@pytest.mark.parametrize(("limits", "note"), LIMITS)
def test_all_calls_given_the_same_object_spend_from_it(form, mode, limits, note):
    """Two spend it up; the next call asks a person before it pays, and the decision is obeyed."""
    model, batch = spending(), SharedBudget(**limits)
    graphs = [
        one_call(
            form, mode, model, InMemorySaver(), mode.colour(bump),
            auto_retries=1, budget=batch, name=name,
        )
        for name in ("first", "second", "third")
    ]  # fmt: skip
    (review,) = run(mode, graphs[0], "1")
    assert "1 automatic retry did not help" in review.value["note"]
    (review,) = run(mode, graphs[1], "2")
    assert note in review.value["note"]
    assert len(model.calls) == 3

    (review,) = run(mode, graphs[2], "3", 1_000)
    assert len(model.calls) == 3, "the third call is not even begun"
    failure = (review.failure["type"], review.failure["kind"])
    assert failure == ("BudgetExceededError", "permanent")
    assert f"{note}; no call is made unless a reviewer decides to" in review.error
    assert answer(mode, graphs[2], thread("3"), approve())["output"] == {"n": 1_000}
    assert len(model.calls) == 4


def test_equal_budgets_that_are_not_the_same_object_are_apart(form, mode):
    """Neither a name in common nor equal limits make two calls share anything."""
    model = Model(lambda params: "no")
    for number, budget in enumerate([SharedBudget(tokens=1, failures=1) for _ in range(3)]):
        graph = one_call(form, mode, model, InMemorySaver(), budget=budget, name="extract")
        run(mode, graph, str(number))
    assert len(model.calls) == 3
    assert SharedBudget() != SharedBudget()
    assert Budget(tokens=1) == Budget(tokens=1)


def test_an_attempt_counts_once_however_often_its_thread_is_resumed(form, mode):
    """Failing hooks, bad answers and resumes repeat steps, and never what an attempt has spent."""
    broken, model, batch = [True], spending(), SharedBudget(tokens=300, failures=3)

    def hook(error, attempt, params):
        if broken:
            raise KeyError("typo")

    graph = one_call(form, mode, model, InMemorySaver(), mode.colour(hook), budget=batch)
    for _ in range(3):
        with pytest.raises(KeyError):
            mode.invoke(graph, None if model.calls else {"params": {"n": 0}}, thread())
    broken.clear()
    mode.invoke(graph, None, thread())
    for _ in range(3):
        refused(mode, graph, thread(), "nonsense")
    assert len(model.calls) == 1
    assert batch.refused() is None
    answer(mode, graph, thread(), edit(n=1))
    assert batch.refused() is None
    answer(mode, graph, thread(), edit(n=2))
    assert len(model.calls) == 3
    assert re.search(r"300 tokens is spent \(300\)", batch.refused())


def test_after_a_restart_a_call_counts_its_own_ledger_again(form, mode):
    """The new process has a new object: other calls' parts are gone, the call's own is not."""
    model, checkpointer = spending(), InMemorySaver()

    def process():
        return one_call(form, mode, model, checkpointer, budget=SharedBudget(tokens=350))

    graph = process()
    run(mode, graph, "other")
    run(mode, graph, "1")
    answer(mode, graph, thread("1"), edit(n=2))
    graph = process()
    answer(mode, graph, thread("1"), edit(n=3))
    (review,) = reviews(mode, graph, thread("1"))
    assert review.value["note"] is None, "its own 300, and nothing of the other call"
    answer(mode, graph, thread("1"), edit(n=4))
    (review,) = reviews(mode, graph, thread("1"))
    assert review.value["note"] == "the budget of 350 tokens is spent (400)"


def test_what_records_left_to_checkpoints_had_spent_counts_after_a_restart(mode):
    """A shared budget reads earlier attempts back from where they are kept."""
    checkpointer, padding = InMemorySaver(), " " * 3_000
    model = Model(lambda params: Completion(f'{{"n": "{params["n"]}x"}}{padding}', USAGE))
    graph = one_call("node", mode, model, checkpointer, budget=SharedBudget(tokens=450))
    run(mode, graph, "1")
    for n in (1, 2, 3):
        answer(mode, graph, thread("1"), edit(n=n))
    graph = one_call("node", mode, model, checkpointer, budget=SharedBudget(tokens=450))
    answer(mode, graph, thread("1"), edit(n=4))
    (review,) = reviews(mode, graph, thread("1"))
    assert "the budget of 450 tokens is spent (500)" in review.value["note"]


def test_rounds_are_those_of_all_calls(form, mode):
    """After two edits in one thread, another may only be answered or given up."""
    model, batch = spending(), SharedBudget(rounds=2)
    graph = one_call(form, mode, model, InMemorySaver(), budget=batch)
    run(mode, graph, "1")
    for n in (1, 2):
        answer(mode, graph, thread("1"), edit(n=n))
    (review,) = run(mode, graph, "2")
    assert review.value["review_configs"][0]["allowed_decisions"] == ["reject", "respond"]
    assert answer(mode, graph, thread("2"), respond({"n": 1}))["output"] == {"n": 1}


def test_a_batch_with_nobody_to_ask_stops_paying():
    """With `review=False` each further call ends `exhausted` without a request."""
    batch, options = SharedBudget(seconds=1e-9), {"review": False, "output": int}
    with ScriptedLLM("1") as llm:
        assert retry_llm_call(llm, {"page": 0}, budget=batch, **options) == 1
        for page in (1, 2):
            with pytest.raises(AttemptsExhausted, match="model seconds is spent"):
                retry_llm_call(llm, {"page": page}, budget=batch, **options)


def test_many_threads_spend_exactly_what_they_spend():
    """No call of eight threads is lost or counted twice."""
    batch = SharedBudget(tokens=80 * 100 + 1)

    def work():
        for page in range(10):
            retry_llm_call(lambda _: Completion("1", USAGE), {"page": page}, budget=batch)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert batch.refused() is None
    retry_llm_call(lambda _: Completion("1", USAGE), {}, budget=batch)
    assert re.search(r"\(8100\)", batch.refused())


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock of the circuit breaker."""
    now = [1_000.0]

    class Clock:
        monotonic = staticmethod(lambda: now[0])

    monkeypatch.setattr("graph_retry.hooks._budget.time", Clock)
    return now


def test_the_circuit_opens_across_threads_and_closes_after_its_cool_down(form, mode, clock):
    """Three failures in a row stop the calls of all threads until the minute is over."""
    model, batch = Model(lambda params: params["answer"]), SharedBudget(failures=3, cool_down=60)
    graphs = [
        one_call(form, mode, model, InMemorySaver(), budget=batch, name=name) for name in "ab"
    ]

    def run(number, text="no"):
        graph = graphs[number % 2]
        return mode.invoke(graph, {"params": {"answer": text, "n": number}}, thread(str(number)))

    for number in range(3):
        run(number)
    assert len(model.calls) == 3
    for number in (3, 4):
        clock[0] += 29
        run(number)
        (review,) = reviews(mode, graphs[number % 2], thread(str(number)))
        assert "3 attempts failed in a row" in review.failure["message"]
        assert "is not retried automatically" in review.value["note"]
    assert len(model.calls) == 3, "refused calls are not made and do not keep the circuit open"

    clock[0] += 3
    run(5)
    run(6)
    assert len(model.calls) == 4, "the first call after the cool-down opens it again"
    clock[0] += 61
    assert run(7, '{"n": 1}')["output"] == {"n": 1}
    run(8)
    run(9)
    assert len(model.calls) == 7, "a success closes it"


def test_a_person_may_call_through_an_open_circuit(form, mode, clock):
    """The decision of a reviewer outweighs it; calls with other budgets are not concerned."""
    model = Model(lambda params: params["answer"])
    options = {"budget": SharedBudget(failures=1), "name": "extract"}
    graph = one_call(form, mode, model, InMemorySaver(), **options)
    mode.invoke(graph, {"params": {"answer": "no"}}, thread())
    state = answer(mode, graph, thread(), edit(answer='{"n": 1}'))
    assert state["output"] == {"n": 1}

    mode.invoke(graph, {"params": {"answer": "no"}}, thread("2"))
    options["budget"] = SharedBudget(failures=1)
    other = one_call(form, mode, model, InMemorySaver(), **options)
    mode.invoke(other, {"params": {"answer": "no"}}, thread("3"))
    assert len(model.calls) == 4


@pytest.mark.parametrize("how", ["edited in state", "rewind"])
def test_a_person_who_does_not_answer_the_review_may_call_as_well(mode, how):
    """Whoever changes the params is a person: in the state of an open review, or by `rewind`."""
    model = Model(
        lambda params: Completion("3" if params["n"] else "no", usage={"total_tokens": 300})
    )
    options = {"output": int, "budget": SharedBudget(tokens=200)}
    graph = one_call("node", mode, model, InMemorySaver(), **options)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    if how == "rewind":
        state = mode.call(
            graph_retry.threads, "rewind", graph, thread(), attempt=1, params={"n": 1}
        )
    else:
        (task,) = mode.call(graph, "get_state", thread(), subgraphs=True).tasks
        mode.call(graph, "update_state", task.state.config, {"params": {"n": 1}})
        state = mode.invoke(graph, None, thread())
    assert (state["output"], len(model.calls)) == (3, 2)


def test_an_old_failure_that_is_told_again_does_not_open_the_circuit(clock):
    """Its own times decide: it ended before the success that closed the row."""
    records, batch = [], SharedBudget(failures=1)
    texts = iter(["no", "1"])
    graph = one_call(
        "function", None, lambda params: next(texts), InMemorySaver(),
        output=int, on_attempt=records.append,
    )  # fmt: skip
    graph.invoke({"params": {"n": 0}}, thread())
    pending_reviews(graph, thread())[0].answer(approve())
    failed, succeeded = records
    batch.count(failed)
    assert re.search("1 attempt failed in a row", batch.refused())
    batch.count(succeeded, failed)
    assert batch.refused() is None
