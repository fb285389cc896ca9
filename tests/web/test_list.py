"""The list: found, sorted, cut into pages, and true to what waits elsewhere."""

import re

import pytest

from graph_retry import respond, resume
from graph_retry.inbox import list_reviews
from graph_retry.web import waiting
from tests.web.forms import Form
from tests.web.test_answers import opened


def titles(client, **view):
    """Choose what is listed, and return the threads that are."""
    form = Form(client.get("/").text, "filter")
    for name, text in view.items():
        form.fill(name, text)
    page = client.post(form.action, data=dict(form.controls)).text
    return re.findall(r'<span class="quiet">([\w-]+)</span></span>', page)


def test_the_list_is_searched_filtered_and_sorted(desk):
    """By words of what is wrong, by label, by kind, by call, and by what was asked first."""
    for name, team in (("one", "red"), ("two", "blue"), ("three", "red")):
        desk.options = {"labels": {"team": team}, "review": "always"}
        desk.wait(name, {"model": "large" if name == "two" else "small"})
    with desk.client() as client:
        assert titles(client) == ["three", "two", "one"]
        assert titles(client, order="oldest") == ["one", "two", "three"]
        assert titles(client, label="team: red", order="newest") == ["three", "one"]
        assert titles(client, label="", kind="valid, to approve") == ["two"]
        assert titles(client, kind="", text="VALID integer") == ["three", "one"]
        assert titles(client, text="nowhere") == []
        assert "None of them fits" in client.get("/").text


@pytest.fixture
def small_pages(monkeypatch):
    """Read a few at a time, and look for what is new with each page."""
    for name, size in (("PAGE", 4), ("NEWS", 3), ("TOP", 2), ("FRESH_S", 0.0)):
        monkeypatch.setattr(waiting, name, size)
    monkeypatch.setattr(waiting, "NEWS_S", 60.0)


def counted(client):
    """Return how many the list says wait."""
    return int(re.search(r'id="count">(\d+) review', client.get("/").text)[1])


def test_the_list_follows_what_happens_elsewhere(desk, small_pages):
    """However many pages it takes: what is new appears at once, what is answered goes in turn."""
    for number in range(10):
        desk.wait(f"t{number}")
    with desk.client() as client:
        assert counted(client) == 10
        for number in range(10, 20):
            desk.wait(f"t{number}")
        assert counted(client) == 20
        for review in list_reviews(desk.graph)[1::2]:
            review.answer(respond({"name": "Bob", "count": 1}))
        looks = [counted(client) for _ in range(10)]
        assert looks[-1] == 10
        assert looks == sorted(looks, reverse=True)


def test_an_old_review_is_found_by_its_address(desk, small_pages):
    """A link works after a restart, however far down the list its review is."""
    for number in range(9):
        desk.wait(f"t{number}")
    with desk.client() as first:
        address, _ = opened(first, 8)
    with desk.client() as second:
        assert "t0" in second.get(address).text
    resume(desk.graph, {"configurable": {"thread_id": "t0"}}, respond({"name": "Bob", "count": 1}))
    with desk.client() as third:
        assert third.get(address).status_code == 410
