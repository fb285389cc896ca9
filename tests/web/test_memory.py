"""What the pages keep is bounded in bytes, and large values are no work of the event loop."""

import asyncio
import json
import re
import sys
import tracemalloc

import httpx
import pytest
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph_retry import aresume, edit
from graph_retry.desk.web import create_app
from graph_retry.desk.web.applying import Missed, Outcome, Run, Runs, Sent
from graph_retry.desk.web.posted import ARRIVING, UNDER_WAY
from graph_retry.desk.web.rows import bytes_in, row_of
from graph_retry.threads import list_reviews
from tests.web.conftest import SAME_SITE, Desk
from tests.web.forms import Form
from tests.web.test_answers import opened

LARGE = 300_000


@pytest.mark.parametrize("letter", ["a", "\u00e9", "\u4e2d", "\U0001f600"])
def test_bytes_are_those_that_python_holds(letter):
    """A text of wide characters holds up to four times as many bytes as it has characters."""
    tracemalloc.start()
    kept = [letter * LARGE, {"a": [letter * LARGE]}]
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held <= bytes_in(kept) <= 1.1 * held


@pytest.mark.parametrize("letter", ["x", "\U0001f600"])
def test_outcomes_are_kept_in_bounded_memory(monkeypatch, letter):
    """An applied form is forgotten at once, and late ones as soon as they are too much together."""
    held = bytes_in(letter * 10_000)
    monkeypatch.setattr("graph_retry.desk.web.applying.KEPT_BYTES", 5 * (held + 1_500))
    runs = Runs(None)

    async def applied(run):
        return Outcome("done", not_applied=run.decisions["r"]["late"])

    monkeypatch.setattr(runs, "_apply", applied)

    async def send_all():
        for number in range(40):
            sent = Sent([Run([], {"r": {"late": number % 2}})], [("a", letter * 10_000)])
            runs.start(str(number), sent)
            await sent.task
        return [name for name in map(str, range(40)) if runs.get(name)]

    kept = asyncio.run(send_all())
    assert "39" in kept
    assert len(kept) < 12
    assert [runs.get(name).size > held for name in kept] == [int(name) % 2 == 1 for name in kept]


@pytest.fixture
def large(desk):
    """Let a review wait whose every part is large: params, output, error, a suggestion."""
    wide = {str(number): ["y" * 50] for number in range(400)}
    desk.says = lambda _: json.dumps({"name": "z" * LARGE, "count": "many", "extra": wide})
    desk.options["on_retry"] = lambda error, attempt, params: params.model_copy(
        update={"prompt": "w" * LARGE}
    )
    desk.wait("t1", {"prompt": "x" * LARGE, "extra": wide})
    return desk


@pytest.mark.parametrize("where", ["missed", "run", "following"])
def test_an_outcome_keeps_no_whole_review(large, where):
    """A missed review, an answered one and the next one of its thread keep what the page shows."""
    (review,) = list_reviews(large.graph)
    missed = [Missed("", review, ["typed"])] if where == "missed" else []
    told = Outcome("done", following=[review] if where == "following" else [])
    sent = Sent([Run([review] if where == "run" else [], {}, told)], missed=missed)
    sent.shorten()
    assert bytes_in(review) > LARGE
    assert sent.size < 30_000
    assert bytes_in(row_of(review)) < 60_000


def test_answers_under_way_are_counted(desk, monkeypatch):
    """One user's large forms fill no memory while they are held or applied; others may answer."""
    monkeypatch.setattr("graph_retry.desk.web.applying.HELD_S", 30.0)
    monkeypatch.setattr("graph_retry.desk.web.page.ARRIVING", ARRIVING._replace(most=250_000))
    desk.wait("a")
    desk.wait("b")
    with desk.client(authorize=lambda request: request.headers["x-user"]) as client:
        client.headers["x-user"] = "ada"
        form = Form(opened(client)[1])
        form.choose("reject")
        form.fill("words.reject", "w" * 100_000)
        statuses = []
        for user, name in (("ada", "1"), ("ada", "2"), ("ada", "3"), ("bob", "4")):
            client.headers["x-user"] = user
            form.fill("answer", name)
            sent = client.post(form.action, files=form.posted(), follow_redirects=False)
            statuses.append(sent.status_code)
        client.headers["x-user"] = "ada"
        taken = client.post(f"{form.action}/a/1", files={"undo": (None, "1")})
        form.fill("answer", "5")
        again = client.post(form.action, files=form.posted(), follow_redirects=False)
    assert statuses == [303, 303, 413, 303]
    assert (taken.status_code, again.status_code) == (200, 303)


def test_the_answers_of_one_user_that_wait_are_counted(desk, monkeypatch):
    """However short they are, one user may send only some at a time; a form sent twice is one."""
    monkeypatch.setattr("graph_retry.desk.web.applying.HELD_S", 30.0)
    monkeypatch.setattr("graph_retry.desk.web.applying.UNDER_WAY", UNDER_WAY._replace(most=2))
    desk.wait()
    statuses = []
    with desk.client(authorize=lambda request: request.headers["x-user"]) as client:
        client.headers["x-user"] = "ada"
        form = Form(opened(client)[1])
        form.choose("reject")
        for user, name in (("ada", "1"), ("ada", "2"), ("ada", "2"), ("ada", "3"), ("bob", "4")):
            client.headers["x-user"] = user
            form.fill("answer", name)
            sent = client.post(form.action, files=form.posted(), follow_redirects=False)
            statuses.append(sent.status_code)
    assert statuses == [303, 303, 303, 413, 303]


async def calls_of_the_loop(saver, extra):
    """Count the Python functions that the loop's thread calls while a person looks at each page."""
    desk, config = Desk(saver), {"configurable": {"thread_id": "t1"}}
    await desk.graph.ainvoke({"parts": [{}]}, config)
    await aresume(desk.graph, config, edit(extra=extra))
    app, counts = create_app(desk.graph, authorize=lambda _: "ada"), []

    def count(_, event, __):
        counts[-1] += event == "call"

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://page", headers=SAME_SITE
    ) as client:
        at, found = "/", ""
        for link in (r"/r/\w+", None, "/t/\\w+", None):
            counts.append(0)
            sys.setprofile(count)
            found = (await client.get(at)).text
            while "Reading" in found:
                await asyncio.sleep(0.05)
                found = (await client.get(at)).text
            sys.setprofile(None)
            at = re.search(link, found)[0] if link else "/history"
    return counts


async def test_a_large_edit_is_no_work_of_the_loop(tmp_path):
    """The list, a review, the history and a ledger: its values are counted, rendered elsewhere."""
    counted = []
    for number in (1, 8_000):
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / str(number))) as saver:
            extra = {str(place): place for place in range(number)}
            counted.append(await calls_of_the_loop(saver, extra))
    few, many = counted
    assert all(most - least < 4_000 for least, most in zip(few, many, strict=True))
