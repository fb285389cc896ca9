"""What a run tells while it takes long."""

import asyncio
import re

from graph_retry.desk.cli import source
from graph_retry.desk.following import Running


def event(kind, attempt=2, **details):
    """Return an event of a call as it is streamed."""
    return {"type": "graph_retry", "event": kind, "name": "count", "attempt": attempt, **details}


def test_one_line_tells_of_all_calls_that_run():
    """The attempt and what has come of it; a finished attempt is told no more."""
    running = Running()
    running.hear(("ask:1",), {"type": "other"})
    assert re.fullmatch(r"running for \d+ s", str(running))
    running.hear(("ask:1",), event("attempt_started"))
    running.hear(("ask:2",), event("attempt_started", 5))
    running.hear(("ask:1",), event("partial_output", value={"n": 1}))
    of_one, of_other = str(running).split("; ")
    assert re.fullmatch(r"count: attempt 2 · running for \d+ s · 12 characters so far", of_one)
    assert re.fullmatch(r"count: attempt 5 · running for \d+ s", of_other)
    running.hear(("ask:2",), event("attempt_finished", 5, status="succeeded"))
    assert str(running) == of_one


def test_what_is_kept_of_a_run_is_bounded():
    """However many calls run and however much they stream: the newest calls, the end of a text."""
    running = Running()
    running.hear((), {"type": "graph_retry"})  # A graph may write anything to its own stream.
    for number in range(1_000):
        place = (f"ask:{number}",)
        running.hear(place, event("attempt_started"))
        running.hear(place, event("partial_output", value="x" * 100_000 + str(number)))
    assert [*running.live] == [(f"ask:{number}", "count") for number in range(900, 1_000)]
    (*_, last) = running.live.values()
    assert (last.length, len(last.end), last.end[-4:]) == (100_003, 2_000, "x999")
    assert str(running).count("100,003 characters so far") == 100


def test_a_run_that_takes_long_is_told_of(monkeypatch):
    """A short one is not; the telling ends with the run."""
    told = list[str]()

    async def at_once():
        return 8

    async def both():
        was_told = asyncio.Event()

        def tell(line):
            told.append(line)
            was_told.set()

        assert (await source._told(at_once(), Running(), tell), told) == (8, [])
        monkeypatch.setattr(source, "_QUIET_S", 0)
        assert await source._told(was_told.wait(), Running(), tell)
        assert told == ["running for 0 s"]

    asyncio.run(both())
