"""Coroutines that are driven sync or async."""

import asyncio
import sys
import traceback

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry._core.ground.functions.awaiting import is_sync, run_async, run_sync, sync_or_async
from tests.conftest import Mode
from tests.loops import one_call, reviews, thread


def test_a_sync_run_refuses_to_wait_for_an_event_loop():
    """It neither hangs nor leaves anything open: what the coroutine has taken it lets go of."""
    released = []

    async def steps():
        try:
            await asyncio.sleep(0)
        finally:
            released.append(True)

    with pytest.raises(RuntimeError, match="awaits an event loop in a sync run"):
        run_sync(steps())
    assert released == [True]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_stops_a_run_passes_and_lets_go_of_what_was_taken(mode, error):
    """Ctrl-C, the end of the process and cancellation reach the caller as they are (I8)."""
    released = []

    def stop():
        raise error

    async def astop():
        raise error

    async def steps():
        try:
            await sync_or_async(stop, astop)
        finally:
            released.append(True)

    with pytest.raises(error):
        mode.run(lambda: run_async(steps())) if mode.is_async else run_sync(steps())
    assert released == [True]


def test_sync_code_may_start_an_event_loop_whose_runs_are_async():
    """Who drives is told by the innermost driver, also in tasks begun in between."""
    seen = []

    async def inner():
        seen.append(is_sync())

    async def outer():
        seen.append(is_sync())
        asyncio.run(run_async(inner()))
        seen.append(is_sync())

    run_sync(outer())
    assert (seen, is_sync()) == ([True, False, True], False)


@pytest.mark.parametrize("timeout", [None, 30])
def test_a_call_that_raises_stop_iteration_has_failed(form, mode, timeout):
    """An exhausted iterator in `llm_call`, such as a mock's, neither hangs nor ends the loop."""
    graph = one_call(form, mode, lambda params: next(iter([])), InMemorySaver(), timeout=timeout)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert "raised StopIteration" in review.failure["message"]


def test_few_frames_stand_between_a_run_and_the_call(form, mode):
    """A traceback in `llm_call` shows the user's code, not a tower of ours."""
    ours = []

    def model(params):
        frames = traceback.extract_stack(sys._getframe())
        ours.extend(frame.name for frame in frames if "/graph_retry/" in frame.filename)
        return '{"n": 1}'

    graph = one_call(form, mode, model, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert 1 <= len(ours) <= 5, ours


def test_a_function_that_forgets_an_await_is_awaited(form):
    """A model, a hook and a validator whose coroutine gives a coroutine have its result."""

    async def answer(params):
        return f'{{"n": {params["n"]}}}'

    async def revised(params):
        return {**params, "n": 1}

    async def is_one(value):
        return value["n"] == 1

    def forgetful(function):
        async def forgets(*given):
            return function(given[-1])

        return forgets

    async def run():
        options = {"output": forgetful(is_one), "auto_retries": 1}
        saver, mode = InMemorySaver(), Mode("async", None)
        graph = one_call(form, mode, forgetful(answer), saver, forgetful(revised), **options)
        return await graph.ainvoke({"params": {"n": 0}}, thread())

    assert asyncio.run(run())["output"] == {"n": 1}
