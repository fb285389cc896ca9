"""Takes pictures of a review in web clients: `make pictures CHAT=… INBOX=…`.

`CHAT` and `INBOX` are the addresses of a running Agent Chat UI and Agent Inbox. What they show is
asked by a `langgraph dev` that serves `nodes/`; a Chromium without a window opens them.
"""

import argparse
import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from langgraph_sdk import get_sync_client
from websockets.sync.client import ClientConnection, connect

from nodes.extract import INVOICE
from tests.dev_server import ROOT, dev_server

WIDTH = 1000
READY_WITHIN_S = 60
GRAPH = "extract"


class Page:
    """A page of a browser, driven by the DevTools protocol."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._numbers = itertools.count()

    def send(self, method: str, **params: Any) -> Any:
        """Send a command and return its result: nothing where a page goes on to another."""
        number = next(self._numbers)
        self._connection.send(json.dumps({"id": number, "method": method, "params": params}))
        for text in self._connection:
            message = json.loads(text)
            if message.get("id") == number:
                return message.get("result", {})
        msg = f"The browser closed its page at {method!r}."
        raise RuntimeError(msg)

    def evaluate(self, script: str) -> Any:
        """Return the value of a script."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        return result.get("result", {}).get("value")

    def wait_for(self, text: str) -> None:
        """Wait until the page shows a text, or fail with what it shows instead."""
        deadline = time.monotonic() + READY_WITHIN_S
        seen = ""
        while time.monotonic() < deadline:
            seen = self.evaluate("document.body?.innerText") or ""
            if text in seen:
                return
            time.sleep(0.2)
        msg = f"The page does not show {text!r}:\n{seen[:3000]}"
        raise RuntimeError(msg)

    def show(self, url: str, text: str, width: int, height: int) -> None:
        """Open an address in a window of this size, and wait until it shows a text."""
        size = {"width": width, "height": height, "deviceScaleFactor": WIDTH / width}
        self.send("Emulation.setDeviceMetricsOverride", **size, mobile=False)
        self.send("Page.navigate", url=url)
        self.wait_for(text)

    def save(self, name: str) -> None:
        """Save what the page shows as a picture of this folder."""
        time.sleep(2)  # until panels have moved and fonts are drawn
        picture = self.send("Page.captureScreenshot", format="png", optimizeForSpeed=False)
        Path(__file__).with_name(f"{name}.png").write_bytes(base64.b64decode(picture["data"]))


@contextmanager
def browser_page() -> Iterator[Page]:
    """Start a Chromium without a window and yield its page."""
    programs = ("chromium", "chromium-browser", "google-chrome", "chrome")
    program = next(filter(None, map(shutil.which, programs)), None)
    if program is None:
        msg = f"The pictures need a browser: install one of {', '.join(programs)}."
        raise SystemExit(msg)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless=new", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
        options += ["--hide-scrollbars", "--no-first-run", "--disable-gpu"]
        options += ["--no-sandbox"] if os.geteuid() == 0 else []
        command = [program, *options, "about:blank"]
        browser = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - on the path
        try:
            with connect(_address(Path(profile)), max_size=None) as connection:
                yield Page(connection)
        finally:
            browser.terminate()
            browser.wait()


def _address(profile: Path) -> str:
    """Return where the page of a browser that is starting listens."""
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        try:
            port = (profile / "DevToolsActivePort").read_text().splitlines()[0]
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                return str(next(page["webSocketDebuggerUrl"] for page in json.load(answer)))
        except (OSError, LookupError, StopIteration):
            time.sleep(0.1)
    msg = "The browser did not start."
    raise RuntimeError(msg)


def ask(url: str, *answers: str) -> tuple[str, str]:
    """Start a thread whose model fails, answer it; return its id and the open question's title."""
    with get_sync_client(url=url) as client:
        thread_id = client.threads.create(graph_id=GRAPH)["thread_id"]
        given: dict[str, Any] = {"messages": [{"role": "user", "content": INVOICE}]}
        state: Any = client.runs.wait(thread_id, GRAPH, input=given)
        for answer in answers:
            state = client.runs.wait(thread_id, GRAPH, command={"resume": answer})
    return thread_id, state["__interrupt__"][0]["value"]["action_request"]["action"]


def take_chat(page: Page, chat: str, server: str) -> None:
    """Take a picture of a question in Agent Chat UI."""
    thread_id, title = ask(server)
    query = {"apiUrl": server, "assistantId": GRAPH, "threadId": thread_id}
    page.show(f"{chat}/?{urlencode(query)}", title, 1250, 1500)
    page.save("chat-ui")


def take_inbox(page: Page, inbox: str, server: str) -> None:
    """Take a picture of the list of questions in Agent Inbox, and one of a question."""
    ask(server, "approve")
    thread_id, title = ask(server)
    added = {"id": "pictures", "graphId": GRAPH, "deploymentUrl": server, "selected": True}
    stored = json.dumps(json.dumps([{**added, "createdAt": "2030-01-01T00:00:00.000Z"}]))
    page.show(inbox, "Inbox", 1000, 500)
    page.evaluate(f"localStorage.setItem('inbox:agent_inboxes', {stored})")
    query = {"agent_inbox": "pictures", "offset": 0, "limit": 10, "inbox": "interrupted"}
    page.show(f"{inbox}/?{urlencode(query)}", title, 1000, 400)
    page.save("inbox")
    query["view_state_thread_id"] = thread_id
    page.show(f"{inbox}/?{urlencode(query)}", "How to answer", 1440, 1200)
    page.save("inbox-review")


def main() -> None:
    """Take the pictures of the clients that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chat", help="address of a running Agent Chat UI")
    parser.add_argument("--inbox", help="address of a running Agent Inbox")
    clients = parser.parse_args()
    graphs = {GRAPH: f"{ROOT}/nodes/{GRAPH}.py:graph"}
    with (
        tempfile.TemporaryDirectory() as folder,
        dev_server(Path(folder), graphs) as server,
        browser_page() as page,
    ):
        if clients.chat:
            take_chat(page, clients.chat.rstrip("/"), server)
        if clients.inbox:
            take_inbox(page, clients.inbox.rstrip("/"), server)


if __name__ == "__main__":
    main()
