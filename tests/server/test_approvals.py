"""Questions of LangChain's own middleware on a real server, listed and answered as reviews."""

import pytest

from graph_retry import AnswerRefused, StaleDecision, approve, edit, threads


@pytest.mark.parametrize("graph", ["approving_all", "approving_each"])
def test_the_question_is_listed_and_answered_once(served, remote, config, graph):
    """An answer that does not fit starts no run; a second tab is told that it is late."""
    thread = remote(graph)
    thread.invoke({"messages": [("user", "Where is it sunny?")]})
    (review,) = thread.reviews()
    with served.sync_client() as client:
        listed = threads.list_reviews(client)
    mine = [each for each in listed if each.config == config or each.thread_id == review.thread_id]
    assert [each.params for each in mine] == [review.params] == [{"city": "Oslo"}]
    assert mine[0].asked_at
    with pytest.raises(AnswerRefused, match="Comment is not allowed"):
        thread.resume({"type": "comment", "message": "be kind", "review_id": review.review_id})
    thread.resume({**edit(city="Rome"), "review_id": review.review_id})
    with pytest.raises(StaleDecision):
        thread.resume({**approve(), "review_id": review.review_id})
    assert thread.calls() == ["Rome"]
    assert thread.status() == "idle"
