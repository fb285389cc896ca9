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
