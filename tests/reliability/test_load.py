"""Many open reviews at once: nothing is called twice, and one `resume` answers all of them."""

import pytest

from graph_retry import edit
from tests.loops import Model, answer, fan_out, reviews, thread
from tests.parts import draws

WIDTH = draws(20, 60)


@pytest.mark.drawn
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
