"""The `revise` step: hooks look at the failure; what they change decides what comes next."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graph_retry.callables import name_of
from graph_retry.engine.events import emit
from graph_retry.engine.finish import finished
from graph_retry.engine.plan import Plan
from graph_retry.engine.state import LOOP, Loop, Review, loop_of
from graph_retry.engine.transitions import after_failure
from graph_retry.errors import AttemptFailed
from graph_retry.flow import Durable, Flow, Run
from graph_retry.ledger import digest
from graph_retry.params.codec import Encoded
from graph_retry.records import Attempt


@dataclass(frozen=True)
class _Proposal:
    params: Encoded
    author: str


def revise_step(plan: Plan[Any]) -> Callable[[Mapping[str, Any]], Flow[dict[str, Any]]]:
    """Return the step between a failure and what is done about it."""
    keys, settings = plan.settings.keys, plan.settings

    def flow(state: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        attempts: list[Attempt] = state[keys["attempts"]]
        record, loop = attempts[-1], loop_of(state)
        number = record["number"]
        params = Encoded(state[keys["params"]], loop["types"])
        yield from finished(plan, record)
        proposal: _Proposal | None = None
        if number < settings.max_attempts:
            proposal = yield from _ask_hooks(plan, params, attempts)
        verdict = after_failure(
            attempt=number,
            changed=proposal is not None,
            automatic=loop["automatic"],
            max_attempts=settings.max_attempts,
            auto_retries=settings.auto_retries,
            review=settings.review,
        )
        if verdict == "retry" and proposal is not None:
            revised: Loop = {
                **loop,
                "next": "call",
                "types": proposal.params.types,
                "author": proposal.author,
                "reason": failure_text(record),
                "automatic": loop["automatic"] + 1,
            }
            return {LOOP: revised, keys["params"]: proposal.params.view}
        if verdict == "ask":
            review = _open_review(record, proposal, automation_note(loop, number, settings))
            emit("review_asked", settings.name, number, review_id=review["review_id"])
            return {LOOP: {**loop, "next": "review", "review": review}}
        return {LOOP: {**loop, "next": "end"}, keys["status"]: "exhausted"}

    return flow


def automation_note(loop: Loop, number: int, settings: Any) -> str | None:
    """Say why a person is asked although retries are automatic, if they are."""
    if number >= settings.max_attempts:
        return f"All {settings.max_attempts} attempts are used: supply the output or reject."
    if loop["automatic"] and loop["automatic"] >= settings.auto_retries:
        return f"{loop['automatic']} automatic retries did not help."
    return None


def failure_text(record: Attempt) -> str:
    """Return an attempt's failure in a line."""
    failure = record["failure"]
    return "" if failure is None else f"{failure['type']}: {failure['message']}"[:300]


def error_of(attempts: list[Attempt]) -> AttemptFailed:
    """Rebuild the last attempt's error from the ledger."""
    record = attempts[-1]
    failure = record["failure"] or {
        "kind": "rejected_input",
        "type": "Exception",
        "message": "the attempt failed",
    }
    return AttemptFailed(
        failure["message"],
        attempts,
        kind=failure["kind"],
        type=failure["type"],
        issues=record["issues"],
        raw_output=(record["raw"] or {}).get("text"),
    )


def _ask_hooks(plan: Plan[Any], params: Encoded, attempts: list[Attempt]) -> Flow[_Proposal | None]:
    """Ask the hooks in order; the first that changes the params has it."""
    number = attempts[-1]["number"]
    for place, hook in enumerate(plan.hooks):
        name = name_of(hook, "on_retry")
        author = f"hook:{name}"

        def ask(hook: Callable[..., Any] = hook, name: str = name) -> Flow[Any]:
            return (yield from _ask_hook(plan, hook, name, params, attempts))

        revised = yield Durable(f"{author}#{number}.{place}", ask)
        if revised is not None and revised != [params.view, params.types]:
            return _Proposal(Encoded(*revised), author)
    return None


def _ask_hook(
    plan: Plan[Any],
    hook: Callable[..., Any],
    name: str,
    params: Encoded,
    attempts: list[Attempt],
) -> Flow[list[Any] | None]:
    copy = plan.codec.decode(params.view, params.types)
    number = attempts[-1]["number"]
    revised = yield Run(hook, (error_of(attempts), number, copy))
    if plan.codec.changed_in_place(params, copy):
        msg = (
            f"hook `{name}` changed its params in place: return a new object instead "
            "(e.g. `params.model_copy(update=...)`, `dataclasses.replace`, `{**params, ...}`)."
        )
        raise TypeError(msg)
    if revised is None:
        return None
    encoded = plan.codec.encode(revised, owner=f"the params returned by hook `{name}`")
    return [encoded.view, encoded.types]


def _open_review(record: Attempt, proposal: _Proposal | None, note: str | None) -> Review:
    return {
        "review_id": digest(record["idempotency_key"], 1),
        "round": 1,
        "suggested": None if proposal is None else proposal.params.view,
        "suggested_types": {} if proposal is None else proposal.params.types,
        "suggested_by": None if proposal is None else proposal.author,
        "note": note,
        "problem": None,
    }
