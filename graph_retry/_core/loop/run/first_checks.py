"""Check a call before its first attempt, so that a mistake in the code costs no model call.

A certain mistake raises an error. A possible mistake logs a warning, once per process.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig

from graph_retry._core.ground.credentials import (
    is_known,
    looks_random,
    says_secret,
    without_named_keys,
)
from graph_retry._core.ground.functions.calling import refuse_async
from graph_retry._core.ground.json import is_array, is_object, pointer
from graph_retry._core.ground.logs import warn_once
from graph_retry._core.ground.redact import redacted_path
from graph_retry._core.ground.wording import meaning, near_miss
from graph_retry._core.langgraph.run_config import sent_twice, state_keys_around
from graph_retry._core.loop.run.plan import Plan, check_fields
from graph_retry._core.loop.run.settings import Settings
from graph_retry._core.loop.run.step import StepInput
from graph_retry._core.params.patch import Encoded
from graph_retry.errors import InterventionRequired
from graph_retry.lossless._ground import as_repr, escaped, lazy

_LOG = logging.getLogger("graph_retry")
_PARAMS_LOG = logging.getLogger("graph_retry.params")

NO_CHECKPOINTER = (
    "this run has no checkpointer to pause on: give the graph or agent one, e.g. "
    "`checkpointer=InMemorySaver()`, or pass `review=False`"
)

_ID = lazy(
    r"(?:.*[_-])?(?:id|ids|uuid|hash|digest|sha\d*|checksum|etag|fingerprint)", re.IGNORECASE
)
"""Names of fields with ids or hashes, which look random but are no credentials."""

_LOOKED_AT = 10_000
_LOOKED_AT_IN_ALL = 200_000
"""Maximum characters to search for credentials, in one text and in all params together."""


def check_first(given: StepInput, params: Encoded) -> None:
    """Check everything that a call needs, before its first model call.

    Raises:
        AsyncUnderSyncError: If the run is sync, and a function that it may call is async.
        InterventionRequired: If the call cannot end without a person, and nobody can be asked.
        ValueError: If a hook needs a field that the params lack, if `locked` names a field that
            the params lack, if `subject` is the name of a field, if `default_decision` does not fit
            the params, if a field holds a credential, or if the parent graph's state has no key for
            any result.
    """
    plan, run = given.plan, given.run
    _check_credentials(plan, params.view)
    _check_functions(plan, params)
    if plan.settings.review and run.saver is None:
        _check_checkpointer(plan.settings, in_a_graph=run.caller is not None)
    if run.is_task and run.caller is not None:
        _check_output_key(plan.settings, run.caller)


def _check_functions(plan: Plan[Any], params: Encoded) -> None:
    """Raise if an option does not fit the params, or if a function cannot work in this run."""
    settings = plan.settings
    check_fields("`locked` names", settings.locked, params.view)
    subject = settings.subject if isinstance(settings.subject, str) else ""
    for field in params.view:
        if subject == field or f"{{{field}}}" in subject:
            raise ValueError(
                f"`subject` is the name of the field `{escaped(field)}`, and would be shown as "
                "a text: give a function of the params, such as `lambda params: "
                f"params[{as_repr(field)}]`."
            )
    plan.passing.check_names(params.view)
    _check_default(plan, params.view)
    options = ("on_attempt", "review", "notify", "subject", "feedback")
    for argument, functions in {
        "output": [getattr(plan.validator, "function", None)],
        **{name: [getattr(settings, name)] for name in options},
        "on_retry": plan.hooks,
        "reviewer": settings.reviewer,
    }.items():
        for function in functions:
            if callable(function):
                refuse_async(function, argument)
    for hook in (*plan.hooks, settings.feedback):
        if (check := getattr(hook, "check_params", None)) is not None:
            check(plan.codec.decode(params.view, params.types))


def _check_default(plan: Plan[Any], view: Mapping[str, Any]) -> None:
    """Raise if the option `default_decision` does not fit the fields of the params."""
    settings, default = plan.settings, plan.settings.default_decision
    edited = default.get("params")
    if default["type"] == "edit" and is_object(edited) and plan.codec.fields is None:
        for name in edited:
            if near := None if plan.codec.form == "bare" else near_miss(name, view, edited):
                raise ValueError(
                    f"`default_decision` edits `{name}`, which is not in the params. "
                    f"{meaning(name, near)} To add `{name}` as a new field, edit `{near}`, too."
                )
    if default["type"] == "comment":
        place = plan.comment_field(view)
        if place is None or place in settings.locked:
            raise ValueError(
                "`default_decision` is a comment, but the params have no prompt or messages "
                "for it: give another decision."
            )


def _check_checkpointer(settings: Settings, *, in_a_graph: bool) -> None:
    """Warn that a graph has no checkpointer; raise if the call always asks a person."""
    if settings.review == "always" and not settings.reviewer:
        why = "is always reviewed (`review='always'`)"
        raise InterventionRequired(f"`{settings.name}` {why}, but {NO_CHECKPOINTER}.", [])
    if in_a_graph:
        warn_once(_LOG, "`%s` may need a person, but %s", settings.name, NO_CHECKPOINTER)


def _check_output_key(settings: Settings, caller: RunnableConfig) -> None:
    """Warn that the graph around a retry node has no state key for the node's output.

    Raises:
        ValueError: If no result of the node has a key, or if several `Send`s write a plain key.
    """
    around = caller.get("configurable", {})
    if clash := sent_twice(around, [key for of, key in settings.keys.items() if of != "params"]):
        raise ValueError(
            f"several `Send`s of one step run the retry node `{settings.name}`, and these state "
            f"keys need a reducer, as in `Annotated[list, reducer]`: {', '.join(clash)}."
        )
    known = state_keys_around(around)
    output = settings.keys["output"]
    if known is None or output in known:
        return
    told = (
        f"the retry node `{settings.name}` writes its output to the state key `{output}`, which is "
        "not in the parent graph's state, so LangGraph drops the output. Add this key to the "
        "state, or choose another key with `keys={'output': …}`"
    )
    if not any(key in known for result, key in settings.keys.items() if result != "params"):
        raise ValueError(f"{told}.")
    warn_once(_LOG, "%s", told)


def _check_credentials(plan: Plan[Any], params: Mapping[str, Any]) -> None:
    """Refuse params with a credential, because params are saved and shown to people.

    The name of a field (such as `api_key`) or the beginning of its text (such as `sk-`) shows a
    credential. Three kinds of texts only cause a warning: texts that merely look like a credential,
    texts inside a list (such as messages), and arguments of a tool, which the model chose. The path
    of the field is shown, but keys in the path that the params' type does not declare are redacted.

    Raises:
        ValueError: If a field holds a credential, and the option `not_secret` does not name it.
    """
    name, settings = plan.settings.name, plan.settings
    for path, is_certain in _suspects(params):
        shown = redacted_path(path, settings.redact, plan.codec.names)
        if {path, path.rpartition("/")[2], path[1:]}.intersection(settings.not_secret):
            continue
        if is_certain and not plan.codec.of_model:
            raise ValueError(
                f"the param {as_repr(shown)} of `{name}` holds a credential, but params are "
                "saved and shown to reviewers. Keep the credential in the function, e.g. in "
                f"the client that it calls, or pass `not_secret=[{as_repr(shown)}]` if it is "
                "not a credential."
            )
        warn_once(
            _PARAMS_LOG,
            "the param %r of `%s` looks like a credential, but params are saved and shown to "
            "reviewers: keep credentials in the function instead",
            shown,
            name,
        )


def _suspects(params: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the path of each possible credential, and whether it certainly is one."""
    left = _LOOKED_AT_IN_ALL
    for path, text in _texts(params, ()):
        named = next((part for part in reversed(path) if isinstance(part, str)), "")
        beginning = text[: min(_LOOKED_AT, left)]
        left -= len(beginning)
        is_named, begins_like_one = says_secret(named), is_known(beginning)
        is_key = looks_random(beginning) and not _ID.fullmatch(named)
        is_key |= begins_like_one or without_named_keys(beginning) != beginning
        if text and (is_named or is_key):
            is_field = all(isinstance(part, str) for part in path)
            yield pointer(path), is_field and (is_named or (begins_like_one and " " not in text))


def _texts(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif is_object(value) or is_array(value):
        for key, item in value.items() if is_object(value) else enumerate(value):
            yield from _texts(item, (*path, key))
