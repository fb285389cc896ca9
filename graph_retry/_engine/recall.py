"""The `recall` step: before a first attempt, tell its params what other steps got wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langgraph.types import Overwrite

from graph_retry._engine.plan import Plan
from graph_retry._engine.state import LOOP, Loop, fresh_loop, loop_of
from graph_retry._flow import Flow
from graph_retry.hooks._lessons import merge_lessons
from graph_retry.records import Attempt


def recall_step(plan: Plan[Any]) -> Callable[[Mapping[str, Any]], Flow[dict[str, Any]]]:
    """Return the step that revises the params by the lessons at hand, if there are any."""
    keys, lessons = plan.settings.keys, plan.settings.lessons
    assert lessons is not None  # noqa: S101 - the graph has this step only with lessons

    def flow(state: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        yield from ()
        attempts: list[Attempt] = state.get(keys["attempts"]) or []
        if attempts and attempts[-1]["status"] == "failed":
            return {}
        window = merge_lessons(state.get(keys["lessons"]), [*lessons.known])
        given = plan.codec.load(state.get(keys["params"]), loop_of(state)["types"])
        revised = lessons.told_to(plan.codec.decode(*given), window)
        if revised is None:
            return {}
        params = plan.codec.encode(revised, owner="the params with lessons")
        steps = ", ".join(sorted({each["step"] for each in window if each["text"]}))
        loop: Loop = {
            **fresh_loop(),
            "types": params.types,
            "author": "lessons",
            "reason": f"what went wrong before in {steps}"[:300],
            "identity": loop_of(state)["identity"],
            "given": given.view,
        }
        none: Any = Overwrite([])
        return {LOOP: loop, keys["params"]: params.view} | (
            {keys["attempts"]: none} if attempts else {}
        )

    return flow
