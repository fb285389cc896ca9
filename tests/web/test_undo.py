"""Ten seconds in which an answer can be taken back, and what is seen while a call runs."""

import re
import threading

from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from graph_retry import respond, resume
from graph_retry.desk.web import applying, create_app
from graph_retry.threads import list_reviews
from tests.web.conftest import serving
from tests.web.forms import Form, fields
from tests.web.test_answers import opened
from tests.web.test_browser import WITHIN_S, main_text, one, open_review, press, send, wait_for
from tests.web.test_everybody import checked


def pressed(client, page, name):
    """Press a button of the page of a held answer."""
    form = Form(page.text, "held")
    form.controls.append([name, "1"])
    return client.post(form.action, files=form.posted())


def answered(client, text="5"):
    """Send an output; return the page that holds it."""
    form = Form(opened(client)[1])
    form.choose("respond")
    form.fill("number:/count", text)
    return client.post(form.action, files=form.posted())


def test_an_answer_can_be_taken_back_for_ten_seconds(desk, held):
    """Nothing is sent, the review is open, and the form has what was typed; then it is sent."""
    desk.wait()
    with desk.client() as client:
        page = answered(client)
        assert "Your answer is sent in 10 s" in page.text
        taken = pressed(client, page, "undo")
        assert "Taken back." in taken.text
        assert (desk.results, len(list_reviews(desk.graph))) == ([], 1)
        form = Form(taken.text)
        assert [text for name, text in form.controls if name.endswith("number:/count")] == ["5"]
        page = client.post(form.action, files=form.posted())
        assert "Your output is used." in pressed(client, page, "now").text
        assert "This answer is unknown" not in pressed(client, page, "undo").text
    assert [result.count for result in desk.results] == [5]


def test_a_held_answer_of_an_earlier_server_leads_back_to_its_review(desk, held):
    """A server that stops sends nothing; the next one knows the review."""
    desk.wait()
    with desk.client() as client:
        page = answered(client)
    with desk.client() as again:
        told = again.get(page.url.path)
        assert told.status_code == 404
        assert "Its review is open: your browser has the draft." in told.text
        (there,) = re.findall(r'class="strong" href="(.*?)"', told.text)
        assert "What should happen?" in again.get(there).text
    assert desk.results == []


def test_a_review_whose_answer_is_held_is_not_offered_next(desk, held):
    """Whoever answers two questions of a thread, one after the other, is done with both."""
    desk.wait("t1", {"prompt": "a"}, {"prompt": "b"})
    with desk.client() as client:
        assert "is sent in" in answered(client).text
        form = Form(opened(client, 1)[1])
        form.choose("respond")
        form.fill("number:/count", "6")
        page = client.post(form.action, files=form.posted())
        done = pressed(client, page, "now").text
        assert "Your output is used." in done
        assert "Nothing else waits." in done


def test_only_the_sender_takes_an_answer_back(desk, held):
    """Somebody else sees that it runs; an answer from elsewhere in these seconds counts."""
    desk.wait()
    with (
        desk.client(authorize=lambda request: request.headers["x-user"]) as client,
    ):
        client.headers["x-user"] = "ada"
        page = answered(client)
        client.headers["x-user"] = "bob"
        assert pressed(client, page, "undo").status_code == 403
        assert "ada" in client.get("/?tab=running").text
        resume(
            desk.graph, {"configurable": {"thread_id": "t1"}}, respond({"name": "B", "count": 1})
        )
        client.headers["x-user"] = "ada"
        assert "was not applied" in pressed(client, page, "now").text
        assert "It has what you typed" in client.get("/?tab=running").text
    assert [result.count for result in desk.results] == [1]


def test_a_reviewer_goes_on_while_an_answer_is_held(browser, desk, held, monkeypatch):
    """The next review is one key away, `u` takes the answer back, and its draft is there."""
    monkeypatch.setattr(applying, "HELD_S", 600.0)  # A busy machine is slower than a person.
    desk.wait("t1")
    desk.wait("t2")
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as page:
        open_review(browser, page)
        wait_for(browser, "What should happen?")
        press(browser, "r", "7")
        send(browser)
        wait_for(browser, "Your answer is sent in")
        checked(browser)
        press(browser, "u")
        wait_for(browser, "Taken back.")
        checked(browser)
        assert one(browser, "[name$='number:/count']").get_attribute("value") == "7"
        send(browser)
        wait_for(browser, "Your answer is sent in")
        press(browser, Keys.ENTER)
        wait_for(browser, "What should happen?")
        told(browser, "Your answer is sent in")
        checked(browser)
        press(browser, "u")
        wait_for(browser, "This is your draft.")
        assert one(browser, "[name$='number:/count']").get_attribute("value") == "7"
        assert (desk.results, len(list_reviews(desk.graph))) == ([], 2)
        send(browser)
        wait_for(browser, "Your answer is sent in")
        press(browser, Keys.ENTER)
        told(browser, "Your answer is sent in")
        browser.execute_script(
            "const now = new FormData(); now.append('now', '1');"
            "fetch(sessionStorage['graph-retry:last'], { method: 'POST', body: now });"
        )
        told(browser, "Your output is used.")
    assert [result.count for result in desk.results] == [7]


def told(browser, text):
    """Wait until a page tells what became of the answer that was sent before."""
    WebDriverWait(browser, WITHIN_S).until(
        lambda _: any(text in each.text for each in browser.find_elements(By.ID, "last")),
        f"{text!r} is not told",
    )


def test_a_call_that_runs_is_seen(browser, desk):
    """Its attempt, its seconds and what has come of a stream; then what came."""
    arrived = threading.Event()

    def says(params):
        if len(desk.calls) == 1:
            return "nothing"
        return parts()

    def parts():
        yield '{"name": "Ada, who wrote the very first program of all", '
        yield '"note": "still thinking about the number of ships",'
        assert arrived.wait(WITHIN_S)
        yield '"count": 3}'

    desk.says = says
    desk.wait()
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as page:
        open_review(browser, page)
        wait_for(browser, "What should happen?")
        press(browser, "a")
        send(browser)
        wait_for(browser, "attempt 2 · running for")
        wait_for(browser, "still thinking")
        assert "characters so far" in main_text(browser)
        checked(browser)
        arrived.set()
        wait_for(browser, "its output is valid")
    assert list_reviews(desk.graph) == []


def test_a_run_is_stopped_and_goes_on(desk):
    """The request in flight ends and is saved; nothing else begins until the person says so."""
    begun, arrived = threading.Event(), threading.Event()

    def says(_):
        if len(desk.calls) == 1:
            return "nothing"
        begun.set()
        assert arrived.wait(WITHIN_S)
        return '{"name": "Ada", "count": 3}'

    desk.says = says
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("approve")
        page = client.post(form.action, files=form.posted())
        assert begun.wait(WITHIN_S)
        assert "Stop after this attempt" in page.text
        where = str(page.url)
        assert "Stopping:" in client.post(where, files=fields(stop="1")).text
        arrived.set()
        while "The run is stopped." not in (text := client.get(where).text):
            assert 'http-equiv="refresh"' in text
        assert (len(desk.calls), desk.results) == (2, [])
        assert "stopped</span>" in client.get("/?tab=running").text
        page = client.post(where, files=fields(go_on="1"))
        while 'http-equiv="refresh"' in page.text:
            page = client.get(str(page.url))
        assert "its output is valid" in page.text
        assert "its output is valid" in client.post(where, files=fields(go_on="1")).text
        assert "stopped</span>" not in client.get("/?tab=running").text
    assert (len(desk.calls), len(desk.results)) == (2, 1)
