"""A process holds nothing of calls that are over, nor of answers that were cancelled."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

NUMBER = 120
"""Calls, and answers: one object for each would show."""

PROGRAM = """
import asyncio, json, logging, sys
from bench.flat import measured

logging.disable(logging.WARNING)
print(json.dumps(asyncio.run(measured(int(sys.argv[1]), sys.argv[2]))))
"""


@pytest.mark.slow
def test_nothing_stays_of_calls_and_of_cancelled_answers(tmp_path):
    """Objects, threads, tasks and open files; `python -m bench.flat` counts 2,000 of each."""
    # In a process of its own: pytest keeps records of its own, and other tests their threads.
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(NUMBER), str(tmp_path / "flat.sqlite")],
        cwd=Path(__file__).parents[2],
        check=True,
        stdout=subprocess.PIPE,
        timeout=300,
    )
    for before, after in json.loads(done.stdout).values():
        assert after[1:] == before[1:]
        assert after[0] - before[0] < NUMBER


WAITING = """
import asyncio, json, sys
from bench.flat import waiting

print(json.dumps([asyncio.run(waiting(form, 60, sys.argv[1] + form)) for form in sys.argv[2:]]))
"""


@pytest.mark.slow
def test_a_waiting_call_holds_what_a_graph_in_a_node_holds(tmp_path):
    """While it waits for its model; while it waits for a person, it holds nothing."""
    done = subprocess.run(
        [sys.executable, "-c", WAITING, str(tmp_path / "db"), "by hand", "function", "node"],
        cwd=Path(__file__).parents[2],
        check=True,
        stdout=subprocess.PIPE,
        timeout=300,
    )
    by_hand, *ours = json.loads(done.stdout)
    for during, after in ours:
        assert during < 1.5 * by_hand[0]
        assert after < 0.05 * during
