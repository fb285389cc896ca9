"""Transport: transient tries inside one attempt, time limits, and what a late answer does."""

import asyncio
import threading

import httpx
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import RetryPolicy

from graph_retry import AttemptContext, aretry_llm_call, retry_llm_call
from tests.loops import Model, answer, one_call, reviews, thread

AT_ONCE = RetryPolicy(max_attempts=3, initial_interval=0.0, jitter=False)


def failing(times, error=None):
    """Make a model that fails some times before it answers."""
    left = [times]

    def reply(params):
        left[0] -= 1
        if left[0] >= 0:
            raise error or ConnectionError(f"gone {left[0]}")
        return '{"n": 1}'

    return Model(reply)


def test_transient_tries_are_one_attempt_and_are_counted(form, mode, checkpointer):
    """Two lost connections and an answer: one record, three tries, no hook, no review."""
    model, records, hooks = failing(2), [], []
    graph = one_call(
        form, mode, model, checkpointer, mode.colour(lambda *args: hooks.append(args)),
        transient=AT_ONCE, on_attempt=mode.colour(records.append),
    )  # fmt: skip
    state = mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert state["output"] == {"n": 1}
    assert [(record["number"], record["tries"]) for record in records] == [(1, 3)]
    assert (len(model.calls), hooks) == (3, [])


def test_after_the_last_try_it_is_a_failed_attempt_like_any_other(form, mode, checkpointer):
    """The failure is in the record, hooks are asked, and nothing else is done again."""
    model, records, hooks = failing(4), [], []

    def hook(error, attempt, params):
        hooks.append((attempt, error.kind))
        return {"n": attempt}

    graph = one_call(
        form, mode, model, checkpointer, mode.colour(hook),
        transient=AT_ONCE, on_attempt=mode.colour(records.append), auto_retries=1,
    )  # fmt: skip
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert [(r["tries"], r["status"]) for r in records] == [(3, "failed"), (2, "succeeded")]
    assert hooks == [(1, "transient")]
    assert [params["n"] for params in model.calls] == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("error", [ValueError("bad input"), PermissionError("no key")])
def test_only_transient_failures_are_tried_again(form, mode, error):
    """Another error ends the attempt at its first try."""
    model = failing(1, error)
    graph = one_call(form, mode, model, InMemorySaver(), transient=AT_ONCE)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert len(model.calls) == 1
    assert len(reviews(mode, graph, thread())) == 1


def test_without_a_policy_nothing_is_sent_twice(form, mode):
    """A blind retry needs the caller's word (I2)."""
    model = failing(1)
    graph = one_call(form, mode, model, InMemorySaver(), auto_retries=5)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert len(model.calls) == 1


def test_retry_after_is_waited_for(mode, monkeypatch):
    """The provider's wish comes before the next try, on top of the policy's own pause."""
    request = httpx.Request("POST", "http://127.0.0.1/v1")
    limited = httpx.Response(429, headers={"retry-after": "7"}, request=request)
    waits = []

    async def asleep(seconds):
        waits.append(seconds)

    monkeypatch.setattr("graph_retry._core.ground.functions.awaiting.time.sleep", waits.append)
    monkeypatch.setattr("graph_retry._core.ground.functions.awaiting.asyncio.sleep", asleep)
    model = failing(1, httpx.HTTPStatusError("slow down", request=request, response=limited))
    graph = one_call("function", mode, model, InMemorySaver(), transient=AT_ONCE)
    assert mode.invoke(graph, {"params": {"n": 0}}, thread())["output"] == {"n": 1}
    assert 7.0 in waits


