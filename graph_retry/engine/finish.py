"""Report a finished attempt, once."""

from typing import Any

from graph_retry.budget import breaker
from graph_retry.callables import name_of
from graph_retry.engine.events import emit
from graph_retry.engine.plan import Plan
from graph_retry.flow import Durable, Flow, Run
from graph_retry.records import Attempt


def finished(plan: Plan[Any], record: Attempt) -> Flow[None]:
    """Emit the event and call `on_attempt`, whose finished run is not repeated after a crash."""
    name = plan.settings.name
    emit("attempt_finished", name, record["number"], status=record["status"])
    breaker.note(name, failed=record["status"] == "failed")
    on_attempt = plan.settings.on_attempt
    if on_attempt is None:
        return

    def report() -> Flow[None]:
        yield Run(on_attempt, (record,))

    yield Durable(f"{name}:{name_of(on_attempt, 'on_attempt')}#{record['number']}", report)
