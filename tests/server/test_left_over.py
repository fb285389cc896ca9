"""Runs that are cancelled on a real server: what they leave behind answers nothing."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from graph_retry import edit

WAIT_S = 60


def until(met):
    """Wait for something the server does in its own time."""
    deadline = time.monotonic() + WAIT_S
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("way", ["none", "by id", "plain", "resume"])
def test_the_answer_of_a_cancelled_run_decides_nothing_else(remote, form, way):
    """A plain answer's run is cancelled in mid call; the next run asks again, with the reason."""
    thread = remote(form)
    thread_id = thread.config["configurable"]["thread_id"]
    gate = f"gate-{thread_id}"
    thread.invoke({"params": {"n": 0}})
    plain = {"type": "edit", "params": {"n": 1, "note": gate}}
    with thread.served.sync_client() as client:
        run = client.runs.create(thread_id, form, command={"resume": plain})["run_id"]
        until(lambda: len(thread.calls()) == 2)
        client.runs.cancel(thread_id, run, wait=False)
        until(lambda: client.runs.get(thread_id, run)["status"] not in ("pending", "running"))
        (thread.served.folder / gate).touch()
        until(lambda: client.threads.get(thread_id)["status"] != "busy")

        def go_on(**given):
            created = client.runs.create(thread_id, form, **given)
            client.runs.join(thread_id, created["run_id"])

        asked = client.threads.get_state(thread_id)["tasks"][0]["interrupts"]
        if way == "none":
            go_on(input=None)
        elif way == "by id":
            go_on(command={"resume": {each["id"]: plain for each in asked}})
        elif way == "plain":
            go_on(command={"resume": plain})
        else:
            thread.resume()

    # Its failure is asked about, and nobody has answered yet. A sync call that was in flight could
    # not be stopped; an interrupted one is made again.
    made = thread.calls()
    assert made in ([0, 1], [0, 1, 1])
    (review,) = thread.reviews()
    assert review.attempt == 2
    assert thread.resume(edit(n=2))["output"] == {"n": 2}
    assert thread.calls() == [*made, 2]


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_an_answer_waits_until_the_run_that_asks_has_ended(remote):
    """A call beside the question is not made twice, and the answer is used when it has ended."""
    thread = remote("beside")
    thread_id = thread.config["configurable"]["thread_id"]
    with thread.served.sync_client() as client, ThreadPoolExecutor() as other:
        client.threads.create(thread_id=thread_id)
        client.runs.create(thread_id, "beside", input={"params": {"n": 0}})
        until(lambda: sorted(thread.calls()) == [0, 7] and thread.reviews())
        answered = other.submit(thread.resume, edit(n=2))
        until(lambda: sum("/runs" in str(each.url) for each in thread.requests) > 1)
        assert not answered.done()
        (thread.served.folder / f"gate-{thread_id}").touch()

        assert answered.result(WAIT_S)["output"] == {"n": 2}
    assert sorted(thread.calls()) == [0, 2, 7]


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_an_answer_that_may_not_wait_so_long_is_refused(remote):
    """Nothing is written, and the review stays open."""
    thread = remote("beside")
    thread_id = thread.config["configurable"]["thread_id"]
    with thread.served.sync_client() as client:
        client.threads.create(thread_id=thread_id)
        run = client.runs.create(thread_id, "beside", input={"params": {"n": 0}})["run_id"]
        until(lambda: sorted(thread.calls()) == [0, 7] and thread.reviews())
        with pytest.raises(TimeoutError, match="another process still runs"):
            thread.resume(edit(n=2), wait=0.1)
        (thread.served.folder / f"gate-{thread_id}").touch()
        client.runs.join(thread_id, run)
    assert len(thread.reviews()) == 1
    assert sorted(thread.calls()) == [0, 7]
