"""Make the plan of a call: the user's functions, types and options, after all checks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Generic, get_origin
from weakref import WeakKeyDictionary

from langchain_core.runnables import Runnable

from graph_retry._core.ground.functions.arguments import check_argument
from graph_retry._core.ground.functions.awaiting import AsyncUnderSyncError
from graph_retry._core.ground.functions.signatures import (
    LLMCall,
    OnRetry,
    ParamsT,
    Passing,
    declared_params,
    name_of,
    passing_to,
)
from graph_retry._core.ground.redact import property_names
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.loop.run.settings import Settings
from graph_retry._core.output.build import SchemaOfParams, build_validator
from graph_retry._core.output.validator import Validator, format_issues
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.params.fields import check_prompt
from graph_retry.lossless._ground import escaped


@dataclass(frozen=True, kw_only=True)
class Plan(Generic[ParamsT]):
    """The user's functions, types and options for a call, after all checks.

    passing: How `llm_call` gets the params and the context.
    codec: Converts the params to JSON for graph state, and back.
    hooks: The functions of `on_retry`, in the order in which they are called.
    validator: Validates the model's outputs; None if no output type was given.
    accepts: Validates the outputs that people give; None if `validator` does so.
    is_node: Whether `llm_call` is a whole node, which must not make other calls.
    settings: All other options.
    """

    llm_call: Callable[..., Any] | Runnable[Any, Any]
    passing: Passing
    codec: ParamsCodec[ParamsT]
    hooks: tuple[Callable[..., Any], ...]
    validator: Validator | None
    settings: Settings
    accepts: Validator | None = None
    is_node: bool = False

    @property
    def of_people(self) -> Validator | None:
        """The validator for outputs that people give."""
        return self.accepts or self.validator

    @property
    def output_names(self) -> frozenset[str]:
        """The field names that the output type declares, which `redact` does not change."""
        nothing_private = self.settings.redact is None or self.validator is None
        if nothing_private or isinstance(self.validator, SchemaOfParams):
            return frozenset()
        return property_names(self.validator and self.validator.schema)

    def comment_field(self, view: Mapping[str, Any]) -> str | None:
        """Return the field of the params that can hold a person's comment, or None."""
        if self.codec.why_no_comment is not None:
            return None
        if self.codec.form == "bare":
            return "value" if isinstance(view.get("value"), str) else None
        field = getattr(self.settings.feedback, "field", None)
        return self.settings.own_feedback.place(view, field)


def make_plan(
    llm_call: LLMCall[Any, Any],
    codec: ParamsCodec[Any],
    on_retry: OnRetry[Any],
    output: Any,
    settings: Settings,
) -> Plan[Any]:
    """Check the arguments of a call (of a function or a retry node), and return its plan.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If `locked` names a field that params do not have.
    """
    check_fields("`locked` names", settings.locked, codec.fields or None)
    passing, declared = _signature(llm_call)
    passing.check_kind(codec.params_class)
    check_prompt(llm_call, passing.name, codec.params_class)
    if declared is not None:
        _check_declared(llm_call, declared, codec)
    validator = _validator(output, settings)
    _check_default(settings, validator, codec.fields or None)
    if validator is not None and (check := getattr(settings.review, "check_schema", None)):
        check(validator.schema)
    hooks = _hooks(on_retry)
    if settings.auto_retries and validator is not None and not hooks and not settings.feedback:
        settings = replace(settings, feedback=settings.own_feedback)
    return Plan(
        llm_call=llm_call,
        passing=passing,
        codec=codec,
        hooks=hooks,
        validator=validator,
        settings=settings,
    )


def _validator(output: Any, settings: Settings) -> Validator | None:
    if isinstance(output, SchemaOfParams) and settings.check_formats:
        return SchemaOfParams(output.field, check_formats=True)
    strict, check_formats = settings.strict, settings.check_formats
    if output is None:
        return None
    return build_validator(output, strict=strict, check_formats=check_formats)


def check_fields(what: str, names: Iterable[str], fields: Collection[str] | None) -> None:
    """Raise if a name is not among the `fields` of the params. None allows any name."""
    unknown = [name for name in names if fields is not None and name not in fields]
    if fields is not None and unknown:
        raise ValueError(
            f"{what} `{escaped(unknown[0])}`, which params do not have; the fields are "
            f"{escaped(', '.join(fields)) or 'none'}."
        )


_known: WeakKeyDictionary[Any, tuple[Passing, type[Any] | None]] = WeakKeyDictionary()
"""A cache of what `_signature` returns, because reading a signature is slow."""


def _signature(llm_call: LLMCall[Any, Any]) -> tuple[Passing, type[Any] | None]:
    """Return how a function gets the params, and the class that annotates its params."""
    try:
        return _known[llm_call]
    except (KeyError, TypeError):
        found = passing_to(llm_call), declared_params(llm_call)
    # The cache cannot hold an object without a hash, or one that allows no weak reference.
    with suppress(TypeError):
        _known[llm_call] = found
    return found


def _check_declared(
    llm_call: LLMCall[Any, Any], declared: type[Any], codec: ParamsCodec[Any]
) -> None:
    """Raise if the params cannot have the class that the user's function declares for them.

    With such params, each attempt would fail, and no edit of a reviewer could help.
    """
    if codec.fits(declared):
        return
    name, given = name_of(llm_call, "llm_call"), quoted_with_article(codec.params_class.__name__)
    raise TypeError(
        f"`{name}` declares its params as `{declared.__name__}`, but they are {given}: pass "
        f"{quoted_with_article(declared.__name__)} (of a retry node the class, as `params_type`)."
    )


def _check_default(
    settings: Settings, validator: Validator | None, fields: Collection[str] | None
) -> None:
    """Raise if the option `default_decision` could not be applied when a review expires."""
    default = settings.default_decision
    if default["type"] == "edit":
        edited = default.get("params")
        check_fields("`default_decision` edits", edited or (), fields)
        if not edited:
            raise ValueError("`default_decision` is an edit that changes nothing: give its fields.")
        if closed := [name for name in edited if name in settings.locked]:
            raise ValueError(f"`default_decision` edits `{closed[0]}`, which is `locked`.")
    if default["type"] == "accept" and "accept" not in settings.allowed_decisions:
        raise ValueError(
            "`default_decision` is `accept`, which `allowed_decisions` leaves out: add it there."
        )
    if default["type"] != "respond" or validator is None:
        return
    try:
        issues = validator.check(default.get("output")).issues
    # This code is sync and cannot run an async validator. The validator runs at the expiry instead.
    except AsyncUnderSyncError:
        return
    if issues:
        what = "`default_decision` responds with an output that is not valid"
        raise ValueError(f"{what}:\n{format_issues(issues)}")


def _hooks(on_retry: OnRetry[Any]) -> tuple[Callable[..., Any], ...]:
    given: Any = on_retry
    if on_retry is None:
        return ()
    is_output = isinstance(given, type) and "__call__" not in dir(given)
    meant = " Is it meant as `output=`?" if is_output or get_origin(given) is not None else ""
    check_argument("on_retry", on_retry, OnRetry, meant)
    return tuple(on_retry) if isinstance(on_retry, Sequence) else (on_retry,)
