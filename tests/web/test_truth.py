"""The page says nothing that is not so: alternatives, deadlines, what comes next, what runs."""

import json
import re
import threading
from datetime import UTC, datetime, timedelta

import pytest

from graph_retry import resume
from graph_retry.hooks import Alternatives
from graph_retry.threads import defer, list_reviews
from tests.web.forms import Form
from tests.web.test_answers import opened, sent


def alternatives(_error, _attempt, params):
    """Suggest two other calls, the first of which changes two fields."""
    return Alternatives(
        [
            params.model_copy(update={"temperature": 0.0, "model": "large"}),
            params.model_copy(update={"prompt": "Count."}),
        ]
    )


@pytest.mark.parametrize(
    ("take", "filled", "called"),
    [
        (None, {"text:/prompt": "Mine?"}, ("Mine?", "small", 1.0)),
        (2, {}, ("Count.", "small", 1.0)),
        (2, {"number:/temperature": "0.5"}, ("Count.", "small", 0.5)),
        (1, {"choice:/model": '"small"'}, ("How many?", "small", 0.0)),
        (1, {}, ("How many?", "large", 0.0)),
    ],
)
def test_the_call_is_what_the_form_shows(desk, take, filled, called):
    """Of several alternatives none is in the form unless a press has put it there."""
    desk.options["on_retry"] = alternatives
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        if take:
            form.press(f"params take:{take}")
            form = Form(sent(client, form).text)
        for name, text in filled.items():
            form.fill(name, text)
        sent(client, form)
    made = desk.calls[1]
    assert (made.prompt, made.model, made.temperature) == called


def test_a_present_value_is_no_change(desk):
    """What the form shows at first is refused as it is: nothing was changed."""
    desk.options["on_retry"] = alternatives
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        assert "Nothing is changed yet" in sent(client, form).text
    assert len(desk.calls) == 1


@pytest.mark.parametrize(
    ("ends_in", "choices"),
    [
        (60, ["halfway to its end"]),
        (1_800, ["in 15 minutes"]),
        (18_000, ["in an hour", "in 4 hours"]),
    ],
)
def test_a_review_cannot_be_deferred_beyond_its_end(desk, ends_in, choices):
    """It would end as a rejection: only earlier times are offered, and a later one is refused."""
    desk.options |= {"allowed_decisions": ["approve", "defer"], "expires_after": ends_in}
    desk.wait()
    with desk.client() as client:
        page = opened(client)[1]
        offered = re.search(r'<select id="\w+\.until\.[^>]*>(.*?)</select>', page, re.DOTALL)[1]
        assert re.findall(r">([^<>]+)</option>", offered) == choices
        form = Form(page)
        form.choose("defer")
        late = datetime.now(UTC) + timedelta(days=1)
        form.fill("until.choice:", json.dumps(late.isoformat()))
        assert "This review ends before that time" in sent(client, form).text
    assert list_reviews(desk.graph)[0].deferred_until is None


@pytest.mark.parametrize("way", ["defer", "assign"])
def test_after_putting_a_review_off_another_one_is_next(desk, way):
    """The question that was just put off is not offered again as the next one."""
    desk.options["allowed_decisions"] = ["approve", "defer", "assign"]
    desk.wait("first")
    desk.wait("second")
    with desk.client() as client:
        address, page = opened(client)
        form = Form(page)
        form.choose(way)
        if way == "assign":
            form.fill("to.text:", "bob")
        done = sent(client, form).text
        (offered,) = re.findall(r'id="next" href="(/r/\w+)"', done)
        assert offered != address
        assert ">first</a>" in client.get(offered).text


def test_a_deferred_question_of_the_thread_is_not_the_next_one(desk):
    """Whoever answers another question of its thread goes on to a review that waits now."""
    desk.options["allowed_decisions"] = ["approve", "defer"]
    desk.says = lambda params: '{"name": "A", "count": %s}' % ("many" if len(desk.calls) < 3 else 3)
    desk.wait("t1", {"prompt": "now"}, {"prompt": "later"})
    put_off = next(each for each in list_reviews(desk.graph) if each.params["prompt"] == "later")
    at = {"configurable": {"thread_id": "t1"}}
    later = defer(until="2099-01-01T00:00:00+00:00")
    resume(desk.graph, at, answers={put_off.review_id: later})
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("approve")
        done = sent(client, form).text
        assert "its output is valid" in done
        assert "Nothing else waits." in done
        assert 'dir="auto">later</b>' in client.get("/?tab=later").text


def test_a_call_that_runs_is_running_everywhere(desk):
    """In the list, at the address of its review and in its thread, until it has ended."""
    going, shown = threading.Event(), []
    desk.wait("t1")

    def slow(_params):
        assert going.wait(60)
        return '{"name": "Ada", "count": 3}'

    desk.says = slow
    with desk.client() as client:
        address, page = opened(client)
        form = Form(page)
        form.choose("approve")
        client.post(form.action, files=form.posted(), follow_redirects=False)
        shown = [client.get("/").text, client.get(address).text]
        thread = re.search(r'href="(/t/\w+)"', page)[1]
        shown.append(client.get(thread).text)
        going.set()
        while "refresh" in client.get(address).text:
            pass
        after = client.get(address)
    assert ">running</span>" in shown[0]
    assert "The answer of ada is being applied" in shown[1]
    assert "running, 1 attempt" in shown[2]
    assert after.status_code == 410


def test_valid_outputs_did_not_fail(desk):
    """Several alike that wait for an approval are not called failures."""
    desk.says = lambda _: '{"name": "Ada", "count": 3}'
    desk.options["review"] = "always"
    for name in ("a", "b", "c"):
        desk.wait(name)
    with desk.client() as client:
        page = opened(client)[1]
    assert "2 more reviews of valid outputs of this call wait." in page
    assert "failed in the same way" not in page
