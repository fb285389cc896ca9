"""While a person types: the server judges the draft; places lead to fields; doubts are marked."""

import json
from contextlib import nullcontext
from datetime import date, datetime, timedelta
from ipaddress import IPv4Address
from uuid import UUID

import pytest
from pydantic import BaseModel, ValidationError
from selenium.webdriver import Keys

from graph_retry import pending_reviews, respond
from graph_retry.desk.web import create_app, page
from graph_retry.hooks import Gate
from graph_retry.reviews import issues_in
from graph_retry.testing import waiting_thread
from tests.web.conftest import serving
from tests.web.forms import Form
from tests.web.test_answers import opened
from tests.web.test_browser import main_text, one, open_review, press, wait_for, way
from tests.web.test_everybody import checked


def drafted(client, name, text, way="respond"):
    """Return what is told of a draft with one field filled in."""
    address, shown = opened(client)
    form = Form(shown)
    form.choose(way)
    form.fill(name, text)
    return client.post(f"{address}/draft", files=form.posted())


@pytest.mark.parametrize(
    ("way", "name", "text", "told"),
    [
        ("respond", "number:/count", "7", {}),
        ("respond", "number:/count", "seven", {"/count": ["Write a number, such as 3 or 0.5."]}),
        ("respond", "text:/note", "x" * 61, {"/count": 1, "/note": 1}),
        ("edit", "number:/temperature", "0.5", {}),
        ("edit", "json:/extra", "{", {"/extra": 1}),
        ("approve", "number:/count", "seven", {}),
    ],
)
def test_a_draft_is_judged_by_the_schema_of_its_question(desk, way, name, text, told):
    """The problems by field, among them those of the model that are left; nothing is sent."""
    desk.wait()
    with desk.client() as client:
        found = drafted(client, name, text, way).json()
        assert found.keys() == told.keys()
        assert all(told[where] in (1, problems) for where, problems in found.items())
        assert (len(desk.calls), desk.results) == (1, [])
        assert "1 review waits" in client.get("/").text


class Visit(BaseModel):
    """Values that JSON writes as texts."""

    day: date
    at: datetime
    stay: timedelta
    id: UUID
    next: date | None = None
    hosts: list[IPv4Address] = []


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("", ""),
        ("/day", "2027-03-033 March 2027"),
        ("/day", "2027-02-30"),
        ("/at", "yesterday"),
        ("/stay", "two days"),
        ("/id", "7"),
        ("/next", "soon"),
        ("/hosts/0", "10.0.0.256"),
    ],
)
def test_the_texts_of_a_draft_are_judged_as_the_run_judges_them(place, text):
    """A wrong day, time or id is told while it is typed, and a right one is not."""
    (review,) = pending_reviews(*waiting_thread(output=Visit))
    draft = {"day": "2027-03-03", "at": "2027-03-03T10:00:00Z", "stay": "P2D", "next": None}
    draft |= {"id": "12345678123456781234567812345678", "hosts": ["10.0.0.1"]}
    name, _, item = place[1:].partition("/")
    if place:
        draft[name] = [text] if item else text
    told = [one["path"] for one in issues_in(review, respond(draft))]
    with pytest.raises(ValidationError) if place else nullcontext():
        Visit.model_validate(draft)
    assert told == [place] * bool(place)


def test_a_long_draft_is_not_judged(desk, monkeypatch):
    """It is judged when it is sent, as without JavaScript."""
    monkeypatch.setattr(page, "SHORT", 500)
    desk.wait()
    with desk.client() as client:
        assert drafted(client, "text:/name", "x" * 500).status_code == 413


def test_a_mistake_is_told_while_it_is_typed(browser, desk):
    """At its field, which stays in sight when it is mended; the name of a place leads there."""
    desk.wait()
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as served:
        open_review(browser, served)
        wait_for(browser, "One thing is wrong")
        one(browser, ".issues a.path").click()
        press(browser, *"seven")
        wait_for(browser, "One value is not valid yet.")
        assert "Write a number, such as 3 or 0.5." in main_text(browser)
        checked(browser)
        press(browser, *[Keys.BACKSPACE] * 5, "7")
        wait_for(browser, "Valid, as far as its schema tells.")
        assert "Write a number" not in main_text(browser)
        one(browser, ".show-all").click()
        one(browser, "[name$='none:/note']").click()
        one(browser, "[name$='text:/note']").send_keys("x" * 61)
        wait_for(browser, "One value is not valid yet.")
    assert len(desk.calls) == 1


def test_what_a_gate_doubts_is_marked_in_the_text_and_at_its_field(browser, desk):
    """Both lead to each other; a valid output is corrected at the doubted value first."""
    desk.says = lambda _: json.dumps({"name": "Ada", "count": 42, "note": "many"})
    desk.options["review"] = Gate(share=1, of="input")
    desk.wait("t1", {"prompt": "How many has Ada, who has many?"})
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as served:
        open_review(browser, served)
        wait_for(browser, "look here first")
        assert one(browser, "mark.is-doubt[data-place='/count']").text == "42"
        way(browser, "r")
        assert one(browser, ".is-marked .doubt").text.endswith("Not in the input: look here first.")
        checked(browser)
        one(browser, ".is-doubt a.path[data-place='/count']").click()
        press(browser, "7", Keys.TAB)
        wait_for(browser, "Valid, as far")
        one(browser, ".way > input:checked ~ .panel .send").click()
        wait_for(browser, "Your output is used.")
    assert desk.results[0].count == 7
