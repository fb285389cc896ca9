"""The page in Chromium: by mouse, by keys alone, without scripts, narrow, twice, late and live."""

import asyncio
import json
import threading

import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from graph_retry.desk.web import create_app, waiting
from graph_retry.threads import list_reviews
from tests.web.conftest import chromium, serving

WITHIN_S = 20
CHOSEN = ".way > input:checked ~ .panel .send"


def one(browser, query):
    """Return the first element of a query."""
    return browser.find_element(By.CSS_SELECTOR, query)


def main_text(browser):
    """Return what the page says."""
    # In one step: while a part of the page is replaced, an element that was found may be gone.
    return browser.execute_script("return document.querySelector('main')?.innerText ?? ''")


def wait_for(browser, text):
    """Wait until the page says something."""
    waiting = WebDriverWait(browser, WITHIN_S)
    waiting.until(lambda _: text in main_text(browser), f"{text!r} is not shown")


def open_review(browser, page, number=0):
    """Open a review from the inbox."""
    browser.get(f"{page}/")
    browser.find_elements(By.CSS_SELECTOR, ".row")[number].click()


def press(browser, *keys):
    """Press keys, wherever the focus is."""
    ActionChains(browser).send_keys(*keys).perform()


def send(browser):
    """Press Ctrl-Enter."""
    keys = ActionChains(browser).key_down(Keys.CONTROL).send_keys(Keys.ENTER)
    keys.key_up(Keys.CONTROL).perform()


def requested(browser):
    """Return the origins that the browser asked for something since its log was read."""
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    return {"/".join(url.split("/")[:3]) for url in urls if not url.startswith("data:")}


def way(browser, key):
    """Choose what should happen, by mouse."""
    one(browser, f"[data-way={key}] + label").click()


def test_a_field_is_changed_by_mouse(browser, desk, page):
    """Choose, type, press: the model is called with what was typed, and the outcome is shown."""
    desk.wait()
    open_review(browser, page)
    way(browser, "e")
    box = one(browser, "[name$='params.text:/prompt']")
    box.clear()
    box.send_keys("How many ships?", Keys.ENTER, "All of them.")
    one(browser, "[name$='choice:/model'] option[value='\"large\"']").click()
    one(browser, CHOSEN).click()
    wait_for(browser, "its output is valid")
    assert desk.calls[1].prompt == "How many ships?\nAll of them."
    assert desk.calls[1].model == "large"


def test_a_text_that_is_not_touched_stays_as_it_is(browser, desk, page):
    """Line ends, tabs, quotes, emoji and leading line breaks survive Chromium's own form."""
    texts = {
        "a": "\n\n x\t\ny \n",
        "b": "one\r\ntwo",
        "c": "a\rb\x00\u202e",
        "d": "<&>\"'👩‍👧 é",
        "": "",
    }
    desk.wait("t1", {"extra": texts, "prompt": 'a "name" \r\n'})
    open_review(browser, page)
    way(browser, "e")
    one(browser, "[name$='number:/temperature']").send_keys("5")
    one(browser, CHOSEN).click()
    wait_for(browser, "attempt 2 failed, too")
    assert desk.calls[1].extra == texts
    assert (desk.calls[1].prompt, desk.calls[1].temperature) == ('a "name" \r\n', 1.05)


def test_typing_takes_the_tick_for_no_value_away(browser, desk, page):
    """Whoever types a value means it: no second step is needed where scripts run."""
    desk.wait()
    open_review(browser, page)
    way(browser, "e")
    one(browser, "[name$='number:/seed']").send_keys("7")
    one(browser, CHOSEN).click()
    wait_for(browser, "attempt 2 failed, too")
    assert desk.calls[1].seed == 7


def test_enter_in_a_field_sends_nothing(browser, desk, page):
    """Only a button, or Ctrl-Enter, sends an answer."""
    desk.wait()
    open_review(browser, page)
    way(browser, "e")
    one(browser, "[name$='number:/temperature']").send_keys("1", Keys.ENTER)
    assert "What should happen?" in main_text(browser)
    assert len(desk.calls) == 1


def test_the_focus_is_on_what_was_refused(browser, desk, page):
    """A refusal is read first; the field is marked, its reason linked, and the text still there."""
    desk.wait()
    open_review(browser, page)
    way(browser, "r")
    box = one(browser, "[name$='number:/count']")
    box.clear()
    box.send_keys("1.5")
    one(browser, CHOSEN).click()
    wait_for(browser, "No call was made.")
    assert browser.switch_to.active_element.get_attribute("class") == "refused"
    box = one(browser, "[name$='number:/count']")
    assert box.get_attribute("value") == "1.5"
    reason = browser.find_element(By.ID, box.get_attribute("aria-describedby"))
    assert "valid integer" in reason.text
    assert box.get_attribute("aria-invalid") == "true"


def test_a_double_click_is_one_answer(browser, desk, page):
    """However often the button is pressed, the model is called once more."""
    desk.wait()
    open_review(browser, page)
    way(browser, "a")
    button = one(browser, CHOSEN)
    ActionChains(browser).double_click(button).perform()
    wait_for(browser, "attempt 2 failed, too")
    browser.refresh()
    wait_for(browser, "attempt 2 failed, too")
    assert len(desk.calls) == 2


def test_back_and_a_second_tab_meet_a_review_that_is_over(browser, desk, page):
    """The back button and a tab that was left open show that it is over, and change nothing."""
    desk.wait()
    open_review(browser, page)
    address = browser.current_url
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(address)
    way(browser, "a")
    one(browser, CHOSEN).click()
    wait_for(browser, "attempt 2 failed, too")
    browser.back()
    wait_for(browser, "This review is closed")
    browser.close()
    browser.switch_to.window(first)
    wait_for(browser, "This review is closed")  # told live, without a press
    way(browser, "a")
    one(browser, CHOSEN).click()
    wait_for(browser, "This review is closed")
    assert len(desk.calls) == 2


