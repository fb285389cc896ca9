"""Killed processes: only the call in flight may be repeated, with the same key (I1)."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILLED = -9


def work(form, folder, step, moment=""):
    """Run one step in a process of its own; return its exit code."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "tests.reliability.step_worker", form),
            *(str(folder / "thread.sqlite"), str(folder / "calls.log"), step, moment),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def calls(folder):
    """Return every call made so far as `(n, key)`."""
    return [tuple(line.split()) for line in (folder / "calls.log").read_text().splitlines()]


@pytest.mark.parametrize(
    ("step", "moment", "repeated"),
    [
        ("start", "call:0", ["0"]),
        pytest.param("start", "hook:0", [], marks=pytest.mark.long),
        pytest.param("edit:1", "call:1", ["1"], marks=pytest.mark.long),
        pytest.param("edit:1", "hook:1", [], marks=pytest.mark.long),
        ("edit:1", "written", []),
    ],
)
@pytest.mark.slow
def test_a_killed_process_repeats_at_most_the_call_in_flight(
    form, tmp_path, step, moment, repeated
):
    """Killed in a call, in a hook, or between writing an answer and applying it."""
    if step != "start":
        assert work(form, tmp_path, "start").returncode == 0
    assert work(form, tmp_path, step, moment).returncode == KILLED
    done = work(form, tmp_path, "go-on")
    assert done.returncode == 0, done.stderr

    made = calls(tmp_path)
    assert [n for n, count in Counter(n for n, _ in made).items() if count > 1] == repeated
    assert {n for n, _ in made} == {"0", "1", "2", "3"}
    assert len(set(made)) == 4, "a repeated call has the key of the first"


@pytest.mark.parametrize(
    ("moments", "made"),
    [
        (["piece:0"], "0 0 1 2 3"),
        pytest.param(["", "piece:1", "piece:3"], "0 1 1 2 3 3", marks=pytest.mark.long),
    ],
)
@pytest.mark.slow
def test_a_process_killed_in_mid_stream_repeats_the_stream_in_flight(form, tmp_path, moments, made):
    """Killed between two pieces of an answer: that one is asked for again, and no other."""
    steps = ["stream", *["go-on-streaming"] * len(moments)]
    for step, moment in zip(steps, [*moments, ""], strict=True):
        done = work(form, tmp_path, step, moment)
        assert done.returncode == (KILLED if moment else 0), done.stderr

    assert [n for n, _ in calls(tmp_path)] == made.split()
    assert len(set(calls(tmp_path))) == 4, "a repeated call has the key of the first"


LONG = [pytest.param(moment, marks=pytest.mark.long) for moment in ("call:1", "call:2")]


@pytest.mark.parametrize("moment", [*LONG, "call:3"])
@pytest.mark.slow
def test_hooks_and_reviewers_run_once_per_attempt_across_a_kill(form, tmp_path, moment):
    """Whatever decided about an attempt is not asked again when the next call is cut off."""
    assert work(form, tmp_path, "climb", moment).returncode == KILLED
    done = work(form, tmp_path, "go-on-climbing")
    assert done.returncode == 0, done.stderr

    others = (tmp_path / "calls.log.others").read_text().splitlines()
    assert others == ["hook 0", "hook 1", "reviewer 1", "hook 2", "reviewer 2"]
    assert [n for n, _ in calls(tmp_path)].count(moment.removeprefix("call:")) == 2
    assert len(set(calls(tmp_path))) == 4


@pytest.mark.long
def test_a_lesson_is_learned_once_per_attempt_across_kills(tmp_path):
    """Two kills on the way to the fourth call: three failures have taught three lessons."""
    assert work("node", tmp_path, "climb", "call:1").returncode == KILLED
    assert work("node", tmp_path, "go-on-climbing", "call:3").returncode == KILLED
    told = work("node", tmp_path, "lessons")
    assert told.returncode == 0, told.stderr
    assert len(ast.literal_eval(told.stdout)) == 3
