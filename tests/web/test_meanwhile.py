"""A review that somebody else answers while it is open on a screen: nothing typed is lost."""

import pytest

from graph_retry import edit, resume
from graph_retry.inbox import assign, list_reviews
from graph_retry.notifications import Links
from graph_retry.web.runs import Runs
from tests.web.forms import Form
from tests.web.test_answers import opened, sent

CONFIG = {"configurable": {"thread_id": "t1"}}


def test_who_comes_late_is_told_so(desk):
    """A second tab, and the way back, meet a review that is over: nothing is done twice."""
    desk.wait()
    with desk.client() as client:
        address, page = opened(client)
        first, second = Form(page), Form(client.get(address).text)
        for form in (first, second):
            form.choose("approve")
        sent(client, first)
        late = sent(client, second)
        back = client.get(address)
    assert (late.status_code, back.status_code) == (410, 410)
    assert "This review is closed" in late.text
    assert len(desk.calls) == 2


@pytest.mark.parametrize("by_link", [False, True])
def test_a_question_that_was_asked_again_meanwhile_keeps_what_was_typed(desk, by_link):
    """Another person gave it to somebody: both tabs lead to the question as it is asked now."""
    desk.options["allowed_decisions"] = ["edit", "assign"]
    desk.wait()
    secret = "a secret of at least 16 characters"
    options = {"authorize": lambda _: None, "secret": secret} if by_link else {}
    with desk.client(**options) as client:
        (review,) = list_reviews(desk.graph)
        link = Links("http://testserver", secret=secret).url_for(review)
        address, page = (link, client.get(link).text) if by_link else opened(client)
        form = Form(page)
        form.choose("edit")
        form.fill("text:/prompt", "How many apples?")
        resume(desk.graph, CONFIG, assign("bob"))
        late = sent(client, form)
        assert late.status_code == 409
        assert "asked again after you opened it" in late.text
        assert len(desk.calls) == 1
        again = client.get(address)
        assert (again.status_code, "Change the call" in again.text) == (200, True)
        desk.says = lambda _: '{"name": "Ada", "count": 3}'
        assert sent(client, Form(late.text)).status_code == 200
    assert [call.prompt for call in desk.calls[1:]] == ["How many apples?"]


@pytest.mark.parametrize("by_link", [False, True])
def test_an_answer_after_that_of_a_colleague_is_shown_with_the_colleagues_name(desk, by_link):
    """The text can be copied, and a link leads to the question that the thread asks now."""
    desk.wait()
    secret = "a secret of at least 16 characters"
    options = {"authorize": lambda _: None, "secret": secret} if by_link else {}
    with desk.client(**options) as client:
        (review,) = list_reviews(desk.graph)
        link = Links("http://testserver", secret=secret).url_for(review)
        address, page = (link, client.get(link).text) if by_link else opened(client)
        form = Form(page)
        form.choose("edit")
        form.fill("text:/prompt", "How many ships?")
        form.fill("number:/temperature", "warm")
        form.fill("words.comment", "Count <twice>.")
        resume(desk.graph, CONFIG, {**edit(prompt="How many now?"), "by": "bob"})
        late = sent(client, form)
        again = client.get(address)
        next_one = "Continue with this thread: count, attempt 2"
        for closed in (late, again):
            assert closed.status_code == 410
            assert "bob answered it just now." in closed.text
            assert (next_one in closed.text) == (not by_link)
        for typed in ("How many ships?", "&#34;warm&#34;", "Count &lt;twice&gt;."):
            assert typed in late.text
            assert typed not in again.text
    assert len(desk.calls) == 2


def test_a_refused_answer_of_a_colleague_is_not_called_yours(desk):
    """Only the person who sent it reads that it was theirs."""
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("respond")
        form.fill("output.number:/count", "1.5")
        mine = sent(client, form).text
    with desk.client(authorize=lambda _: "bob") as other:
        page = opened(other)[1]
        form = Form(page)
        form.choose("comment")
        empty = sent(other, form).text
    assert "Your answer was refused. No call was made." in mine
    assert "An answer was refused. No call was made." in page
    assert "Your answer" not in page + empty
    assert "Not sent yet." in empty


def test_an_answer_that_lost_the_race_is_shown_as_well(desk, monkeypatch):
    """Between the look at the thread and the answer, somebody else was faster."""
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        form.fill("text:/prompt", "How many ships?")
        start = Runs.start

        def late(runs, name, sent_form):
            resume(desk.graph, CONFIG, {**edit(prompt="How many now?"), "by": "bob"})
            start(runs, name, sent_form)

        monkeypatch.setattr(Runs, "start", late)
        page = sent(client, form).text
    assert "Your answer was not applied." in page
    assert "human:bob answered it" in page
    assert "How many ships?" in page
    assert len(desk.calls) == 2
