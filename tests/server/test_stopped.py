"""A run on a server that is stopped on the page: that of the answer, and no other."""

import uuid
from contextlib import ExitStack

import pytest
from langgraph.pregel.remote import RemoteGraph
from starlette.testclient import TestClient

from graph_retry import pending_reviews
from graph_retry.desk.web import applying, create_app
from graph_retry.threads import Inbox
from tests.server.test_cancelled import until
from tests.web.conftest import SAME_SITE
from tests.web.forms import Form
from tests.web.test_undo import fields

pytestmark = pytest.mark.slow


def test_a_run_is_stopped_and_goes_on_a_server(served, monkeypatch):
    """Stopped at once, without an error; the call in flight is made once more when it goes on."""
    monkeypatch.setattr(applying, "HELD_S", 0.0)
    thread = str(uuid.uuid4())
    gate = f"gate-{thread}"
    with ExitStack() as closing:
        client = closing.enter_context(served.sync_client())
        client.threads.create(thread_id=thread)
        client.runs.wait(thread, "patient_function", input={"params": {"n": 0}})
        app = create_app(client, authorize=lambda _: "ada")
        browser = closing.enter_context(TestClient(app, headers=SAME_SITE))
        until(lambda: thread in browser.get("/").text)
        key = next(
            part.partition('"')[0]
            for part in browser.get("/", params={"text": thread}).text.split("/r/")[1:]
        )
        form = Form(browser.get(f"/r/{key}").text)
        form.choose("edit")
        form.fill("params.number:/n", "2")
        form.fill("params.text:/note", gate)
        where = str(browser.post(form.action, files=form.posted()).url)
        until(lambda: len(served.calls(thread)) == 2)
        browser.post(where, files=fields(stop="1"))
        until(lambda: "The run is stopped." in browser.get(where).text)
        page = browser.post(where, files=fields(go_on="1"))
        until(lambda: len(served.calls(thread)) == 3)
        told = browser.post(str(page.url), files=fields(stop="1"))
        assert (told.status_code, "cancel the run on its server" in told.text) == (409, True)
        (served.folder / gate).touch()
        until(lambda: "its output is valid" in browser.get(str(page.url)).text)
    assert [call["n"] for call in served.calls(thread)] == [0, 2, 2]


def test_the_run_of_somebody_else_is_left_alone(served):
    """It is newer than the review, and no answer to it."""
    thread = str(uuid.uuid4())
    with served.sync_client() as client:
        client.threads.create(thread_id=thread)
        client.runs.wait(thread, "patient_function", input={"params": {"n": 0}})
        graph = RemoteGraph("patient_function", sync_client=client)
        (review,) = pending_reviews(graph, {"configurable": {"thread_id": thread}})
        given = {"params": {"n": 5, "note": f"gate-{thread}"}}
        other = client.runs.create(thread, "patient_function", input=given)["run_id"]
        until(lambda: len(served.calls(thread)) == 2)
        assert Inbox(client).stop(review) is False
        assert client.runs.get(thread, other)["status"] == "running"
        (served.folder / f"gate-{thread}").touch()
        client.runs.join(thread, other)
        assert client.runs.get(thread, other)["status"] == "success"
