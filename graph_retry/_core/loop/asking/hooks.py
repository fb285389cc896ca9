"""Call the hooks of the option `on_retry` after a failed attempt. They may return new params.

The hooks are called in order until one returns new params. Then the option `feedback` adds the
errors of the output to the prompt. Each hook is called at most once per attempt, and gets a copy of
the params.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.functions.signatures import Alternatives, name_of
from graph_retry._core.ground.json import is_object
from graph_retry._core.ground.logs import warn_once
from graph_retry._core.ground.wording import passed_as
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.loop.run.step import Once, as_task
from graph_retry._core.params.patch import Encoded
from graph_retry._core.params.prompt import Added, named_fields
from graph_retry._core.review.decisions import ROWS
from graph_retry._core.state.attempts import added_in
from graph_retry.errors import AttemptFailed
from graph_retry.records import Addition, Attempt, Failure

_LOG = logging.getLogger("graph_retry")


class Proposed(NamedTuple):
    """Params that a hook proposes, and the parts of their prompt that feedback added."""

    params: Encoded
    added: list[Addition]


class Proposal(NamedTuple):
    """The new params that a hook or feedback proposes after a failed attempt.

    params: The params.
    author: The author of the params in the ledger, such as `hook:shorten`.
    added: The parts of the prompt that feedback added, now or after an earlier attempt.
    new_means: Whether the hook changes the means, for example to a larger model (see `HookTraits`).
    alternatives: Several params for a person to choose from, `params` first. Usually empty.
    """

    params: Encoded
    author: str
    added: list[Addition]
    new_means: bool = False
    alternatives: tuple[Proposed, ...] = ()

    def suggested(self) -> dict[str, Any]:
        """Return the fields of a new review that suggest these params."""
        return {
            "suggested": self.params.view,
            "suggested_types": self.params.types,
            "suggested_by": self.author,
            "suggested_added": self.added,
            "noted": {
                "alternatives": [each.params.view for each in self.alternatives],
                "types_of_alternatives": [each.params.types for each in self.alternatives],
                "added_of_alternatives": [each.added for each in self.alternatives],
            },
        }


def warn_of_unused(plan: Plan[Any]) -> None:
    """Warn of hooks that are never asked, because no attempt can follow those that they are for."""
    settings = plan.settings
    last, limit = settings.max_attempts - 1, f"`max_attempts={settings.max_attempts}`"
    if not settings.review and not settings.reviewer and settings.auto_retries < last:
        last, limit = settings.auto_retries, f"`auto_retries={settings.auto_retries}`"
        limit += " and `review=False`"
    for hook in (*plan.hooks, settings.feedback):
        if hook is None or hook is settings.own_feedback:
            continue
        if (first := getattr(hook, "from_attempt", 1)) > last:
            warn_once(
                _LOG,
                "hook `%s` of `%s` is never used: it may change the params after attempt %s, but "
                "no attempt follows that one with %s. Raise this limit, or leave the hook out",
                *(name_of(hook, "on_retry"), settings.name, str(first), limit),
            )


async def propose(
    plan: Plan[Any], params: Encoded, attempts: list[Attempt], once: Once = as_task
) -> Proposal | None:
    """Call the hooks until one changes the params, then add feedback; None without a change."""
    proposal: Proposal | None = None
    sent = Proposed(params, added_in(attempts, params.view))
    for hook in plan.hooks:
        proposal = await _asked(plan, hook, "hook", sent, attempts, once)
        if proposal is not None:
            break
    feedback, failure = plan.settings.feedback, attempts[-1]["failure"]
    # If a hook already handles a cut-off output, feedback would only make the prompt longer.
    cut_off = failure is not None and failure["kind"] == "truncated"
    if feedback is None or (cut_off and proposal is not None):
        return proposal
    base = sent if proposal is None else Proposed(proposal.params, proposal.added)
    added = await _asked(plan, feedback, "feedback", base, attempts, once)
    if added is None or proposal is None:
        return added or proposal
    first = Proposed(added.params, added.added)
    alternatives = (first, *proposal.alternatives[1:]) if proposal.alternatives else ()
    author = f"{proposal.author} and {added.author}"
    return proposal._replace(**first._asdict(), author=author, alternatives=alternatives)


def error_of(plan: Plan[Any], attempts: list[Attempt]) -> AttemptFailed:
    """Return the error that hooks get, made from the record of the last attempt."""
    record = attempts[-1]
    unknown: Failure = {"kind": "rejected_input", "type": "Exception", "message": "it failed"}
    failure = record["failure"] or unknown
    return AttemptFailed(
        failure["message"],
        attempts,
        kind=failure["kind"],
        type=failure["type"],
        issues=record["issues"],
        raw_output=(record["raw"] or {}).get("text"),
        output_schema=plan.validator.schema if plan.validator else None,
    )


def _check_keys(hook: str, given: object, revised: object) -> None:
    """Raise if a hook returned a decision and not params. Log a warning if fields are missing."""
    if not (is_object(given) and is_object(revised)):
        return
    if "type" not in given and revised.get("type") in ROWS:
        raise TypeError(
            f"hook `{hook}` returned a decision: return params instead, such as "
            '`{**params, "model": "large"}`, or decide in a function for `reviewer=`.'
        )
    if lost := ", ".join(f"`{key}`" for key in given if key not in revised):
        what = "the params of hook `%s` lack %s: to keep them, return `{**params, …}`"
        _LOG.warning(what, hook, lost)


async def _asked(
    plan: Plan[Any],
    hook: Callable[..., Any],
    role: str,
    sent: Proposed,
    attempts: list[Attempt],
    once: Once,
) -> Proposal | None:
    name, number, params = name_of(hook, "on_retry"), attempts[-1]["number"], sent.params

    async def ask() -> list[Any] | None:
        copy, error = plan.codec.decode(params.view, params.types), error_of(plan, attempts)
        error.added = Added(named_fields(copy), sent.added)
        with passed_as("on_retry" if role == "hook" else role):
            revised = await call(hook, error, number, copy)
        if plan.codec.changed_in_place(params, copy):
            raise TypeError(
                f"hook `{name}` changed its params in place: return a new object instead "
                "(e.g. `params.model_copy(update=...)`, `dataclasses.replace`, `{**params, ...}`)."
            )
        if revised is None:
            return None
        options: list[Any] = [revised]
        if isinstance(revised, Alternatives):
            options = [*revised.params]
        for each in options:
            _check_keys(name, copy, each)
        owner = f"the params returned by hook `{name}`"
        return [
            [*plan.codec.encode(each, owner=owner), error.added.still_in(named_fields(each))]
            for each in options
        ]

    author = role if role == name else f"{role}:{name}"
    revised = await once(f"{author}#{number}", ask)
    # Equal params are no proposal, because sending them again would be a blind retry. A task that
    # an older version saved has no added parts.
    changed = [
        Proposed(Encoded(view, types), *(added or ([],)))
        for view, types, *added in revised or ()
        if [view, types] != list(params)
    ]
    if not changed:
        return None
    return Proposal(
        changed[0].params,
        author,
        changed[0].added,
        new_means=getattr(hook, "new_means", False),
        alternatives=tuple(changed) if len(changed) > 1 else (),
    )
