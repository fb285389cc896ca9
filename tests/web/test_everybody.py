"""Each page in Chromium: axe finds nothing, it fits a narrow screen, keys reach all of it."""

import threading
from importlib.resources import files

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from graph_retry.desk.web import create_app
from graph_retry.observers import Links
from graph_retry.threads import list_reviews
from tests.web.conftest import chromium, serving
from tests.web.test_browser import main_text, one, press, send, wait_for, way

AXE = (files("axe_core_python") / "axe.min.js").read_text()
SECRET = "a text that nobody else knows"
TOO_WIDE = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


def checked(browser):
    """Look for what shuts somebody out, and for what is too wide; return how much was looked at."""
    browser.execute_script(AXE)
    found = browser.execute_async_script("axe.run().then(arguments[0])")
    told = [(each["id"], each["nodes"][0]["html"][:200]) for each in found["violations"]]
    assert told == []
    assert browser.execute_script(TOO_WIDE) <= 0
    return len(found["passes"])


@pytest.fixture(params=[(320, "dark"), (1280, "light")], ids=["phone", "desk"])
def seen(request, browser):
    """Give the test a narrow screen at night, and a wide one by day."""
    width, light = request.param
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = [{"name": "prefers-color-scheme", "value": light}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    yield browser
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


@pytest.mark.slow
def test_everybody_can_use_the_list_and_a_review(seen, desk):
    """The list, a review with each form, a refusal, many alike, the outcomes, history, a ledger."""
    browser = seen
    desk.options["labels"] = {"team": "x" * 120}
    desk.options["allowed_decisions"] = ["approve", "edit", "comment", "respond", "defer", "reject"]
    for number in range(2):
        chat = [{"role": "user", "content": "Hi"}]
        given = {"prompt": "y" * 300, "messages": chat, "extra": {"z" * 80: "w" * 300}}
        desk.wait(f"t{number}", given)
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as page:
        browser.get(f"{page}/")
        assert checked(browser) > 10
        one(browser, ".row").click()
        for key in "ercdx":
            way(browser, key)
            checked(browser)
        way(browser, "r")
        one(browser, "[name$='number:/count']").clear()
        one(browser, ".way > input:checked ~ .panel .send").click()
        wait_for(browser, "Write a number")
        checked(browser)
        way(browser, "x")
        one(browser, ".way > input:checked ~ .panel [name=alike]").click()
        wait_for(browser, "answer 2 reviews at once")
        checked(browser)
        one(browser, ".send").click()
        wait_for(browser, "2 answers are applied.")
        checked(browser)
        for tab in ("mine", "running", "later", "decided"):
            browser.get(f"{page}/?tab={tab}&text=x&label=a%3A+b")
            checked(browser)
        browser.get(f"{page}/team")
        wait_for(browser, "The oldest")
        checked(browser)
        browser.get(f"{page}/history")
        wait_for(browser, "The last calls")
        checked(browser)
        one(browser, ".row").click()
        one(browser, ".attempts summary, .attempts details").click()
        checked(browser)


def test_everybody_can_use_the_other_pages(seen, desk, page):
    """Nothing waits, no such page, filters, questions together, a refusal, a thread that waits."""
    browser = seen
    for address, told in (("/", "No review waits"), ("/nowhere", "no such page")):
        browser.get(f"{page}{address}")
        wait_for(browser, told)
        checked(browser)
    desk.wait("t2", {}, {"prompt": "Another one?"})
    browser.get(f"{page}/")
    wait_for(browser, "2 reviews wait")
    one(browser, ".filter summary").click()
    checked(browser)
    one(browser, ".row").click()
    one(browser, ".also .strong").click()
    wait_for(browser, "Send the chosen answers")
    checked(browser)
    one(browser, ".send-all .send").click()
    wait_for(browser, "Choose at least one answer.")
    checked(browser)
    browser.get(one(browser, ".ids a").get_attribute("href"))
    wait_for(browser, "waits for an answer")
    checked(browser)


@pytest.fixture
def slow(desk):
    """Let three calls wait for a person; what the model then answers takes until this is set."""
    answers = threading.Event()
    for number in range(3):
        desk.wait(f"t{number}", {"prompt": "y" * 300})
    desk.says = lambda _: answers.wait(60) and '{"name": "Ada", "count": 3}'
    yield answers
    answers.set()


def approving(browser, page):
    """Open the newest review, and choose to call the model again."""
    browser.get(f"{page}/")
    one(browser, ".row").click()
    way(browser, "a")
    return browser


def test_everybody_can_use_the_page_while_the_model_is_called(seen, slow, page):
    """It finds out by itself when the result is there, and then leads to the next review."""
    browser = approving(seen, page)
    one(browser, ".way > input:checked ~ .panel .send").click()
    wait_for(browser, "Your answer is being applied")
    checked(browser)
    slow.set()
    wait_for(browser, "its output is valid")
    assert browser.switch_to.active_element.get_attribute("id") == "next"


@pytest.mark.slow
def test_everybody_can_use_the_page_while_several_answers_are_applied(seen, slow, page):
    """It counts them by itself, and the link that has the focus keeps it."""
    browser = approving(seen, page)
    one(browser, ".way > input:checked ~ .panel [name=alike]").click()
    wait_for(browser, "answer 3 reviews at once")
    one(browser, ".send").click()
    wait_for(browser, "0 of 3 answers are applied")
    checked(browser)
    slow.set()
    wait_for(browser, "3 answers are applied.")
    assert browser.switch_to.active_element.get_attribute("id") == "next"


def test_many_are_answered_by_keys_alone(browser, desk, page):
    """From the list to the answer of each alike without a mouse; one is left out by its tick."""
    for number in range(3):
        desk.wait(f"t{number}")
    browser.get(f"{page}/")
    wait_for(browser, "3 alike")
    press(browser, "j", Keys.ENTER)
    wait_for(browser, "What should happen?")
    press(browser, "x", Keys.TAB, Keys.TAB, Keys.ENTER)
    wait_for(browser, "answer 3 reviews at once")
    press(browser, "j", "j", Keys.SPACE)
    send(browser)
    wait_for(browser, "2 answers are applied.")
    assert len(list_reviews(desk.graph)) == 1


@pytest.mark.slow
def test_without_scripts_many_are_answered_and_the_history_is_shown(desk, page):
    """Forms and links are enough for it."""
    for number in range(2):
        desk.wait(f"t{number}")
    with chromium(scripts=False) as browser:
        browser.get(f"{page}/")
        one(browser, ".row").click()
        way(browser, "x")
        one(browser, ".way > input:checked ~ .panel [name=alike]").click()
        wait_for(browser, "answer 2 reviews at once")
        one(browser, ".send").click()
        wait_for(browser, "2 answers are applied.")
        browser.get(f"{page}/history")
        wait_for(browser, "2 calls")
    assert list_reviews(desk.graph) == []


def test_a_link_from_a_message_is_enough(browser, desk):
    """Who opens it answers the one question; the page says that it can be closed."""
    desk.wait()
    app = create_app(desk.graph, secret=SECRET)
    with serving(app) as page:
        browser.get(Links(page, secret=SECRET).url_for(list_reviews(desk.graph)[0]))
        assert checked(browser) > 10
        way(browser, "x")
        one(browser, ".way > input:checked ~ .panel .send").click()
        wait_for(browser, "You can close this page.")
        assert browser.find_elements(By.CSS_SELECTOR, ".home") == []
        browser.get(f"{page}/")
        assert "That is not possible." in main_text(browser)
