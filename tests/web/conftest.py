"""A graph that asks in several ways, its page on loopback, and a Chromium without a window."""

import asyncio
import contextlib
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, Literal

import pytest
import uvicorn
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from starlette.testclient import TestClient

from graph_retry import retry_llm_call
from graph_retry.desk.web import applying, create_app

READY_WITHIN_S = 20

SAME_SITE = {"sec-fetch-site": "same-origin"}
"""A header that browsers send with a form of the same site."""


class Options(BaseModel):
    """Settings within settings."""

    top: int = 3
    tags: list[str] = Field(default_factory=lambda: ["a"])


class Question(BaseModel):
    """A field of every kind."""

    prompt: str = Field(default="How many?", description="What the model is told")
    messages: list[dict[str, Any]] = Field(default_factory=list)
    model: Literal["small", "large"] = "small"
    temperature: float = 1.0
    seed: int | None = None
    day: date | None = None
    verbose: bool = False
    options: Options = Field(default_factory=Options)
    extra: dict[str, Any] = Field(default_factory=dict)


class Answer(BaseModel):
    """What the model must give."""

    name: str
    count: int
    note: str | None = Field(default=None, max_length=60)


class Desk:
    """A graph with a scripted model: calls and results are kept, `says` is what it answers."""

    def __init__(self, saver: BaseCheckpointSaver[Any] | None = None) -> None:
        self.calls: list[Question] = []
        self.says: Callable[[Question], str] = self._says
        self.options: dict[str, Any] = {}
        self.results: list[Any] = []
        self.breaks = False
        builder = StateGraph(dict)
        builder.add_node("ask", self._ask)
        builder.add_conditional_edges(
            START, lambda job: [Send("ask", each) for each in job["parts"]]
        )
        self.graph = builder.compile(checkpointer=saver or InMemorySaver())

    def _ask(self, part: dict[str, Any]) -> None:
        def call(params: Question) -> str:
            self.calls.append(params)
            return self.says(params)

        params = Question.model_validate(part)
        result = retry_llm_call(call, params, **{"output": Answer, "name": "count", **self.options})
        if self.breaks:
            raise OSError("the disk is full")
        self.results.append(result)

    @staticmethod
    def _says(params: Question) -> str:
        count = '"many"' if params.model == "small" else "3"
        return f'{{"name": "Ada", "count": {count}}}'

    def wait(self, thread: str = "t1", *parts: dict[str, Any]) -> None:
        """Start a thread that waits for an answer, or for several."""
        self.graph.invoke({"parts": list(parts) or [{}]}, {"configurable": {"thread_id": thread}})

    def client(self, **options: Any) -> TestClient:
        """Return a client of the page, in this process."""
        options = {"authorize": lambda _: "ada", **options}
        return TestClient(create_app(self.graph, **options), headers=SAME_SITE)


@pytest.fixture(autouse=True)
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let answers go without the ten seconds in which they can be taken back."""
    if "held" not in request.fixturenames:
        monkeypatch.setattr(applying, "HELD_S", 0.0)


@pytest.fixture
def held() -> None:
    """Let this test have the ten seconds."""


@pytest.fixture
def desk() -> Desk:
    """Give the test a graph of its own."""
    return Desk()


@contextlib.contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an app on a port of this machine; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = uvicorn.Config(
        app, port=port, log_level="critical", lifespan="off", timeout_graceful_shutdown=1, ws="none"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    deadline = time.monotonic() + READY_WITHIN_S
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.started
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def page(desk: Desk) -> Iterator[str]:
    """Serve the desk's page; yields its address."""
    with serving(create_app(desk.graph, authorize=lambda _: "ada")) as url:
        yield url


@contextlib.contextmanager
def chromium(*, scripts: bool = True) -> Iterator[webdriver.Chrome]:
    """Start a Chromium without a window."""
    options = webdriver.ChromeOptions()
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert program, "install Debian's package chromium"
    assert driver, "install Debian's package chromium-driver"
    options.binary_location = program
    arguments = ["--headless=new", "--disable-gpu", "--window-size=1100,900"]
    arguments += ["--disable-background-networking", "--disable-component-update", "--no-first-run"]
    arguments += ["--hide-scrollbars"]
    for argument in [*arguments, *(["--no-sandbox"] if os.geteuid() == 0 else [])]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    if not scripts:
        javascript = "profile.managed_default_content_settings.javascript"
        options.add_experimental_option("prefs", {javascript: 2})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield browser
    finally:
        browser.quit()


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    """Give the tests of a file a Chromium."""
    with chromium() as started:
        yield started
