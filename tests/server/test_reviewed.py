"""A plain node of a graph on a real server, which `review_nodes` lets ask."""

from collections import Counter

import pytest

from graph_retry import StaleDecision, edit, respond
from tests.reviewed.programs import PROGRAMS, played


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


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(PROGRAMS)), ids=list(PROGRAMS))
def test_a_program_ends_as_if_no_node_had_failed(remote, number):
    """On a server, too, no node runs too often, and the thread is idle at the end."""
    program, thread = [*PROGRAMS.values()][number], remote(f"program_{number}")

    state, asked = played(thread.mode, thread.graph, thread.config, program)

    assert {key: state[key] for key in program.ends} == program.ends
    assert (Counter(thread.calls()), asked) == (program.calls, program.asked)
    assert thread.status() == "idle"


def test_a_late_answer_is_refused_and_a_rewind_runs_the_node_again(remote):
    """Two tabs pay for one attempt."""
    thread = remote("reviewed")
    thread.invoke({"params": {"n": 0}})
    (late,) = thread.reviews()
    thread.resume(edit({"params": {"n": 2}}))
    with pytest.raises(StaleDecision):
        thread.resume(answers={late.review_id: edit({"params": {"n": 3}})})

    assert thread.rewind(attempt=1, params={"params": {"n": 5}})["output"] == {"n": 5}
    assert thread.calls() == [0, 2, 5]
