"""The page tells what became of an answer in the words of the one who knows it."""

import asyncio
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import StaleDecision, pending_reviews
from graph_retry.desk.web.applying import Run, Runs, Sent
from tests.loops import Model, one_call, thread


class Late:
    """Stands for the open reviews of threads, where an answer comes too late."""

    def __init__(self, why: str) -> None:
        self.why = why

    async def answer(self, *_: Any) -> None:
        raise StaleDecision(self.why)

    async def of_thread(self, _: Any) -> list[Any]:
        return []

    def drop(self, key: str) -> None:
        """Forget a review."""

    def answered_here(self, thread_id: str) -> None:
        """Remember a thread."""


def test_an_answer_that_came_too_late_is_told_with_the_reason_alone() -> None:
    """Nobody was faster than an answer whose review had expired."""
    why = "review 'r' expired at 12:00: its default decision was applied, not your answer."
    waiting: Any = Late(why)
    graph = one_call("node", None, Model(), InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    (review,) = pending_reviews(graph, thread())
    run = Run([review], {review.review_id: {"type": "approve"}})
    runs = Runs(waiting)

    async def sent() -> None:
        runs.start("form", form := Sent([run]))
        assert await form.wait(5)

    asyncio.run(sent())
    assert run.told is not None
    assert (run.told.title, run.told.text) == ("Your answer was not applied.", why)