def test_a_sync_call_that_overruns_is_left_behind_and_its_late_answer_dropped():
    """The failure names the limit; what the thread gives later reaches nobody."""
    release, workers, late = threading.Event(), [], []

    def slow(params):
        if params["n"] == 0:
            workers.append(threading.current_thread())
            release.wait(10)
            late.append("too late")
            return '{"n": 999}'
        return '{"n": 1}'

    records = []
    done = retry_llm_call(
        slow, {"n": 0}, lambda error, attempt, params: {"n": 1},
        output=dict[str, int], timeout=0.5, auto_retries=1, on_attempt=records.append,
    )  # fmt: skip
    assert done == {"n": 1}
    assert records[0]["failure"] == {
        "kind": "transient",
        "type": "TimeoutError",
        "message": "no result within 0.5 s",
    }
    release.set()
    workers[0].join(30)
    assert late == ["too late"]
    assert [record["raw"] for record in records] == [None, {"text": '{"n": 1}'}]


def test_an_async_call_that_overruns_is_cancelled():
    """Its own `finally` runs before the next attempt starts."""
    story = []

    async def slow(params):
        story.append(f"start {params['n']}")
        try:
            if params["n"] == 0:
                await asyncio.Event().wait()
        finally:
            story.append(f"end {params['n']}")
        return '{"n": 1}'

    call = aretry_llm_call(
        slow, {"n": 0}, lambda error, attempt, params: {"n": 1},
        output=dict[str, int], timeout=0.5, auto_retries=1,
    )  # fmt: skip
    assert asyncio.run(call) == {"n": 1}
    assert story == ["start 0", "end 0", "start 1", "end 1"]


def test_a_time_limit_is_per_try_and_a_call_may_know_it(form, mode):
    """The context holds the deadline; a time-out is transient and may be tried again."""
    seen = []

    def call(params, context: AttemptContext):
        seen.append(context.deadline)
        if len(seen) < 3:
            raise TimeoutError
        return '{"n": 1}'

    graph = one_call(form, mode, mode.colour(call), InMemorySaver(), timeout=30, transient=AT_ONCE)
    assert mode.invoke(graph, {"params": {"n": 0}}, thread())["output"] == {"n": 1}
    assert len(seen) == 3
    assert seen[0] < seen[1] < seen[2]


def test_a_persons_retry_of_a_transient_failure_gets_its_tries_too(form, mode):
    """The policy holds for every attempt, whoever asked for it."""
    model = failing(5)
    graph = one_call(form, mode, model, InMemorySaver(), transient=AT_ONCE)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert answer(mode, graph, thread(), "approve")["output"] == {"n": 1}
    assert len(model.calls) == 6


def test_tries_of_one_attempt_have_one_beginning_and_one_key(form, mode, checkpointer):
    """LangGraph runs the step again for each try, and yet the attempt begins once."""
    keys = []

    def model(params, context: AttemptContext):
        keys.append(context.idempotency_key)
        if len(keys) < 3:
            raise ConnectionError("gone")
        return '{"n": 1}'

    graph = one_call(form, mode, mode.colour(model), checkpointer, transient=AT_ONCE)
    given = {"params": {"n": 0}}
    events = mode.call(graph, "stream", given, thread(), stream_mode="custom")
    assert (len(keys), len(set(keys))) == (3, 1)
    assert [event["event"] for event in events] == ["attempt_started", "attempt_finished"]


@pytest.mark.parametrize("reply", ["good", "bad"])
def test_work_that_fails_after_the_call_does_not_repeat_it(form, mode, checkpointer, reply):
    """The result is saved before a function of the user sees it, without any task."""
    broken, calls = [True], []

    def model(params):
        calls.append(params)
        if reply == "bad":
            raise ValueError("no")
        return "good"

    def rule(record):
        if broken:
            broken.clear()
            raise RuntimeError("the log is full")
        return False

    def hook(error, attempt, params):
        rule(attempt)

    options = {"review": mode.colour(rule)} if reply == "good" else {"hooks": mode.colour(hook)}
    graph = one_call(form, mode, model, checkpointer, output=None, **options)
    with pytest.raises(RuntimeError, match="the log is full"):
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    mode.invoke(graph, None, thread())
    assert (calls, broken) == ([{"n": 0}], [])
