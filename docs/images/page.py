"""Takes pictures of the page: `python -m docs.images.page`, from the repository.

It shows the reviews of `examples/reviews` in a Chromium without a window, by day and by night.
"""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from selenium import webdriver
from selenium.webdriver.common.by import By

from examples.reviews.office import JOBS, graph
from graph_retry.desk.web import applying, create_app
from tests.web.conftest import chromium, serving

DAY, NIGHT = "light", "dark"


@contextmanager
def office() -> Iterator[str]:
    """Serve the page of an office whose jobs wait for somebody."""
    made = graph.compile(checkpointer=InMemorySaver())
    for name, job in JOBS.items():
        made.invoke(job, {"configurable": {"thread_id": name}})
    with serving(create_app(made, authorize=lambda _: "ada")) as url:
        yield url


def show(browser: webdriver.Chrome, width: int, time: str) -> None:
    """Make the window as wide as that, by day or by night."""
    size: dict[str, Any] = {"width": width, "height": 900, "deviceScaleFactor": 1.5}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "mobile": False})
    wanted = [{"name": "prefers-color-scheme", "value": time}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})


def picture(browser: webdriver.Chrome, most: int, top: float = 0) -> bytes:
    """Take a picture of the page from `top` on, at most so many pixels of it."""
    shown = browser.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
    height = min(shown["height"] - top, most)
    clip = {"x": 0, "y": top, "width": shown["width"], "height": height}
    asked = {"format": "png", "captureBeyondViewport": True, "clip": {**clip, "scale": 1}}
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", asked)["data"])


def save(browser: webdriver.Chrome, name: str, most: int) -> None:
    """Save a picture of the page in this folder."""
    Path(__file__).with_name(f"{name}.png").write_bytes(picture(browser, most))


def open_review(browser: webdriver.Chrome, url: str, label: str) -> None:
    """Open the review with a label."""
    browser.get(f"{url}/")
    rows = browser.find_elements(By.CSS_SELECTOR, ".row")
    next(row for row in rows if label in row.text).click()


def main() -> None:
    """Take all pictures."""
    applying.HELD_S = 0.0  # Nobody takes these answers back.
    with office() as url, chromium() as browser:
        show(browser, 960, DAY)
        browser.implicitly_wait(20)
        browser.get(f"{url}/")
        save(browser, "web-inbox", 900)
        show(browser, 1_440, DAY)
        open_review(browser, url, "Nordlicht")
        browser.find_element(By.CSS_SELECTOR, ".side .row[aria-current]")
        browser.find_element(By.CSS_SELECTOR, "[data-way=r] + label").click()
        save(browser, "web-review", 900)
        show(browser, 960, DAY)
        browser.find_element(By.CSS_SELECTOR, "[data-way=e] + label").click()
        browser.find_element(By.CSS_SELECTOR, "[name$='text:/prompt']").send_keys(" In euros.")
        chosen = ".way > input:checked ~ .panel [name=alike]"
        browser.find_element(By.CSS_SELECTOR, chosen).click()
        browser.find_element(By.CSS_SELECTOR, ".preview")
        save(browser, "web-alike", 800)
        browser.find_element(By.CSS_SELECTOR, ".send").click()
        browser.find_element(By.CSS_SELECTOR, ".done")
        browser.get(f"{url}/history")
        save(browser, "web-history", 900)
        show(browser, 400, NIGHT)
        open_review(browser, url, "Meyer")
        browser.find_element(By.CSS_SELECTOR, "[data-way=e] + label").click()
        save(browser, "web-narrow", 1_500)


if __name__ == "__main__":
    main()
