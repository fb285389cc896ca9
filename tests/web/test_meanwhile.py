"""A review that somebody else answers while it is open on a screen: nothing typed is lost."""

from contextlib import contextmanager

import pytest

from graph_retry import edit, resume
from graph_retry.desk.web.applying import Runs
from graph_retry.observers import Links
from graph_retry.threads import assign, list_reviews
from tests.web.forms import Form
from tests.web.test_answers import opened, sent

CONFIG = {"configurable": {"thread_id": "t1"}}
BY_BOB = {**edit(model="large"), "by": "bob"}


@contextmanager
def visiting(desk, by_link):
    """Open the one review, by its link or from the list, and begin to edit its params."""
    secret = "a secret of at least 16 characters"
    options = {"authorize": lambda _: None, "secret": secret} if by_link else {}
    with desk.client(**options) as client:
        (review,) = list_reviews(desk.graph)
        link = Links("http://testserver", secret=secret).url_for(review)
        address, page = (link, client.get(link).text) if by_link else opened(client)
        form = Form(page)
        form.choose("edit")
        yield client, address, form


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
    with visiting(desk, by_link) as (client, address, form):
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
    with visiting(desk, by_link) as (client, address, form):
        form.fill("text:/prompt", "How many ships?")
        form.fill("number:/temperature", "warm")
        form.fill("words.comment", "Count <twice>.")
        resume(desk.graph, CONFIG, {**edit(prompt="How many now?"), "by": "bob"})
        late = sent(client, form)
        again = client.get(address)
        next_one = "Continue with this thread: How many?, attempt 2"
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


def together(desk, client):
    """Open the three questions of a thread on one page; return its form and the review ids."""
    desk.options["allowed_decisions"] = ["edit", "comment", "assign", "reject"]
    desk.wait("t1", {"prompt": "a"}, {"prompt": "b"}, {"prompt": "c"})
    form = Form(client.get(f"{opened(client)[0]}?together=1").text)
    ids = {review.key: review.review_id for review in list_reviews(desk.graph)}
    return form, [ids[key] for name, key in form.controls if name == "review"]


@pytest.mark.parametrize("closed", [0, 1, 2])
@pytest.mark.slow
def test_of_several_answers_the_late_one_is_told_and_the_others_are_applied(desk, closed):
    """It does not matter which review of the page a colleague has answered."""
    with desk.client() as client:
        form, ids = together(desk, client)
        for number in range(3):
            form.choose("comment", number)
        comments = [control for control in form.controls if control[0].endswith("words.comment")]
        for number, control in enumerate(comments):
            control[1] = f"Count number {number}."
        resume(desk.graph, CONFIG, answers={ids[closed]: BY_BOB})
        page = sent(client, form).text
    assert "2 answers are applied." in page
    assert "An answer was not applied." in page
    assert "<b>t1</b> · count, attempt 1: bob answered it just now." in page
    assert [f"Count number {number}." in page for number in range(3)] == [
        number == closed for number in range(3)
    ]
    assert len(desk.calls) == 6


def test_of_several_answers_only_late_ones_are_told(desk):
    """A closed review that was left alone is no news, and the others can still be answered."""
    with desk.client() as client:
        form, ids = together(desk, client)
        form.choose("reject", 1)
        resume(desk.graph, CONFIG, answers={ids[0]: BY_BOB, ids[1]: BY_BOB})
        page = sent(client, form)
        assert page.status_code == 409
        assert page.text.count("bob answered it just now.") == 1
        assert "Choose at least one answer" not in page.text
        left = Form(page.text)
        left.choose("reject")
        resume(desk.graph, CONFIG, answers={ids[2]: {**BY_BOB, "by": "cy"}})
        gone = sent(client, left)
        both = sent(client, form)
    assert (gone.status_code, both.status_code) == (410, 410)
    assert "This review is closed." in gone.text
    assert "cy answered it just now." in gone.text
    assert "These reviews are closed." in both.text
    assert both.text.count("bob answered it just now.") == 2


@pytest.mark.parametrize("again", [0, 1])
@pytest.mark.slow
def test_of_several_questions_one_that_was_asked_again_keeps_all_input(desk, again):
    """Nothing is sent until the person has seen the question as it is asked now."""
    with desk.client() as client:
        form, ids = together(desk, client)
        for number in range(2):
            form.choose("edit", number)
            prompts = [each for each in form.controls if each[0].endswith("text:/prompt")]
            prompts[number][1] = f"How many? {number}"
        resume(desk.graph, CONFIG, answers={ids[again]: assign("cy")})
        late = sent(client, form)
        assert late.status_code == 409
        assert "asked again after you opened it" in late.text
        assert len(desk.calls) == 3
        assert "2 answers are applied." in sent(client, Form(late.text)).text
    assert sorted(call.prompt for call in desk.calls[3:]) == ["How many? 0", "How many? 1"]


def test_the_first_question_of_a_page_may_be_left_open(desk):
    """The outcome is that of the answered one."""
    with desk.client() as client:
        form, _ = together(desk, client)
        form.choose("reject", 1)
        page = sent(client, form)
        again = sent(client, form)
    assert (page.status_code, again.status_code) == (200, 200)
    assert "The call is stopped." in page.text
    assert "The call is stopped." in again.text
