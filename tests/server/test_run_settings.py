"""Context and config of a run on a server: given again by whoever answers."""

import uuid

import pytest
from langgraph.pregel.remote import RemoteGraph

import graph_retry.threads
from graph_retry import edit
from tests.server.remote import Remote

NORTH, SOUTH = {"tenant": "north"}, {"tenant": "south"}
DESK = {"desk": "2"}


@pytest.fixture
def asked(served, mode, remote):
    """Return a function that starts a thread of a graph with a context, up to its review."""

    def start(name: str = "tenants") -> Remote:
        thread = remote(name)
        mode.invoke(thread.graph, {"params": {"n": 0}}, thread.config, context=NORTH)
        return thread

    return start


def told(thread):
    """Return with what, and for whom, the model was called."""
    thread_id = thread.config["configurable"]["thread_id"]
    return [(each["n"], each["tenant"], each["desk"]) for each in thread.served.calls(thread_id)]


def test_an_answer_brings_its_context_along(asked):
    """The server saves none with a thread."""
    thread = asked()
    thread.resume(edit(n=1), context=SOUTH)
    (review,) = thread.reviews()
    thread.mode.call(review, "answer", edit(n=2), context=NORTH)
    assert told(thread) == [(0, "north", None), (1, "south", None), (2, "north", None)]


def test_a_context_may_come_beside_a_configurable(asked):
    """By itself the server refuses that, since it makes the one of the other."""
    thread = asked()
    thread.config["configurable"] |= DESK
    thread.resume(edit(n=2), context=SOUTH)
    assert told(thread)[1:] == [(2, "south", "2")]


def test_a_rewind_brings_its_context_along(asked):
    """Of a call that is over, too, whose run is told in `configurable` what was forked."""
    thread = asked()
    thread.rewind(attempt=1, params={"n": 2}, context=SOUTH)
    thread.rewind(attempt=1, params={"n": 3}, context=NORTH)
    assert told(thread)[1:] == [(2, "south", None), (3, "north", None)]
    assert thread.status() == "idle"


def test_a_sweep_brings_context_and_config_along(asked, served, mode):
    """The runs it starts and does not wait for get them as well."""
    thread = asked("expiring_tenants")
    client = thread.graph.client or thread.graph.sync_client
    more = {"config": {"configurable": DESK}, "context": SOUTH}
    mode.call(graph_retry.threads, "expire_reviews", client, **more)
    thread_id = thread.config["configurable"]["thread_id"]
    with served.sync_client() as reader:
        for run in reader.runs.list(thread_id):
            reader.runs.join(thread_id, run["run_id"])
    assert told(thread)[1:] == [(3, "south", "2")]


def test_listed_reviews_keep_the_config(asked, mode):
    """What is given to the list is given to each answer."""
    thread = asked()
    client = thread.graph.client or thread.graph.sync_client
    given = {"configurable": DESK, "tags": ["listed"]}
    listed = mode.call(graph_retry.threads, "list_reviews", client, config=given)
    place = thread.config["configurable"]
    (review,) = [each for each in listed if each.thread_id == place["thread_id"]]
    assert review.config == {"configurable": {**DESK, **place}, "tags": ["listed"]}
    mode.call(review, "answer", edit(n=2), context=SOUTH)
    assert told(thread)[1:] == [(2, "south", "2")]


def test_a_context_that_is_no_object_is_refused():
    """Beside a `configurable` it has to become part of one."""
    config = {"configurable": {"thread_id": str(uuid.uuid4()), **DESK}}
    graph = RemoteGraph("tenants", url="http://127.0.0.1:1")
    with pytest.raises(TypeError, match="`context` is a `str`: for a server, give a dict"):
        graph_retry.resume(graph, config, context="south")
