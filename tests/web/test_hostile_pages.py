"""Hostile params and outputs on every page in Chromium: nothing runs, breaks, or leaves."""

import json
import re

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from graph_retry.desk.web import create_app
from graph_retry.observers import Links
from graph_retry.threads import list_reviews
from tests.web.conftest import serving
from tests.web.test_browser import CHOSEN, one, requested, wait_for, way
from tests.web.test_everybody import SECRET, TOO_WIDE
from tests.web.test_safety import HOSTILE

TEXT = HOSTILE.replace("\ud800", "")
MEGABYTE = "<b>&\u202e\x1b[31m</b>" * 50_000 + "x" * 100_000


def unharmed(browser):
    """Look whether something ran, was built from a text, or is too wide."""
    assert browser.title != "owned"
    said = [entry["message"] for entry in browser.get_log("browser")]
    # A refused form has the status 422, and a review that was just answered has 410.
    assert [each for each in said if not re.search(r"status of (410|422) ", each)] == []
    built = "main script, main iframe, main [onfocus], main [onerror], main img:not(.picture)"
    assert not browser.find_elements(By.CSS_SELECTOR, built)
    assert browser.execute_script(TOO_WIDE) <= 0


def rows_of(browser, page):
    """Open the list without filters; return the addresses of its reviews."""
    browser.delete_all_cookies()
    browser.get(f"{page}/")
    return [row.get_attribute("href") for row in browser.find_elements(By.CSS_SELECTOR, ".row")]


def forget(browser):
    """Leave the page of an earlier test, which still asks its server, and empty the logs."""
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)


def follow_link(browser, page, review):
    """Open the link to a review, whose draft then comes back."""
    browser.get(Links(page, secret=SECRET).url_for(review))
    wait_for(browser, "This is your draft.")


@pytest.fixture
def hostile_desk(desk):
    """Let two reviews wait whose every text is hostile, one of them a megabyte long."""
    desk.says = lambda params: json.dumps({"name": params.prompt, "count": "x" * 3_000})
    desk.options["labels"] = {"team": TEXT[:150], "long": "y" * 180}
    for thread, prompt in ((f"{TEXT[:80]} {'t' * 200}", TEXT), ("t2", MEGABYTE)):
        desk.wait(thread, {"prompt": prompt, "extra": {TEXT[:60]: "z" * 5_000}})
    return desk


@pytest.mark.parametrize("width", [320, 1400])
@pytest.mark.slow
def test_hostile_content_does_nothing_on_any_page(browser, hostile_desk, width):
    """Lists, reviews, a refusal, previews, outcomes of one and of many, history, ledger, link."""
    desk = hostile_desk
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    forget(browser)
    app = create_app(desk.graph, authorize=lambda _: "ada", secret=SECRET)
    try:
        with serving(app) as page:
            browser.get(f"{page}/")
            unharmed(browser)
            for address in rows_of(browser, page):
                browser.get(address)
                for key in "erx":
                    way(browser, key)
                unharmed(browser)
            one(browser, ".way > input:checked ~ .panel textarea").send_keys("<script>1</script>")
            one(browser, ".way > input:checked ~ .panel [name=alike]").click()
            wait_for(browser, "answer 2 reviews at once")
            unharmed(browser)
            browser.get(f"{page}/history")
            wait_for(browser, "The last calls")
            unharmed(browser)
            one(browser, ".row").click()
            one(browser, ".attempts details").click()
            unharmed(browser)
            follow_link(browser, page, list_reviews(desk.graph)[0])
            way(browser, "a")
            one(browser, CHOSEN).click()
            wait_for(browser, "attempt 2 failed, too")
            unharmed(browser)
            browser.get(f"{page}/")
            one(browser, "#search").send_keys(f"nowhere {TEXT[:60]}", Keys.ENTER)
            wait_for(browser, "No review matches")
            unharmed(browser)
            browser.get(rows_of(browser, page)[0])
            way(browser, "r")
            one(browser, "[name$='number:/count']").send_keys("<img src=x onerror=alert(1)>")
            one(browser, CHOSEN).click()
            wait_for(browser, "Write a number")
            unharmed(browser)
            way(browser, "a")
            one(browser, ".way > input:checked ~ .panel [name=alike]").click()
            wait_for(browser, "answer 2 reviews at once")
            one(browser, ".send").click()
            wait_for(browser, "2 answers are applied.")
            assert "failed, too" in one(browser, ".done").text
            unharmed(browser)
            assert requested(browser) == {page}
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
