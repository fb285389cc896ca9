"""The demo: without a terminal, in a real one, killed at the pause and during a call."""

import json
import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from examples.demo.calls import CallLog
from graph_retry.plugins import escaped
from tests.terminal import DEADLINE_S, STRICT, Terminal

ROOT = Path(__file__).parent.parent
DEMO = [*STRICT, "-m", "examples.demo"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"}

KILLED_IN_CALL = """
import os, signal, sys
import examples.demo.__main__ as demo

def killed(params, context):
    if context.attempt == {attempt}:
        os.kill(os.getpid(), signal.SIGKILL)
    return ask_model(params, context)

ask_model, demo.ask_model = demo.ask_model, killed
sys.exit(demo.main([]))
"""

REAL_MODEL = """
import sys, types
from examples.demo.__main__ import main
from langchain_core.language_models import FakeListChatModel

def init_chat_model(name, temperature):
    if {broken}:
        raise RuntimeError("no key")
    return FakeListChatModel(responses=['{{"vendor": "V", "total": 1, "due_date": "2027-03-03"}}'])

langchain, chat_models = types.ModuleType("langchain"), types.ModuleType("langchain.chat_models")
chat_models.init_chat_model = init_chat_model
sys.modules |= {{"langchain": langchain, "langchain.chat_models": chat_models}}
sys.exit(main(["--model", "openai:any"]))
"""


def run(folder, command=DEMO):
    """Run the demo without a terminal."""
    return subprocess.run(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def calls(folder, thread="1"):
    """Return how many calls were made, and how many different ones."""
    return CallLog(folder / ".demo" / "scripted.sqlite").count(thread)


class Demo(Terminal):
    """The demo, and a person at it."""

    def __init__(self, folder):
        super().__init__(DEMO, folder, ENVIRONMENT)

    def answer(self, line):
        """Wait for the question and type an answer."""
        before = self.wait_for("answer> ")
        self.type(f"{line}\n")
        return before


def test_without_a_terminal_it_runs_to_the_end(tmp_path):
    """Scripted answers lead through a schema error, a refused edit and a quota to the result."""
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    for text in (
        "Starting thread 1",
        "due_date",
        'There is no field "temprature". Did you mean `temperature`?',
        "QuotaExceededError",
        "before: small | after: large",
        "outcome: succeeded (repaired: surroundings)",
        '"total": 1240.5',
        "Model calls: 3 (attempts: 3).",
    ):
        assert text in done.stdout
    assert calls(tmp_path) == (3, 3)


@pytest.mark.long
def test_a_finished_thread_is_followed_by_a_new_one(tmp_path):
    """The second run starts from the beginning and leaves the first thread alone."""
    run(tmp_path)
    done = run(tmp_path)
    assert "Starting thread 2" in done.stdout
    assert (calls(tmp_path, "1"), calls(tmp_path, "2")) == ((3, 3), (3, 3))


@pytest.mark.parametrize(
    "attempt", [pytest.param(1, marks=pytest.mark.long), 2, pytest.param(3, marks=pytest.mark.long)]
)
@pytest.mark.slow
def test_killed_during_a_call_it_repeats_that_call_only(tmp_path, attempt):
    """The call in flight runs again with the same key, finished ones and answers are kept."""
    killed = run(tmp_path, [sys.executable, "-c", KILLED_IN_CALL.format(attempt=attempt)])
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert calls(tmp_path) == (attempt, attempt)

    done = run(tmp_path)

    assert done.returncode == 0, done.stderr
    assert "Continuing thread 1" in done.stdout
    assert ("temprature" in done.stdout) == (attempt == 1)
    assert "Model calls: 4 (attempts: 3); a crash cut off 1" in done.stdout
    assert calls(tmp_path) == (4, 3)


@pytest.mark.long
def test_killed_at_the_pause_it_repeats_nothing(tmp_path):
    """Every question survives the process that asked it."""
    terminal = Demo(tmp_path)
    terminal.answer("edit temperature=0")
    terminal.wait_for("QuotaExceededError")
    terminal.wait_for("answer> ")
    assert terminal.kill() == -signal.SIGKILL

    terminal = Demo(tmp_path)
    terminal.wait_for("Continuing thread 1")
    shown = terminal.answer("approve")
    assert "QuotaExceededError" in shown
    terminal.wait_for("Model calls: 3 (attempts: 3).")
    assert terminal.close() == 0
    assert calls(tmp_path) == (3, 3)


@pytest.mark.slow
def test_ctrl_c_leaves_the_thread_for_the_next_run(tmp_path):
    """Leaving at the question is no answer to it."""
    terminal = Demo(tmp_path)
    terminal.answer("help")
    assert "respond {" in terminal.answer("edit temperature=9")
    terminal.answer("\x03")
    terminal.wait_for("continues this thread")
    assert terminal.close() == 130
    done = run(tmp_path).stdout
    # Whoever comes next has not seen the question that the refused answer was for.
    for text in ("the answers are scripted", "What is wrong", "less than or equal to 2"):
        assert text in done
    assert "Model calls: 3" in done


def test_a_person_edits_mistypes_and_approves(tmp_path):
    """In a terminal a bad answer is asked again with its reason, a good one is applied."""
    terminal = Demo(tmp_path)
    shown = terminal.answer("what?")
    assert "Suggested for the next attempt" in shown
    assert "'what?' is not a decision: choose from approve" in terminal.answer("edit temperature")
    assert "edit is written as: edit model=large" in terminal.answer("edit temperature=9")
    assert "less than or equal to 2" in terminal.answer("e model=large temperature=0.5")
    terminal.wait_for("Attempts of")
    shown = terminal.wait_for("Model calls: 2 (attempts: 2).")
    assert "human" in shown
    assert "(terminal)" in shown
    assert "temperature:" in shown
    assert terminal.close() == 0


@pytest.mark.slow
def test_a_person_supplies_the_output(tmp_path):
    """A wrong output is refused by field, a right one ends the call."""
    terminal = Demo(tmp_path)
    terminal.answer('respond {"vendor": "V", "total": "much", "due_date": "2027-03-03"}')
    terminal.wait_for("Not applied")
    terminal.answer('respond {"vendor": "V", "total": 1, "due_date": "2027-03-03"}')
    terminal.wait_for("Model calls: 1 (attempts: 1).")
    assert terminal.close() == 0


@pytest.mark.slow
def test_a_person_rejects(tmp_path):
    """A rejection ends the thread; the next run starts another."""
    terminal = Demo(tmp_path)
    terminal.answer("reject not an invoice")
    terminal.wait_for("The call was cancelled")
    assert terminal.close() == 0
    assert "Starting thread 2" in run(tmp_path).stdout


@pytest.mark.slow
def test_a_real_model_is_asked_through_langchain(tmp_path):
    """`--model` runs the same extraction on a chat model, in a file of its own."""
    done = run(tmp_path, [sys.executable, "-c", REAL_MODEL.format(broken=False)])
    assert done.returncode == 0, done.stderr
    assert "Model calls: 1 (attempts: 1)." in done.stdout
    assert (tmp_path / ".demo" / "openai_any.sqlite").exists()


class Recorded(BaseHTTPRequestHandler):
    """What Qwen2.5-Coder 0.5B answered at temperature 0: `make demo MODEL=local`."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self):
        """Answer as llama.cpp's server does."""
        self.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        due = "2027-03-03" if "YYYY-MM-DD" in str(self.asked[-1]["messages"]) else "3 March 2027"
        text = json.dumps({"vendor": "Nordlicht Druck", "total": 1240.5, "due_date": due})
        said = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        body = json.dumps({"object": "chat.completion", "choices": [said]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.mark.slow
def test_a_served_model_fails_and_is_mended(tmp_path, monkeypatch):
    """`--model local` asks `OPENAI_BASE_URL`, at temperature 0, without LangChain's clients."""
    with HTTPServer(("127.0.0.1", 0), Recorded) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        monkeypatch.setitem(ENVIRONMENT, "OPENAI_BASE_URL", url)
        done = run(tmp_path, [*DEMO, "--model", "local"])
        server.shutdown()
    assert done.returncode == 0, done.stderr
    assert [asked["temperature"] for asked in Recorded.asked] == [0, 0]
    for text in ("3 March 2027", "answer> approve", '"due_date": "2027-03-03"', "Model calls: 2"):
        assert text in done.stdout


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ([sys.executable, "-c", REAL_MODEL.format(broken=True)], "OPENAI_API_KEY"),
        pytest.param([*DEMO, "--model", "nobody:any"], "langchain-nobody", marks=pytest.mark.long),
        pytest.param([*DEMO, "--model", "any"], "provider:name", marks=pytest.mark.long),
    ],
)
@pytest.mark.slow
def test_a_model_that_cannot_be_had_is_refused_before_anything_starts(tmp_path, command, told):
    """A missing package, a missing key or a wrong name is told with the way out."""
    done = run(tmp_path, command)
    assert done.returncode == 2
    assert told in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / ".demo").exists()


def test_a_model_cannot_steer_the_terminal():
    """Control characters are spelled out, text in any script stays."""
    assert escaped("a\x1b[2J\rb\n\tÄ漢", lines=True) == "a\\x1b[2J\\rb\n\tÄ漢"
