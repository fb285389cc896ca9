"""Runs that are cancelled on a real server: what they leave behind answers nothing."""

import time

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
