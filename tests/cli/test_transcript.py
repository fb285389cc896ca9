"""The session that `docs/terminal.md` shows, in a real terminal."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from graph_retry.desk.cli.exits import ExitCode
from tests.cli.test_terminal import COMMAND, environment
from tests.terminal import Terminal

PAGE = Path(__file__).parent.parent.parent / "docs" / "terminal.md"


def blocks(language):
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def steadied(text):
    """Replace what differs from run to run: ids, ages, times, and the widths that follow."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "")
    text = re.sub(r"\b[0-9a-f]{24}\b", "ID", text)
    text = re.sub(r"\b\d+ (second|minute|hour|day)s?\b", "AGE", text)
    text = re.sub(r"\b\d+\.\d s\b", "TIME", text)
    return [re.sub(r"[ ─]{2,}", " ", line).strip() for line in text.splitlines() if line.strip()]


@pytest.mark.long
def test_the_session_in_the_docs_is_what_happens(tmp_path, calls):
    """Each command of the transcript is run, each answer typed, and all output compared."""
    (code,), (transcript,) = blocks("python"), blocks("console")
    (tmp_path / "invoices.py").write_text(code)
    happened, settings = [], {}
    for step in re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]:
        line = step.splitlines()[0]
        happened.append(f"$ {line}")
        word, *words = shlex.split(line)
        if word == "export":
            settings |= dict(each.split("=", 1) for each in words)
        elif word == "python":
            command = [sys.executable, *words]
            subprocess.run(command, cwd=tmp_path, env=environment(), check=True)
        else:
            assert word == "graph-retry"
            terminal = Terminal([*COMMAND, *words], tmp_path, environment(**settings), width=100)
            for answer in re.findall(r"^answer> (.*)$", step, re.MULTILINE):
                terminal.wait_for("answer> ")
                terminal.type(f"{answer}\n")
            assert terminal.close() == 0
            happened.append(terminal.seen)
    assert steadied("\n".join(happened)) == steadied(transcript)


def test_the_exit_codes_in_the_docs_are_those_there_are():
    """The table leaves none out and invents none."""
    told = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    assert [int(code) for code in told] == [code.value for code in ExitCode]
