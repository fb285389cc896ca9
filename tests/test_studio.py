"""`make studio`: what it starts and prints, and its graphs as clients meet them over HTTP."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from langgraph_sdk import get_sync_client

from nodes.extract import INVOICE
from tests.dev_server import _wait_until_ready

ROOT = Path(__file__).parent.parent
NEEDED = ["Makefile", "langgraph.json", "pyproject.toml", "README.md", "graph_retry", "nodes"]
OFFLINE = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "1",
    "LANGSMITH_TRACING": "false",
}
# The packages are installed already: make must not install them again.
MAKE = ["make", "--no-print-directory", "-o", ".venv/.studio", "studio"]


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    """Run `make studio` in a copy of the project, whose threads are not the user's.

    Yields the URL and what was printed; Ctrl-C must end it.
    """
    folder = tmp_path_factory.mktemp("project")
    for name in NEEDED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(sys.prefix)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "studio.log"
    environment = {name: value for name, value in os.environ.items() if name not in OFFLINE}
    with log.open("w") as out:
        server = subprocess.Popen(
            [*MAKE, f"PORT={port}"],
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(url, server, log)
        yield url, log.read_text()
        os.killpg(server.pid, signal.SIGINT)
        server.wait(60)
        with pytest.raises(ProcessLookupError):
            os.killpg(server.pid, 0)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


@pytest.fixture(scope="module")
def client(studio):
    """Return a client of that server."""
    with get_sync_client(url=studio[0]) as client:
        yield client


def example_of(printed):
    """Read the example input that is printed."""
    return json.loads(printed.partition("Example input:")[2].splitlines()[0])


def test_it_tells_what_to_open(studio):
    """Each client's settings are printed with the port that was asked for."""
    url, printed = studio
    assert f"https://smith.langchain.com/studio/?baseUrl={url}\n" in printed
    assert f"deployment URL {url}, graph id extract, chat, image or review_agent\n" in printed
    assert f"{url}/docs\n" in printed
    assert example_of(printed)["messages"]
    assert "[info" not in printed


def test_nothing_is_sent_anywhere(tmp_path):
    """The server is started on loopback without analytics, version check, traces or browser."""
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nenv\necho "STARTED $@"\n')
    python.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in OFFLINE}
    done = subprocess.run(
        [*MAKE, f"BIN={tmp_path}", "PORT=4711"],
        cwd=ROOT,
        env={**environment, "LANGSMITH_TRACING": "true"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    seen = done.stdout.splitlines()
    assert {f"{name}={value}" for name, value in OFFLINE.items()} <= set(seen)
    started = next(line for line in seen if line.startswith("STARTED ")).split()
    assert started[1:4] == ["-m", "langgraph_cli", "dev"]
    assert {"--no-browser", "127.0.0.1", "4711"} <= set(started)


def test_studio_shows_what_each_graph_is_for(client):
    """Every graph of `langgraph.json` is an assistant with its description."""
    served = json.loads((ROOT / "langgraph.json").read_text())["graphs"]
    found = {each["graph_id"]: each["description"] for each in client.assistants.search()}
    assert found == {name: graph["description"] for name, graph in served.items()}


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("extract", ["prompt", "document", "output_schema", "model", "temperature"]),
        ("chat", ["system", "message", "history", "model", "temperature"]),
        ("image", ["prompt", "model", "seed", "output_mime_type"]),
        ("review_agent", ["prompt", "request", "model", "reviewer"]),
    ],
)
def test_the_input_form_is_typed(client, name, fields):
    """The input is a chat and the params model, each field with type, default and description."""
    (assistant,) = client.assistants.search(graph_id=name)
    schema = client.assistants.get_schemas(assistant["assistant_id"])["input_schema"]
    assert set(schema["properties"]) == {"messages", "params"}
    assert schema["properties"]["messages"]["type"] == "array"
    params = schema["$defs"][schema["properties"]["params"]["$ref"].rpartition("/")[2]]
    assert list(params["properties"]) == fields
    for field in params["properties"].values():
        assert field["description"]
        assert {"type", "enum"} & field.keys()
    assert "required" not in params


def given(text):
    """Return what a chat client sends."""
    return {"messages": [{"type": "human", "content": text}]}


@pytest.mark.parametrize(
    ("name", "text", "answers", "told"),
    [
        ("extract", INVOICE, [{}, {}], '"total": 1240.5'),
        ("chat", "hello", [{}, {}], "You wrote: hello"),
        ("image", "a boat", [{}, {}], "image/svg+xml"),
        ("review_agent", "Refund me.", [{"request": "Refund C-1234."}], '"customer": "C-1234"'),
    ],
)
def test_a_message_opens_a_thread_that_pauses_and_ends(client, name, text, answers, told):
    """A bare chat message is input enough; a chat UI's approvals and edits lead to the result."""
    thread_id = client.threads.create()["thread_id"]
    values = client.runs.wait(thread_id, name, input=given(text))
    for changes in answers:
        (question,) = values["__interrupt__"]
        assert client.threads.get(thread_id)["status"] == "interrupted"
        (action,) = question["value"]["action_requests"]
        edited = {"name": action["name"], "args": {**action["args"], **changes}}
        edit = {"type": "edit", "edited_action": edited}
        decision = {"decisions": [edit if changes else {"type": "approve"}]}
        resume = {question["id"]: decision}
        values = client.runs.wait(thread_id, name, command={"resume": resume})
    assert client.threads.get(thread_id)["status"] == "idle"
    assert [message["type"] for message in values["messages"]] == ["human", "ai"]
    assert told in json.dumps(values["messages"][-1]["content"]).replace('\\"', '"')
    assert values["status"] == "succeeded"


@pytest.mark.parametrize("name", ["extract", "chat", "image"])
def test_the_printed_example_ends_well_with_two_approvals(studio, client, name):
    """Whoever copies it reaches a result, on the graph that reads its lines as well."""
    thread_id = client.threads.create()["thread_id"]
    client.runs.wait(thread_id, name, input=example_of(studio[1]))
    for _ in range(2):
        values = client.runs.wait(thread_id, name, command={"resume": "approve"})
    assert values["status"] == "succeeded"


def test_a_text_without_a_line_to_read_says_what_lines_are_read(client):
    """A greeting is the first thing people send; the review tells what would help."""
    thread_id = client.threads.create()["thread_id"]
    values = client.runs.wait(thread_id, "extract", input=given("hello"))
    (question,) = values["__interrupt__"]
    assert "`Vendor: …`, `Total: …`, `Due: …`" in question["value"]["raw_output"]
