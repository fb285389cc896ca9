"""`graph-retry web`: the page of a database, a server and a graph, for whoever started it."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from graph_retry.desk.cli.app import app
from graph_retry.desk.web import create_app
from nodes.extract import FORMATS
from tests.dev_server import dev_server
from tests.terminal import STRICT
from tests.web.conftest import SAME_SITE
from tests.web.forms import Form, fields
from tests.web.test_answers import opened, sent

ROOT = Path(__file__).parent.parent.parent
OFFICE = [*STRICT, "-m", "examples.reviews"]


@contextlib.contextmanager
def running(command, folder):
    """Start a command that serves the page; yields it once its address is printed, and that."""
    state = {"XDG_STATE_HOME": str(folder / "state")} | dict(os.environ)
    environment = {**state, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
    started = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield started, started.stdout.readline().strip()
    finally:
        started.kill()
        started.communicate()


@pytest.mark.slow
def test_one_command_shows_the_demos_reviews(tmp_path):
    """`make web` on an empty folder: an address that lets in, seven reviews, and a clean end."""
    with running([*OFFICE, "--port", "0", "--by", "ada"], tmp_path) as (started, address):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", address)
        cookies = urllib.request.HTTPCookieProcessor()
        page = urllib.request.build_opener(cookies).open(address).read().decode()
        assert "7 reviews wait for an answer" in page
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(address.partition("?")[0])
        started.send_signal(signal.SIGINT)
        complained = started.communicate(timeout=60)[1]
    assert started.returncode == 130
    assert complained == "graph-retry: interrupted; open reviews stay open.\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "give the source"),
        (["--db", "none.sqlite"], "(No such file or directory)"),
        (["--url", "http://127.0.0.1:9", "--port", "{taken}"], "give another one with `--port`"),
    ],
)
def test_a_wrong_command_line_says_what_to_do(tmp_path, monkeypatch, capsys, options, told):
    """Nothing is served, and the error names the option."""
    monkeypatch.chdir(tmp_path)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        given = [port if option == "{taken}" else option for option in options]
        with pytest.raises(SystemExit) as ended:
            app(["web", *given])
    assert (ended.value.code, told in capsys.readouterr().err) == (2, True)


@pytest.mark.slow
def test_reviews_of_a_server_are_answered(tmp_path):
    """Of `langgraph dev` the page lists, refuses, keeps what was typed, and answers."""
    from langgraph_sdk import get_client, get_sync_client

    graphs = {"extract": f"{ROOT}/nodes/extract.py:graph"}
    with dev_server(tmp_path, graphs) as url, get_sync_client(url=url) as server:
        thread = server.threads.create(graph_id="extract")["thread_id"]
        server.runs.wait(thread, "extract", input={"params": {}})
        source = get_client(url=url)
        app = create_app(source, authorize=lambda _: "ada")
        with TestClient(app, headers=SAME_SITE) as client:
            address, page = opened(client)
            assert "Suggested changes" in page
            form = Form(page)
            form.choose("edit")
            form.fill("number:/temperature", "3")
            page = sent(client, form).text
            assert "less than or equal to 2" in page
            form = Form(page)
            form.fill("number:/temperature", "0.5")
            form.fill("text:/model", "large")
            form.fill("text:/prompt", f"Read the document. {FORMATS}")  # as was suggested
            assert "its output is valid" in sent(client, form).text
            assert client.get(address).status_code == 410
            form = Form(client.get("/history").text, "find")
            page = client.post("/t", files=fields(thread=thread)).text
            assert "succeeded, 2 attempts" in page
            client.portal.call(source.aclose)
        state = server.threads.get_state(thread)["values"]
    assert [each["decision"]["by"] for each in state["attempts"] if each["decision"]] == ["ada"]
