"""The list: found, sorted, cut into pages, and true to what waits elsewhere."""

import asyncio
import itertools
import re
from collections import Counter
from html import unescape
from types import SimpleNamespace
from urllib.parse import parse_qsl

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry import respond, resume
from graph_retry._core.langgraph.storage.stores import SqlStore
from graph_retry.desk.web import waiting
from graph_retry.desk.web.pages import arranged
from graph_retry.threads import list_reviews
from tests.web.conftest import Desk
from tests.web.forms import Form
from tests.web.test_answers import opened, sent


def titles(client, **view):
    """Choose what is listed, and return the threads that are."""
    page = client.get("/", params=view).text
    return re.findall(r'<span class="quiet">([\w ·-]+)</span></span>', page)


def test_the_list_is_searched_filtered_and_sorted(desk):
    """By words of what is wrong, by label, by kind, by call, and by what was asked first."""
    for name, team in (("one", "red"), ("two", "blue"), ("three", "red")):
        desk.options = {"labels": {"team": team}, "review": "always"}
        desk.wait(name, {"model": "large" if name == "two" else "small"})
    with desk.client() as client:
        assert titles(client) == ["three", "two", "one"]
        assert titles(client, order="oldest") == ["one", "two", "three"]
        assert titles(client, label="team: red", order="newest") == ["three", "one"]
        assert titles(client, label=["team: red", "team: blue"]) == []
        assert titles(client, kind="valid, to approve") == titles(client, model="large") == ["two"]
        assert titles(client, text="VALID integer") == ["three", "one"]
        assert titles(client, text='"many"') == ["three", "one"]  # in what the model wrote
        assert titles(client, text="nowhere") == []
        assert "No review matches" in client.get("/?text=nowhere").text


def test_the_list_is_grouped(desk):
    """What ends soon is first, of many alike a few are shown, and the others are not buried."""
    desk.options["review"] = "always"
    for number in range(6):
        desk.wait(f"letter-{number}", {"model": "large"})
    desk.wait("odd")
    desk.options["expires_after"] = 3600.0
    desk.wait("due")
    with desk.client() as client:
        letters = [f"letter-{number}" for number in (5, 4, 3, 2, 1, 0)]
        assert titles(client) == ["due", *letters[:3], "odd"]
        page = client.get("/").text
        heads = re.findall(r'group-head"><b>(.*?)</b> <span class="quiet">(\d+)<', page)
        assert heads == [
            ("Due within a day", "1"),
            ("count: valid, to approve", "6"),
            ("Others", "1"),
        ]
        (whole,) = re.findall(r'href="/\?([^"]*)">Show all 6', page)
        assert titles(client, **dict(parse_qsl(unescape(whole)))) == letters


def test_decisions_are_listed_with_what_came_of_them(desk):
    """Who decided what, and whether it worked; what was answered here is there at once."""
    desk.options["labels"] = {"team": "red"}
    for number in (1, 2, 3):
        desk.wait(f"t{number}")
    given = respond({"name": "Bob", "count": 1})
    resume(desk.graph, {"configurable": {"thread_id": "t1"}}, {**given, "by": "bob"})
    with desk.client() as client:
        assert titles(client, tab="decided") == ["attempt 1 · t1"]
        form = Form(opened(client)[1])
        form.choose("approve")
        sent(client, form)
        page = client.get("/?tab=decided").text
        told = re.findall(r'quiet">(\w+ by \w+)</span>.*?said">(.*?)<', page, re.DOTALL)
        assert told == [
            ("approved by ada", "Attempt 2 failed, too."),
            ("corrected by bob", "The output that they wrote is used."),
        ]
        assert len(titles(client, tab="decided", call="count")) == 2
        assert titles(client, tab="decided", text="bob") == ["attempt 1 · t1"]
        assert titles(client, tab="decided", label="team: blue") == []


@pytest.fixture(params=["memory", "sqlite"])
def any_desk(request, tmp_path):
    """Give the test a graph whose storage has a table of open reviews, or none."""
    if request.param == "memory":
        yield Desk()
        return
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        yield Desk(saver)


@pytest.fixture
def fresh(monkeypatch):
    """Look what waits with each page, a few reviews at a time."""
    for name, size in (("PAGE", 4), ("LISTED", 5), ("AGAIN", 2)):
        monkeypatch.setattr(waiting, name, size)
    hours = (2**number for number in itertools.count())  # Each pause between two looks is over.
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: next(hours)))
    for name in ("FIRST_S", "NEWS_S"):
        monkeypatch.setattr(waiting, name, 60.0)


def counted(client):
    """Return how many the list says wait."""
    return int(re.search(r'id="count">(\d+) review', client.get("/").text)[1])


