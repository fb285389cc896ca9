"""What happens once when an attempt is finished."""

from __future__ import annotations

from typing import Any

from graph_retry.budget import breaker
from graph_retry.callables import name_of
from graph_retry.engine.events import emit
from graph_retry.engine.plan import Plan
from graph_retry.flow import Durable, Flow, Run
from graph_retry.lessons import lessons_of
from graph_retry.records import Attempt
from graph_retry.tracing import tracer, write_span


def finished(plan: Plan[Any], record: Attempt) -> Flow[dict[str, Any]]:
    """Report the attempt, where anybody listens, and return what it teaches as a state update.

    A report that is done is not repeated when the step around it runs again.
    """
    settings, name = plan.settings, plan.settings.name
    emit("attempt_finished", name, record["number"], status=record["status"])
    on_attempt, spans, lessons = settings.on_attempt, tracer(), settings.lessons
    learned = lessons_of(name, [record]) if lessons else []

    def report() -> Flow[None]:
        if on_attempt is not None:
            yield Run(on_attempt, (record,))
        if lessons is not None:
            yield from lessons.remembered(learned)
        if spans is not None:
            write_span(spans, name, record)
        if settings.budget is not None:
            breaker.note(name, record["failure"])

    listener = "breaker" if on_attempt is None else name_of(on_attempt, "on_attempt")
    if on_attempt or lessons or spans or settings.budget:
        yield Durable(f"{name}:{listener}#{record['number']}", report)
    return {settings.keys["lessons"]: learned} if lessons else {}
