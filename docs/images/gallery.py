"""Draws the pictures of the gallery: `python -m docs.images.gallery`, from the repository.

Each program of `examples/` is run as a user runs it, and what it prints becomes an SVG. Two of them
serve a page: of these a Chromium without a window takes the picture. `moving` makes README's.
"""

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from docs.images.draw import draw
from docs.images.page import DAY, office, open_review, picture, show
from examples import live_page, service_with_page
from graph_retry.desk.web import applying
from tests.web.conftest import chromium, serving

FILM = (820, 860)
ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent
PRINTED = (
    "invoice",
    "email_approval",
    "agent",
    "answers_in_csv",
    "night_batch",
    "escalation_ladder",
    "confidence_gate",
    "corrections_to_dataset",
)


def printed(name: str) -> None:
    """Run a program in a folder of its own, and draw what it prints."""
    command = [sys.executable, "-m", f"examples.{name}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryDirectory() as folder:
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "cwd": folder}
        done = subprocess.run(command, check=True, env=environment, **pipes)  # noqa: S603 - our own programs
    lines = [f"\x1b[2m$\x1b[0m python -m examples.{name}", *done.stdout.splitlines()]
    draw(lines, f"example-{name.replace('_', '-')}", title="")


def small(png: bytes, name: str, colours: int = 64) -> None:
    """Save a picture with few colours, which screens of text do not need."""
    image = Image.open(io.BytesIO(png)).convert("RGB").quantize(colours)
    image.save(HERE / f"{name}.png", optimize=True)


def live(browser: webdriver.Chrome) -> None:
    """Show the streamed page at the moment at which it waits for a person."""
    with serving(live_page.app) as url:
        show(browser, 640, DAY)
        browser.get(url)
        WebDriverWait(browser, 20).until(lambda b: b.find_element(By.ID, "ask").is_displayed())
        small(picture(browser, 420), "example-live-page")


def service(browser: webdriver.Chrome) -> None:
    """Show the mounted page as the person sees it who is logged in."""
    app = service_with_page.app
    TestClient(app).put("/invoices/7", json={"text": "Nordlicht, EUR 1,240.50"})
    with serving(app) as url:
        show(browser, 760, DAY)
        browser.execute_cdp_cmd("Network.enable", {})
        headers: dict[str, Any] = {"headers": {"x-user": "ada"}}
        browser.execute_cdp_cmd("Network.setExtraHTTPHeaders", headers)
        browser.get(f"{url}/reviews/")
        browser.find_element(By.CSS_SELECTOR, ".row").click()
        small(picture(browser, 620), "example-service-with-page")
        browser.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {}})


def moving(browser: webdriver.Chrome) -> None:
    """Film one review on the page: the list, the question, an edit, and the end."""
    frames: list[tuple[Image.Image, int]] = []

    def take(milliseconds: int, top: float = 0) -> None:
        image = Image.open(io.BytesIO(picture(browser, FILM[1], top))).convert("RGB")
        sheet = Image.new("RGB", (image.width, image.width * FILM[1] // FILM[0]), "white")
        sheet.paste(image)
        frames.append((sheet.resize(FILM), milliseconds))

    applying.HELD_S = 0.0  # Nobody takes this answer back.
    with office() as url:
        show(browser, FILM[0], DAY)
        browser.get(f"{url}/")
        take(2_000)
        open_review(browser, url, "Nordlicht")
        take(4_000)
        way = browser.find_element(By.CSS_SELECTOR, "[data-way=e] + label")
        way.click()
        top = way.rect["y"] - 160  # with the ways above it
        take(2_500, top)
        choices = browser.find_elements(By.CSS_SELECTOR, ".panel select")
        model = next(each for each in choices if each.is_displayed() and "large" in each.text)
        Select(model).select_by_visible_text("large")
        take(2_500, top)
        buttons = browser.find_elements(By.CSS_SELECTOR, "button.send")
        next(each for each in buttons if each.is_displayed()).click()
        browser.implicitly_wait(20)
        browser.find_element(By.CSS_SELECTOR, "[data-taken]")
        take(3_000)
    first, *others = [image for image, _ in frames]
    times = [time for _, time in frames]
    first.save(
        HERE / "review.webp",
        save_all=True,
        append_images=others,
        duration=times,
        loop=0,
        quality=75,
    )


def main() -> None:
    """Draw all of them."""
    for name in PRINTED:
        printed(name)
    with chromium() as browser:
        live(browser)
        service(browser)
        moving(browser)


if __name__ == "__main__":
    main()
