"""Many open reviews at once: nothing is called twice, and one `resume` answers all of them."""

from collections import Counter

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph_retry import edit
from graph_retry.threads import aattempts_of, arewind
from tests.loops import Model, answer, fan_out, gathered, reviews, thread
from tests.parts import draws

WIDTH = draws(20, 60)


@pytest.mark.drawn
@pytest.mark.slow
def test_all_reviews_of_a_wide_send_are_answered_in_one_call(form, mode, checkpointer):
    """All items fail, all answers go back together; two calls each, results in order."""
    model = Model(lambda params: f'{{"n": {params["item"]}}}' if params["n"] else "not yet")
    graph = fan_out(form, mode, model, checkpointer, width=WIDTH)
    mode.invoke(graph, {"results": []}, thread())
    open_ = reviews(mode, graph, thread())
    assert [review.params["item"] for review in open_] == list(range(WIDTH))

    state = answer(mode, graph, thread(), answers={each.review_id: edit(n=1) for each in open_})

    assert state["results"] == [{"n": item} for item in range(WIDTH)]
    assert len(model.calls) == 2 * WIDTH
    assert reviews(mode, graph, thread()) == []


class Counted(InMemorySaver):
    """Counts the looks at the state of the thread, and the lists of checkpoints."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()  # shared by the clones that LangGraph makes of a saver

    async def aget_tuple(self, config):
        self.counts["looks"] += config["configurable"].get("checkpoint_ns") == ""
        return await super().aget_tuple(config)

    def alist(self, *args, **options):
        self.counts["lists"] += 1
        return super().alist(*args, **options)


async def test_what_calls_of_a_node_need_of_the_thread_is_read_once():
    """However many calls it makes: when they ask, when all are answered, and in a fork."""
    counts = []
    for width in (2, 9):
        model, saver = Model(goal=1), Counted()
        graph = gathered(model, saver, width)
        counted = []

        async def run(given, saver=saver, graph=graph, counted=counted):
            saver.counts.clear()
            state = await graph.ainvoke(given, thread())
            counted.append(dict(saver.counts))
            return state

        asked = (await run({}))["__interrupt__"]
        await run(Command(resume={each.id: edit(n=1) for each in asked}))
        first = next(each for each in await aattempts_of(graph, thread()) if each.current)
        saver.counts.clear()
        await arewind(graph, thread(), ledger=first, attempt=2, params={"n": 2})
        counted.append(dict(saver.counts))
        counts.append(counted)
        assert len(model.calls) == 2 * width + 1
    assert counts[0] == counts[1]