@pytest.mark.slow
def test_more_tabs_than_a_browser_has_connections_can_be_open(browser, desk, page):
    """A browser opens six connections to a server, so no page may keep one of them."""
    desk.wait()
    first = browser.current_window_handle
    for _ in range(8):
        browser.switch_to.new_window("tab")
        open_review(browser, page)
        wait_for(browser, "What should happen?")
    for handle in browser.window_handles:
        if handle != first:
            browser.switch_to.window(handle)
            browser.close()
    browser.switch_to.window(first)


def test_the_list_is_live_and_leaves_what_is_typed(browser, desk, page):
    """What comes to wait appears by itself, and a search that is being typed stays."""
    desk.wait()
    browser.get(f"{page}/")
    wait_for(browser, "1 review waits")
    one(browser, "#search").send_keys("half a wo")
    desk.wait("t2")
    wait_for(browser, "2 reviews wait")
    assert one(browser, "#search").get_attribute("value") == "half a wo"
    assert browser.switch_to.active_element.get_attribute("id") == "search"


def test_keys_alone_answer_a_review(browser, desk, page):
    """From the list to the outcome and the next review without a mouse, in a few strokes."""
    desk.wait("t1")
    desk.wait("t2")
    browser.get(f"{page}/")
    press(browser, "j", "j", "k", Keys.ENTER)
    wait_for(browser, "What should happen?")
    press(browser, "a")
    send(browser)
    wait_for(browser, "attempt 2 failed, too")
    press(browser, Keys.ENTER)
    wait_for(browser, "What should happen?")
    press(browser, "c")
    press(browser, "Count them.")
    send(browser)
    wait_for(browser, "attempt 3 failed, too")
    assert "Count them." in desk.calls[-1].model_dump_json()


@pytest.mark.slow
def test_without_scripts_all_of_it_works(desk, page):
    """A browser that runs no script lists, shows, refuses and takes answers."""
    desk.wait("t1", {"messages": [{"role": "user", "content": "one"}]})
    with chromium(scripts=False) as browser:
        open_review(browser, page)
        way(browser, "e")
        box = one(browser, "[name$='number:/temperature']")
        box.clear()
        box.send_keys("warm")
        one(browser, "button[value='add:/messages']").click()
        one(browser, "[name$='text:/messages/1/content']").send_keys("two")
        one(browser, CHOSEN).click()
        wait_for(browser, "Write a number")
        box = one(browser, "[name$='number:/temperature']")
        assert box.get_attribute("value") == "warm"
        box.clear()
        box.send_keys("0.5")
        one(browser, CHOSEN).click()
        wait_for(browser, "attempt 2 failed, too")
    assert desk.calls[1].messages[1] == {"role": "user", "content": "two"}
    assert desk.calls[1].temperature == 0.5


@pytest.mark.slow
def test_a_large_text_can_be_edited_and_nothing_leaves_the_machine(browser, desk, page):
    """A megabyte goes through the form and back; every request goes to the page's own address."""
    large = "Schön & gut. " * 80_000
    desk.wait("t1", {"prompt": large})
    browser.get("about:blank")  # The page of an earlier test asks its server until it is left.
    browser.get_log("performance")
    open_review(browser, page)
    way(browser, "e")
    one(browser, "[name$='choice:/model'] option[value='\"large\"']").click()
    one(browser, CHOSEN).click()
    wait_for(browser, "its output is valid")
    assert desk.calls[1].prompt == large
    assert requested(browser) == {page}


def test_an_answer_that_takes_long_is_shown_when_it_is_there(browser, desk):
    """While the model works the page says so, and shows the outcome by itself."""
    shown = threading.Event()

    def slow(params):
        if len(desk.calls) > 1:
            assert shown.wait(WITHIN_S)  # until the page has said that it waits
        return '{"name": "Ada", "count": 3}' if len(desk.calls) > 1 else "nothing"

    desk.says = slow
    desk.wait()
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as page:
        open_review(browser, page)
        way(browser, "a")
        one(browser, CHOSEN).click()
        wait_for(browser, "is being applied")
        shown.set()
        wait_for(browser, "its output is valid")
    assert list_reviews(desk.graph) == []


def test_a_list_hears_of_what_came_before_it_listened(browser, desk, monkeypatch):
    """A review that is found between the making of the page and its first news is shown."""
    looks = []

    class Late(waiting.Waiting):
        async def refresh(self):
            looks.append(asyncio.create_task(super().refresh()))

    monkeypatch.setattr("graph_retry.desk.web.Waiting", Late)
    app = create_app(desk.graph, authorize=lambda _: "ada")

    async def with_late_news(scope, receive, send):
        if b"since" in scope["query_string"]:
            await looks[0]
        await app(scope, receive, send)

    desk.wait()
    with serving(with_late_news) as page:
        browser.get(f"{page}/")
        wait_for(browser, "1 review waits")


def test_the_way_back_from_an_outcome_asks_nothing(browser, desk, page):
    """A form that came back once leaves no form to be sent again in the browser's history."""
    desk.wait()
    open_review(browser, page)
    way(browser, "c")
    one(browser, CHOSEN).click()
    wait_for(browser, "Write something first.")
    one(browser, "[name$='words.comment']").send_keys("Count the ships.")
    one(browser, CHOSEN).click()
    wait_for(browser, "attempt 2 failed, too")
    browser.back()
    wait_for(browser, "This review is closed.")
    assert len(desk.calls) == 2
