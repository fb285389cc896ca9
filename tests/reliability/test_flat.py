"""A process holds nothing of calls that are over, nor of answers that were cancelled."""

import asyncio
import logging

from bench.flat import measured

NUMBER = 120
"""Calls, and answers: one object for each would show."""


def test_nothing_stays_of_calls_and_of_cancelled_answers(tmp_path, monkeypatch):
    """Objects, threads, tasks and open files; `python -m bench.flat` counts 2,000 of each."""
    # pytest keeps the records of the log: one for each review that the next input ends.
    monkeypatch.setattr(logging.root.manager, "disable", logging.WARNING)
    found = asyncio.run(measured(NUMBER, str(tmp_path / "flat.sqlite")))
    for before, after in found.values():
        assert after[1:] == before[1:]
        assert after.objects - before.objects < NUMBER
