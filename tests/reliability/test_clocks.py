"""Workers whose clocks differ: LangGraph orders checkpoints by time."""

from datetime import datetime, timedelta

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph_retry import ReplayMismatch, edit, pending_reviews, resume
from tests.loops import Model, one_call, thread


class Ahead(InMemorySaver):
    """The saver of a machine whose clock is ahead."""

    by = timedelta(hours=1)

    def put(self, config, checkpoint, *args):
        ts = (datetime.fromisoformat(checkpoint["ts"]) + self.by).isoformat()
        return super().put(config, {**checkpoint, "ts": ts}, *args)


@pytest.mark.parametrize("way", ["resume", "command"])
def test_a_machine_whose_clock_is_behind_is_refused_before_anything_is_done(form, way):
    """What it saved would not be found, and its call be repeated."""
    model = Model(goal=1)
    graph = one_call(form, None, model, Ahead())
    graph.invoke({"params": {"n": 0}}, thread())
    (review,) = pending_reviews(graph, thread())

    ways = {
        "resume": lambda: resume(graph, thread(), edit(n=1)),
        "command": lambda: graph.invoke(Command(resume=edit(n=1)), thread()),
    }
    with pytest.raises(ReplayMismatch, match=r"clock of this machine is 3[56]\d\d seconds behind"):
        ways[way]()

    assert len(model.calls) == 1
    assert [each.review_id for each in pending_reviews(graph, thread())] == [review.review_id]


def test_a_clock_that_is_behind_by_a_moment_is_waited_for(form, monkeypatch):
    """Clocks of two machines always differ a little."""
    monkeypatch.setattr(Ahead, "by", timedelta(seconds=0.2))
    model = Model(goal=1)
    graph = one_call(form, None, model, Ahead())
    graph.invoke({"params": {"n": 0}}, thread())

    assert resume(graph, thread(), edit(n=1))["output"] == {"n": 1}
