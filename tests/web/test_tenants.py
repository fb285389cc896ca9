"""Users with limited rights: nothing of a page, a text or a version tells about other calls."""

import asyncio
import re
import threading

import pytest
from langgraph.config import get_stream_writer
from starlette.testclient import TestClient

from graph_retry.desk.web import Access, create_app
from graph_retry.desk.web.applying import Run, Runs
from graph_retry.desk.web.pages.arranged import Listings
from graph_retry.desk.web.waiting import Waiting
from graph_retry.errors import AnswerRefused, StaleDecision
from graph_retry.threads import list_reviews
from tests.web.conftest import SAME_SITE
from tests.web.forms import Form
from tests.web.test_answers import opened

BOB = Access("bob", labels={"tenant": "umbrella"})
CANARY = "the canary of acme"
STREAMED = {"type": "graph_retry", "name": "another call", "attempt": 1}


def version_in(page):
    """Return the version that a page asks with."""
    return re.search(r"since=([^\"&]+)", page)[1]


def test_the_version_of_a_list_counts_no_other_calls(desk):
    """Reviews of others come and go without a change; one of the user's own changes it."""
    desk.options["labels"] = {"tenant": "umbrella"}
    desk.wait("mine")

    async def versions():
        waiting, seen = Waiting(desk.graph), []
        for thread, tenant in (("a", "acme"), ("b", "acme"), ("c", "umbrella")):
            await waiting.refresh()
            seen.append(Listings(waiting).version(BOB))
            desk.options["labels"] = {"tenant": tenant}
            await asyncio.to_thread(desk.wait, thread)
            waiting = Waiting(desk.graph)
        await waiting.refresh()
        return [*seen, Listings(waiting).version(BOB)]

    first, *others, last = asyncio.run(versions())
    assert others == [first, first]
    assert last != first


@pytest.mark.parametrize(
    "error",
    [AnswerRefused(CANARY, reasons={"r": CANARY}), StaleDecision(CANARY), ValueError(CANARY)],
    ids=lambda error: type(error).__name__,
)
def test_the_outcome_tells_a_limited_user_of_no_other_call(desk, monkeypatch, error):
    """The graph's errors may name any call of the thread; who sees all of them reads the text."""
    desk.wait()
    (review,) = list_reviews(desk.graph)

    async def fails(*_):
        raise error

    async def told():
        waiting = Waiting(desk.graph)
        monkeypatch.setattr(waiting, "answer", fails)
        run = Run([review], {review.review_id: {"type": "approve"}})
        outcome = await Runs(waiting)._apply(run)
        return [
            f"{each.title} {each.text} {each.problem}"
            for each in (outcome.seen_by(Access("ada")), outcome.seen_by(BOB))
        ]

    whole, limited = asyncio.run(told())
    assert CANARY in whole
    assert "canary" not in limited


def test_a_limited_user_sees_nothing_of_the_other_calls_of_a_run(desk):
    """The text of a run under way is of any call of its thread; who sees all calls sees it."""
    desk.options["labels"] = BOB.labels
    desk.wait()
    said, go_on = threading.Event(), threading.Event()

    def says(params):
        get_stream_writer()({**STREAMED, "event": "attempt_started"})
        get_stream_writer()({**STREAMED, "event": "partial_output", "value": CANARY})
        said.set()
        go_on.wait(30)
        return '{"name": "Ada", "count": 3}'

    desk.says = says
    users = {"ada": "ada", "bob": BOB, "eve": Access("eve", labels={"tenant": "acme"})}
    with desk.client(authorize=lambda request: users[request.headers["x-user"]]) as client:
        client.headers["x-user"] = "bob"
        address, page = opened(client)
        form = Form(page)
        form.choose("edit")
        form.fill("text:/prompt", "How many ships?")
        client.post(form.action, files=form.posted(), follow_redirects=False)
        assert said.wait(30)
        shown = {}
        for user in users:
            client.headers["x-user"] = user
            shown[user] = client.get(address)
        go_on.set()
    assert (CANARY in shown["ada"].text, "is being applied" in shown["bob"].text) == (True, True)
    assert not any(CANARY in shown[user].text for user in ("bob", "eve"))
    assert shown["eve"].status_code == 410


def test_a_posted_thread_is_remembered_only_for_a_user_who_sees_a_call_of_it(desk):
    """Anybody may post any text as the id of a thread; only what is found is kept."""
    desk.options["labels"] = {"tenant": "acme"}
    desk.wait("of acme")
    app = create_app(desk.graph, authorize=lambda request: users[request.headers["x-user"]])
    users = {"ada": "ada", "bob": BOB}
    with TestClient(app, headers=SAME_SITE) as client:
        found = {}
        for user in ("bob", "ada", "bob"):
            client.headers["x-user"] = user
            for thread in ("of acme", "of nobody"):
                page = client.post("/t", files={"thread": (None, thread)})
                found.setdefault((user, thread), []).append(page.status_code)
    assert found == {
        ("bob", "of acme"): [404, 404],
        ("bob", "of nobody"): [404, 404],
        ("ada", "of acme"): [200],
        ("ada", "of nobody"): [404],
    }


def test_a_form_takes_no_name_of_another_users_form(desk):
    """A form without a name, or with a name in use, is refused: its answer is never dropped."""
    desk.wait()
    users = {"authorize": lambda request: request.headers["x-user"]}
    with desk.client(**users) as client:
        client.headers["x-user"] = "ada"
        statuses, form = list[int](), Form(opened(client)[1])
        form.choose("reject")
        for user, name in (
            ("ada", ""),
            ("ada", "n" * 201),
            ("ada", "n"),
            ("ada", "n"),
            ("bob", "n"),
        ):
            client.headers["x-user"] = user
            form.fill("answer", name)
            done = client.post(form.action, files=form.posted(), follow_redirects=False)
            statuses.append(done.status_code)
    assert statuses == [400, 400, 303, 303, 400]