def test_the_list_follows_what_happens_elsewhere(any_desk, fresh):
    """The next page has what is new, and leaves out what was answered elsewhere."""
    for number in range(9):
        any_desk.wait(f"t{number}")
    with any_desk.client() as client:
        assert counted(client) == 9
        for number in range(9, 14):
            any_desk.wait(f"t{number}")
        assert counted(client) == 14
        for review in list_reviews(any_desk.graph)[1::2]:
            review.answer(respond({"name": "Bob", "count": 1}))
        assert counted(client) == 7


def test_a_look_at_a_database_reads_only_what_is_new(tmp_path, fresh, monkeypatch):
    """And some of the known ones, in turn: a question that was ended without an answer goes."""
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        desk = Desk(saver)
        for number in range(12):
            desk.wait(f"t{number}")
        read = []
        monkeypatch.setattr(waiting.Inbox, "read", counting(waiting.Inbox.read, read))
        with desk.client() as client:
            assert (counted(client), read) == (12, [4, 4, 4, 2])
            desk.wait("t12")
            assert (counted(client), read[4:]) == (13, [1, 2])
            config = {"configurable": {"thread_id": "t5"}}
            desk.graph.update_state(config, {}, as_node="ask")
            assert 12 in [counted(client) for _ in range(7)]


def counting(read_noted, read):
    """Keep how many reviews are read at a time."""

    def counted_read(inbox, rows):
        read.append(len(rows))
        return read_noted(inbox, rows)

    return counted_read


def costs(desk, monkeypatch, number):
    """Let reviews wait; return what each page reads and sorts, with the look that it begins."""
    for each in range(number):
        desk.wait(f"t{each}")
    read = Counter()

    async def counted_query(store, sql, *values):
        rows = await query(store, sql, *values)
        read.update(queries=1, rows=len(rows))
        return rows

    def counted_get(config):
        read.update(checkpoints=1)
        return get_tuple(config)

    def counted_listing(rows, view, user):
        read.update(listings=1)
        return make_listing(rows, view, user)

    query, get_tuple = SqlStore.query, desk.graph.checkpointer.get_tuple
    make_listing = arranged.make_listing
    pages = {}
    with monkeypatch.context() as patched, desk.client() as client:
        patched.setattr(SqlStore, "query", counted_query)
        patched.setattr(desk.graph.checkpointer, "get_tuple", counted_get)
        patched.setattr(arranged, "make_listing", counted_listing)
        assert counted(client) == number
        address, _ = opened(client, 3)
        for page in ("/", "/?page=2", address, f"{address}?together=1"):
            read.clear()
            assert client.get(page).status_code == 200
            pages[page.replace(address, "a review")] = dict(read)
    return pages


@pytest.mark.slow
def test_a_page_costs_what_it_shows(tmp_path, fresh, monkeypatch):
    """Where twice as many reviews wait, it reads as much, and sorts none of them again."""
    monkeypatch.setattr(waiting, "LISTED", 2)
    found = []
    for number in (25, 50):
        with SqliteSaver.from_conn_string(str(tmp_path / f"{number}.sqlite")) as saver:
            found.append(costs(Desk(saver), monkeypatch, number))
    # One of the queries looks for questions that other libraries ask.
    look = {"queries": 4, "rows": 5, "checkpoints": 4}
    of_review = {**look, "checkpoints": 6}
    listed = {"/": look, "/?page=2": look}
    assert found == [{**listed, "a review": of_review, "a review?together=1": of_review}] * 2


def test_an_old_review_is_found_by_its_address(any_desk, fresh):
    """A link works after a restart, however far down the list its review is."""
    for number in range(9):
        any_desk.wait(f"t{number}")
    with any_desk.client() as first:
        address, _ = opened(first, 8)
    with any_desk.client() as second:
        assert "t0" in second.get(address).text
    config = {"configurable": {"thread_id": "t0"}}
    resume(any_desk.graph, config, respond({"name": "Bob", "count": 1}))
    with any_desk.client() as third:
        assert third.get(address).status_code == 410


def test_a_link_opens_before_all_reviews_are_read(tmp_path, monkeypatch):
    """The table of a database says where a review is, so that nobody waits for the others."""
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        desk = Desk(saver)
        for number in range(9):
            desk.wait(f"t{number}")
        with desk.client() as first:
            address, _ = opened(first, 8)
        monkeypatch.setattr(waiting, "FIRST_S", 0.0)
        read = []
        monkeypatch.setattr(waiting.Inbox, "read", counting(waiting.Inbox.read, read))
        monkeypatch.setattr(waiting.Waiting, "_read_part", never)
        with desk.client() as second:
            assert "t0" in second.get(address).text
    assert set(read) == {1}


async def never(*args):
    """Read for ever."""
    await asyncio.Event().wait()
