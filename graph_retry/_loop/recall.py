"""The `recall` step: before a first attempt, tell its params what other steps got wrong."""

from __future__ import annotations

from typing import Any

from langgraph.types import Overwrite

from graph_retry._loop.step import StepInput
from graph_retry._loop.transitions import goes_on
from graph_retry._state import LOOP, Loop, fresh_loop
from graph_retry.hooks._lessons import merging_lessons


async def recall_step(given: StepInput) -> dict[str, Any]:
    """Revise the params by the lessons at hand, if there are any."""
    plan, state, attempts = given.plan, given.state, given.attempts
    keys, lessons = plan.settings.keys, plan.settings.lessons
    assert lessons is not None  # noqa: S101 - the graph has this step only with lessons
    if attempts and goes_on(attempts[-1]):
        return {}
    window = merging_lessons(lessons.window)(state.get(keys["lessons"]), [*lessons.known])
    before = plan.codec.load(state.get(keys["params"]), given.loop["types"])
    taught = lessons.add_to(plan.codec.decode(*before), window)
    if taught is None:
        return {}
    revised, why = taught
    params = plan.codec.encode(revised, owner="the params with lessons")
    loop: Loop = {
        **fresh_loop(),
        "types": params.types,
        "author": "lessons",
        "reason": why[:300],
        "identity": given.loop["identity"],
        "given": before.view,
    }
    none: Any = Overwrite([])
    return {LOOP: loop, keys["params"]: params.view} | (
        {keys["attempts"]: none} if attempts else {}
    )
