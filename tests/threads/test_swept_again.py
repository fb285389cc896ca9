"""A sweep looks for answers that were saved and not applied, and may find a thread in use."""

from contextlib import ExitStack

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import edit
from graph_retry._core.ground.functions.awaiting import sync_or_async
from graph_retry._core.threads import expiry
from graph_retry._core.threads.answers import resumption
from tests.loops import Model, answer, one_call, thread
from tests.threads.threads import ends_before_its_run


@pytest.mark.parametrize("ended_by", ["a runner", "a run"])
def test_a_sweep_runs_no_thread_that_somebody_else_runs(mode, monkeypatch, ended_by):
    """The saved answer may be applied between the sweep's look and its lock, or just now."""
    model = Model()
    graph = one_call("node", mode, model, InMemorySaver())
    graph = graph.builder.compile(graph.checkpointer, interrupt_after=["ask"])
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    with ends_before_its_run(mode, graph):
        answer(mode, graph, thread(), edit(n=3))
    look = expiry.find_all

    async def look_before_another(*given, **options):
        found = await look(*given, **options)
        if ended_by == "a run":
            await sync_or_async(graph.invoke, graph.ainvoke, None, thread())
        return found

    monkeypatch.setattr(expiry, "find_all", look_before_another)
    with ExitStack() as held:
        if ended_by == "a runner":
            held.enter_context(resumption.resumption(graph, thread()))
        assert mode.call(expiry, "expire_reviews", graph) == []
    assert len(model.calls) == (2 if ended_by == "a run" else 1)
