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
