"""A plain node of a graph on a real server, which `review_nodes` lets ask."""

from graph_retry import edit, respond


def test_the_question_of_a_plain_node_is_on_the_thread_of_the_server(remote):
    """The server's thread shows the question, and an answer by a client is used once."""
    thread = remote("reviewed")
    thread.invoke({"params": {"n": 0}})
    assert thread.status() == "interrupted"
    (review,) = thread.reviews()
    assert (review.value["function_name"], review.value["error"]) == (
        "count",
        "ValueError: 0 is too small",
    )

    thread.resume(edit({"params": {"n": 1}}))
    assert thread.resume(edit({"params": {"n": 2}}))["output"] == {"n": 2}

    assert thread.calls() == [0, 1, 2]
    assert thread.status() == "idle"


def test_a_response_is_an_update_of_the_state(remote):
    """What a person supplies goes on along the edges of the node."""
    thread = remote("reviewed")
    thread.invoke({"params": {"n": 0}})

    assert thread.resume(respond({"output": {"n": 7}}))["output"] == {"n": 7}
    assert thread.calls() == [0]


def test_branches_a_subgraph_and_a_command_are_each_asked_and_made_once(remote):
    """What LangGraph does around the nodes is as without a review, over HTTP."""
    thread = remote("reviewed_shapes")
    state = thread.invoke({"params": {"n": 0}})
    asked = []
    while reviews := thread.reviews():
        asked.append(sorted(review.function_name for review in reviews))
        more = {r.review_id: edit(params={**r.params["params"], "n": 2}) for r in reviews}
        state = thread.resume(answers=more)
    assert asked == [["branch", "branch", "inner"], ["jump"]]
    assert state["results"] == [2, 2, 2, 2, 4]
    assert sorted(thread.calls()) == [0, 0, 0, 0, 2, 2, 2, 2]
    assert thread.status() == "idle"
