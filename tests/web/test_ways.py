"""The ways to answer are the decisions of the table: what each needs, and what it sends."""

from dataclasses import replace

import pytest

from graph_retry._core.review import decisions
from graph_retry._core.review.review_record import SHOWN, Shown
from graph_retry.desk.web.forms.ways import ways_of
from graph_retry.desk.web.page import environment
from graph_retry.hooks import Alternatives
from graph_retry.threads import attempts_of, list_reviews
from tests.web.forms import Form
from tests.web.test_answers import opened, sent

WORDS = environment().get_template("ways.html").module


def test_every_decision_of_the_table_has_a_way(desk):
    """Each that is allowed is offered once, with words of its own and a key that no other has."""
    desk.options["allowed_decisions"] = decisions.DECISION_TYPES
    desk.wait()
    (review,) = list_reviews(desk.graph)
    ways = ways_of(review)
    assert {way.word for way in ways} == set(decisions.DECISION_TYPES)
    assert len({WORDS.key(way) for way in ways}) == len({WORDS.title(way) for way in ways}) == 8
    assert not {WORDS.key(way) for way in ways} & set("jkg/?")


def test_a_decision_that_the_page_does_not_know_is_offered(desk, monkeypatch):
    """A new row of the table gets a way from its row, and sends what the row says."""
    desk.options["allowed_decisions"] = ["approve", "assign"]
    desk.wait()
    (review,) = list_reviews(desk.graph)
    row = replace(decisions.ROWS["assign"], does=lambda _: "lend it to somebody")
    monkeypatch.setitem(decisions.ROWS, "lend", row)
    shown = review.value["response_schema"]["oneOf"]
    properties = {**shown[1]["properties"], "type": {"const": "lend"}}
    value = {
        **review.value,
        "review_configs": [{"allowed_decisions": ["approve", "lend"]}],
        "response_schema": {"oneOf": [shown[0], {**shown[1], "properties": properties}]},
    }
    approve, lend = ways_of(replace(review, value=value))
    assert (approve.word, WORDS.title(lend), lend.needs) == ("approve", "Lend", "to")
    assert WORDS.tells(lend) == "lend it to somebody"
    assert lend.make(review, "bob") == {"type": "lend", "to": "bob"}


def test_a_fact_with_a_heading_is_on_the_page(desk, monkeypatch):
    """An entry of the table of facts is enough."""
    monkeypatch.setitem(SHOWN, "function_name", Shown(heading="The name of the function"))
    desk.wait()
    with desk.client() as client:
        assert "<summary>The name of the function</summary>" in opened(client)[1]


def test_a_review_is_put_off_and_comes_back_when_it_is_asked_for(desk):
    """It leaves the list without a call, is listed as deferred, and can still be answered."""
    desk.options["allowed_decisions"] = ["approve", "defer"]
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("defer")
        assert "You will be asked later." in sent(client, form).text
        assert "No review waits" in client.get("/").text
        page = client.get("/?tab=later").text
        assert "back in 59 minutes" in page
        form = Form(opened(client, tab="later")[1])
        form.choose("approve")
        assert "attempt 2 failed, too" in sent(client, form).text
    assert len(desk.calls) == 2


def test_a_question_to_a_colleague_stays_with_the_review(desk):
    """Its label is shown until somebody answers, redacted, and the ledger keeps it."""
    desk.options |= {"allowed_decisions": ["approve", "assign"], "labels": {"team": "red"}}
    desk.options["redact"] = lambda text: text.replace("Hopper", "***")
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("assign")
        form.fill("text:", "bo")
        form.fill("words.assign", "Is Mrs Hopper\na customer?")
        assert "The review is assigned to bo." in sent(client, form).text
        page = opened(client)[1]
        assert 'dir="auto">ada: Is Mrs *** a customer?</p>' in page
        (review,) = list_reviews(desk.graph)
        assert review.labels == {
            "team": "red",
            "assignee": "bo",
            "remark": "ada: Is Mrs *** a customer?",
        }
        form = Form(page)
        form.choose("approve")
        sent(client, form)
    (ledger,) = attempts_of(desk.graph, {"configurable": {"thread_id": "t1"}})
    (before,) = ledger.attempts[0]["decision"]["before"]
    assert (before["type"], before["message"]) == ("assign", "Is Mrs ***\na customer?")


def test_a_review_is_given_to_somebody(desk):
    """It stays open with the label `assignee`; without a name nothing is sent."""
    desk.options["allowed_decisions"] = ["approve", "assign"]
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("assign")
        assert sent(client, form).status_code == 422
        page = client.get("/").text
        form = Form(opened(client)[1])
        form.choose("assign")
        form.fill("to.text:", "grace")
        assert "The review is assigned to grace." in sent(client, form).text
        assert "assignee: grace" not in page
        assert "assignee: grace" in client.get("/").text
    assert len(desk.calls) == 1


@pytest.mark.parametrize("word", ["defer", "assign"])
def test_what_decides_nothing_is_offered_where_it_is_allowed(desk, word):
    """By default nobody is asked to put a question off or to give it away."""
    desk.wait()
    with desk.client() as client:
        assert f'value="{word}" data-way' not in opened(client)[1]


@pytest.mark.parametrize("chosen", [None, 2])
def test_one_of_several_alternatives_is_chosen_by_its_number(desk, chosen):
    """The first is chosen beforehand; the model is called with the one that was taken."""
    options = [{"model": "large", "temperature": 0.5}, {"model": "large", "temperature": 0.0}]

    def propose(_error, _attempt, params):
        return Alternatives([params.model_copy(update=each) for each in options])

    desk.options["on_retry"] = propose
    desk.wait()
    with desk.client() as client:
        page = opened(client)[1]
        assert page.count("<del>1.0</del><ins>0.5</ins>") == 1
        assert page.count("<del>1.0</del><ins>0.0</ins>") == 1
        form = Form(page)
        form.choose("approve")
        if chosen:
            form.fill(".choice.choice:", str(chosen))
        sent(client, form)
    taken = options[(chosen or 1) - 1]
    assert [call.temperature for call in desk.calls[1:]] == [taken["temperature"]]
