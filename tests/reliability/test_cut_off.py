"""Runs that are cut off: cancelled at any await, interrupted from the keyboard, or hanging."""

import asyncio
import threading
from collections import Counter
from contextlib import nullcontext

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import graph_retry
from graph_retry import AttemptContext, edit
from tests.loops import answer, one_call, reviews, thread
from tests.parts import draws


class CancellingLoop(asyncio.SelectorEventLoop):
    """An event loop that cancels a task the n-th time anything is about to run."""

    def __init__(self, cancels_at):
        super().__init__()
        self.steps = 0
        self.cancels_at = cancels_at
        self.task = None

    def call_soon(self, *args, **kwargs):
        if self.task is not None:
            self.steps += 1
            if self.steps == self.cancels_at:
                self.task.cancel()
        return super().call_soon(*args, **kwargs)


def cancelled(cancels_at, start):
    """Run a coroutine function, cancelled at one of its steps (0: not at all); count them."""
    with asyncio.Runner(loop_factory=lambda: CancellingLoop(cancels_at)) as runner:
        loop = runner.get_loop()

        async def main():
            loop.task = asyncio.current_task()
            try:
                await start()
            finally:
                loop.task = None

        with pytest.raises(asyncio.CancelledError) if cancels_at else nullcontext():
            runner.run(main())
        return loop.steps


def counted(form, mode, saver):
    """Compile a graph of one call, and return with it the list of calls made as `(n, key)`."""
    calls = []

    async def model(params, context: AttemptContext):
        calls.append((params["n"], context.idempotency_key))
        await asyncio.sleep(0)
        return f'{{"n": {params["n"]}}}' if params["n"] else "not yet"

    return one_call(form, mode, model, saver), calls


@pytest.mark.drawn
@pytest.mark.parametrize("mode", ["async"], indirect=True)
def test_cancelled_anywhere_a_run_goes_on(form, mode):
    """Wherever a cancellation arrives it gets through; the thread goes on exactly."""

    def fresh():
        graph, calls = counted(form, mode, InMemorySaver())

        async def both():
            await graph.ainvoke({"params": {"n": 0}}, thread(), durability="sync")
            await graph_retry.aresume(graph, thread(), edit(n=1), durability="sync")

        return graph, calls, both

    steps = cancelled(0, fresh()[2])
    assert steps > 100
    for cancels_at in range(1, steps, draws(5, 1)):
        graph, calls, both = fresh()
        cancelled(cancels_at, both)
        if not mode.call(graph, "get_state", thread()).created_at:
            mode.invoke(graph, {"params": {"n": 0}}, thread())
        state = answer(mode, graph, thread())
        if reviews(mode, graph, thread()):
            state = answer(mode, graph, thread(), edit(n=1))
        place = f"cancelled at step {cancels_at}"
        assert state["output"] == {"n": 1}, place
        assert len(set(calls)) == 2, place
        assert (Counter(n for n, _ in calls) - Counter([0, 1])).total() <= 1, place


@pytest.mark.parametrize("mode", ["async"], indirect=True)
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_cancellation_gets_through_to_a_hanging_call(form, mode, kind):
    """Without a timeout too: an async call is stopped, a sync one is left behind in its thread."""
    release, started, story = threading.Event(), asyncio.Event(), []

    def begin():
        story.append("start")
        started.set()

    def slow(params):
        loop.call_soon_threadsafe(begin)
        release.wait(10)
        return '{"n": 1}'

    async def aslow(params):
        begin()
        try:
            await asyncio.Event().wait()
        finally:
            story.append("stopped")

    graph, loop = one_call(form, mode, slow if kind == "sync" else aslow, InMemorySaver()), None

    async def hang():
        nonlocal loop
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(graph.ainvoke({"params": {"n": 0}}, thread(), durability="sync"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not release.is_set(), "nobody waited for the call"
        release.set()

    mode.run(hang)
    assert story == (["start"] if kind == "sync" else ["start", "stopped"])
    calls = one_call(form, mode, lambda params: '{"n": 2}', graph.checkpointer)
    assert answer(mode, calls, thread())["output"] == {"n": 2}


@pytest.mark.parametrize(
    ("mode", "kind"), [("sync", "sync"), ("async", "sync"), ("async", "async")], indirect=["mode"]
)
def test_a_hanging_call_ends_at_its_timeout(form, mode, kind):
    """The failure is put to a person, who may let it run again; a late answer reaches nobody."""
    release = threading.Event()

    def slow(params):
        if params["n"] == 0:
            release.wait(10)
        return f'{{"n": {params["n"]}}}'

    async def aslow(params):
        if params["n"] == 0:
            await asyncio.Event().wait()
        return f'{{"n": {params["n"]}}}'

    graph = one_call(form, mode, aslow if kind == "async" else slow, InMemorySaver(), timeout=0.5)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.failure["message"] == "no result within 0.5 s"
    release.set()
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("where", ["llm_call", "on_retry", "reviewer", "on_attempt", "timed"])
def test_what_ends_the_program_passes_and_the_thread_goes_on(form, mode, where, ending):
    """Ctrl-C in the user's function is no failure of an attempt; nothing finished is repeated."""
    calls, stops = [], [where]

    def stop(here):
        if here in stops:
            stops.remove(here)
            raise ending

    def model(params, context: AttemptContext):
        calls.append((params["n"], context.idempotency_key))
        stop("llm_call")
        stop("timed")
        return f'{{"n": {params["n"]}}}' if params["n"] else "not yet"

    options = {
        "hooks": lambda error, attempt, params: stop("on_retry"),
        "reviewer": lambda review: stop("reviewer"),
        "on_attempt": lambda record: stop("on_attempt"),
    }
    if where == "timed":
        options["timeout"] = 5
    graph = one_call(form, mode, model, InMemorySaver(), **options)
    first = ({"params": {"n": 0}}, thread())

    def program():
        if mode.is_async:  # on a loop of its own, which ends with the program
            return asyncio.run(graph.ainvoke(*first, durability="sync"))
        return graph.invoke(*first, durability="sync")

    with pytest.raises(ending):
        program()

    answer(mode, graph, thread())
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}
    assert len(set(calls)) == 2
    assert [n for n, _ in calls] == ([0, 0, 1] if where in ("llm_call", "timed") else [0, 1])
