"""What is typed is never lost: offline, logged out, after a restart, a reload, a failed answer."""

import contextlib

from selenium.webdriver import Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from graph_retry import reject, resume
from graph_retry.desk.web import create_app
from tests.web.conftest import serving
from tests.web.test_browser import CHOSEN, WITHIN_S, main_text, one, open_review, wait_for, way

TEXT = "Count the ships, please."
AT = {"configurable": {"thread_id": "t1"}}


class Door:
    """An ASGI app in front of the page that can fail in several ways."""

    def __init__(self, app):
        self.app, self.status, self.seen = app, None, []

    async def __call__(self, scope, receive, send):
        if scope["method"] == "POST":
            self.seen.append(scope["path"])
        if self.status is None or scope["path"].startswith("/static"):
            await self.app(scope, receive, send)
            return
        if self.status == "cut":
            raise ConnectionResetError
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": b"no"})


@contextlib.contextmanager
def typing(browser, desk, text=TEXT):
    """Type a comment into a review; yields the door of the page."""
    desk.wait()
    door = Door(create_app(desk.graph, authorize=lambda _: "ada"))
    with serving(door) as page:
        open_review(browser, page)
        line(browser, "connected")
        way(browser, "c")
        box(browser).send_keys(text)
        line(browser, "draft saved")
        yield door


def box(browser):
    """Return the box of a comment."""
    return one(browser, "[name$='words.comment']")


def line(browser, text):
    """Wait until the line of the page says something."""
    WebDriverWait(browser, WITHIN_S).until(lambda _: text in one(browser, "#line").text, text)


def test_a_failed_answer_can_be_sent_again(browser, desk):
    """Logged out, a broken server, a cut connection: the text stays, and the reason is told."""
    with typing(browser, desk) as door:
        for status, told in ((401, "you are logged out"), (500, "the server failed")):
            door.status = status
            one(browser, CHOSEN).click()
            wait_for(browser, told)
            assert box(browser).get_attribute("value") == TEXT
        line(browser, "Not connected")
        browser.set_network_conditions(offline=True, latency=0, throughput=0)
        one(browser, CHOSEN).click()
        wait_for(browser, "the server does not answer")
        browser.set_network_conditions(offline=False, latency=0, throughput=10_000_000)
        door.status = None
        line(browser, "connected")
        one(browser, CHOSEN).click()
        wait_for(browser, "attempt 2 failed, too")
    assert TEXT in desk.calls[1].model_dump_json()


def test_a_draft_comes_back_and_goes(browser, desk):
    """After a reload it is in the form; after it was sent, or discarded, it is gone."""
    with typing(browser, desk):
        browser.refresh()
        wait_for(browser, "This is your draft.")
        assert box(browser).get_attribute("value") == TEXT
        assert box(browser).is_displayed()
        one(browser, ".draft button").click()
        WebDriverWait(browser, WITHIN_S).until(
            lambda _: not browser.find_elements(By.CSS_SELECTOR, ".draft")
        )
        way(browser, "c")
        assert box(browser).get_attribute("value") == ""
        box(browser).send_keys("Once more.")
        line(browser, "draft saved")
        browser.refresh()
        wait_for(browser, "This is your draft.")
        one(browser, CHOSEN).click()
        wait_for(browser, "attempt 2 failed, too")
        assert browser.execute_script("return Object.keys(localStorage).length") == 0


def test_a_restart_while_typing_loses_nothing(browser, desk):
    """Another process serves the same review: the open page is connected again, and can send."""
    with typing(browser, desk) as door:
        door.status = "cut"
        line(browser, "Not connected")
        door.app, door.status = create_app(desk.graph, authorize=lambda _: "ada"), None
        line(browser, "connected")
        one(browser, CHOSEN).click()
        wait_for(browser, "attempt 2 failed, too")
    assert TEXT in desk.calls[1].model_dump_json()


def test_an_added_item_is_in_the_draft(browser, desk):
    """What a button of the form has changed comes back as well."""
    desk.wait("t1", {"messages": [{"role": "user", "content": "one"}]})
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as page:
        open_review(browser, page)
        way(browser, "e")
        one(browser, "button[value='add:/messages']").send_keys(Keys.ENTER)
        wait_for(browser, "Remove")
        WebDriverWait(browser, WITHIN_S).until(
            lambda _: browser.find_elements(By.CSS_SELECTOR, "[name$='text:/messages/1/content']")
        )
        one(browser, "[name$='text:/messages/1/content']").send_keys("two")
        line(browser, "draft saved")
        browser.refresh()
        wait_for(browser, "This is your draft.")
        assert one(browser, "[name$='text:/messages/1/content']").get_attribute("value") == "two"


def test_a_review_that_closed_meanwhile_shows_the_draft(browser, desk):
    """The text can be copied, however the person comes back; the button says that it is late."""
    with typing(browser, desk):
        with contextlib.suppress(Exception):
            resume(desk.graph, AT, reject("too late"))
        wait_for(browser, "This review is closed")
        assert "Somebody else answered" in one(browser, CHOSEN).text
        browser.refresh()
        wait_for(browser, "What you typed")
        assert TEXT in main_text(browser)
