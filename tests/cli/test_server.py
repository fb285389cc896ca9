"""The console command on a real `langgraph dev`."""

import json

import pytest
from langgraph_sdk import get_sync_client

from tests.cli.test_terminal import COMMAND, environment
from tests.dev_server import dev_server
from tests.terminal import Terminal

pytestmark = pytest.mark.filterwarnings("default::UserWarning")


@pytest.fixture
def server(tmp_path, calls):
    """Serve both forms to one test; model calls are counted in its file."""
    (tmp_path / "served.py").write_text("from tests.cli.served import function, hiding, node\n")
    with dev_server(
        tmp_path, {form: f"./served.py:{form}" for form in ("node", "function", "hiding")}
    ) as url:
        yield url


def begin(url, graph):
    """Run a graph on a new thread until it waits."""
    with get_sync_client(url=url) as client:
        thread = client.threads.create()["thread_id"]
        client.runs.wait(thread, graph, input={"params": {"n": 0}})
        return thread


@pytest.mark.slow
def test_reviews_on_a_server_are_found_and_answered(server, run, calls, tmp_path):
    """Listed, shown, refused, answered to the end, stale, cancelled: over HTTP as locally."""
    assert run("inbox", "--url", server)[:2] == (0, "Nothing waits.\n")
    node, function = begin(server, "node"), begin(server, "function")
    code, out, _ = run("inbox", "--json", "--url", server)
    found = {each["thread_id"]: each for each in map(json.loads, out.splitlines())}
    assert (code, list(found), calls()) == (0, [function, node], 2)

    for thread in (node, function):
        where = ("answer", thread, "--url", server)
        assert "field: n | value: 0" in run("show", thread, "--url", server)[1]
        code, out, _ = run(*where, "edit", "n=many")
        assert code == 5
        assert 'Not applied: `n` expects a number, not "many".' in out
        code, out, _ = run(*where, "edit", "n=1")
        assert (code, out.split(":")[0]) == (0, "Attempt 2 failed, too")
        stale = found[thread]["review_id"]
        assert run(*where, "approve", "--review", stale)[0] == 4
    assert calls() == 4

    assert "params: n: 0 → 1" in run("show", node, "--url", server)[1]
    code, out, _ = run("answer", node, "--url", server, "edit", "n=2", "--by", "ada")
    assert (code, calls()) == (0, 5)
    assert '"n": 2' in out
    assert "edit by ada (terminal)" in run("show", node, "--url", server)[1]

    person = Terminal([*COMMAND, "answer", function, "--url", server], tmp_path, environment())
    person.wait_for("answer> ")
    person.type("reject not today\n")
    person.wait_for("The call is stopped.")
    assert (person.close(), calls()) == (0, 5)
    code, _, err = run("answer", node, "--url", server, "approve")
    assert (code, "no review is open" in err, "human:ada answered it" in err) == (4, True, True)


@pytest.mark.slow
def test_attempts_that_the_server_hides_are_told_of(server, run):
    """One line on the error stream, beside the review, which is shown."""
    thread = begin(server, "hiding")
    code, out, err = run("show", thread, "--url", server)
    assert (code, "field: n | value: 0" in out) == (0, True)
    assert err.startswith("graph-retry: the server hides the attempts of these calls")
    assert "calls: ask." in err


@pytest.mark.slow
def test_a_thread_the_server_does_not_have(server, run):
    """An unknown id, one that is no id, and a thread without a run have nothing to answer."""
    with get_sync_client(url=server) as client:
        empty = client.threads.create()["thread_id"]
    for thread in ("00000000-0000-4000-8000-000000000000", "1", empty):
        code, out, err = run("show", thread, "--url", server)
        assert (code, out) == (3, "")
        assert thread in err
