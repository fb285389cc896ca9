"""Check the order of an agent's middleware around `RetryMiddleware`.

The first middleware in LangChain's list is the outermost. A middleware that changes a request must
come before `RetryMiddleware`, so that a person sees the final request. A middleware that repeats
calls, or turns a failure into an answer, must come after `RetryMiddleware`, within one attempt.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Final, Literal, cast

from langchain.agents.middleware import AgentMiddleware

_Side = Literal["before", "after"]

_SHIPPED = "langchain.agents.middleware."

Wrapped = Literal[True] | frozenset[str]
"""The names of the tools whose failures are reviewed; True for all tools."""

_MADE_BY_DEEPAGENTS = (
    " (if `interrupt_on` of `create_deep_agent` made it, give `HumanInTheLoopMiddleware` in "
    "`middleware` in its place, or `approve=` here)"
)
_AGAIN = "it would treat a person's rejection as a failure, and call again"
_CHANGES = "it changes the request, so a person's edit would be lost"

_MODEL_CALLS: Final[dict[str, tuple[_Side, str]]] = {
    "TodoListMiddleware": ("before", _CHANGES),
    "ContextEditingMiddleware": ("before", _CHANGES),
    "ModelRouterMiddleware": ("before", "it chooses the model, so a person's choice would be lost"),
    "LLMToolSelectorMiddleware": (
        "after",
        "its own model call would be repeated (and paid) at each answer",
    ),
    "ModelRetryMiddleware": ("after", _AGAIN),
    "ModelFallbackMiddleware": ("after", _AGAIN),
}
_TOOL_CALLS: Final[dict[str, tuple[_Side, str]]] = {
    "HumanInTheLoopMiddleware": ("before", "the edit of its reviewer would replace a later edit"),
    "ToolErrorMiddleware": ("before", "it would hide failures from reviewers"),
    "ToolRetryMiddleware": ("after", _AGAIN),
}
"""Middlewares of LangChain that must come before or after `RetryMiddleware`, with the reason.

The keys are names instead of classes, because older versions of LangChain lack some classes.
"""


def check_order(
    listed: Sequence[Any], own: AgentMiddleware[Any, Any, Any], own_name: str, wrapped: Wrapped
) -> None:
    """Check that LangChain's own middleware is on the right side of `RetryMiddleware`.

    Raises:
        ValueError: If one of LangChain's own middlewares has a wrong place or a wrong option.
    """
    at = next(at for at, each in enumerate(listed) if each is own)
    sides = [_place(each, wrapped) for each in listed]
    right: dict[_Side, list[Any]] = {"before": [], "after": []}
    wrong: list[str] = []
    for number, (each, place) in enumerate(zip(listed, sides, strict=True)):
        side: _Side = "before" if number < at else "after"
        if place and place[0] != side:
            side, why = place
            hint = _MADE_BY_DEEPAGENTS if hasattr(each, "interrupt_on") else ""
            wrong.append(f"`{each.name}` must come {side} `{own_name}`: {why}{hint}")
        if place and getattr(each, "on_failure", "error") != "error":
            wrong.append(
                f"`{each.name}` turns failures into answers, so `{own_name}` would ask nobody: "
                "give it `on_failure='error'`"
            )
        if each is not own:
            right[side].append(each)
    if wrong:
        before, after = ([each.name for each in right[side]] for side in ("before", "after"))
        order = ", ".join(f"`{name}`" for name in (*before, own_name, *after))
        raise ValueError(f"{'. '.join(wrong)}. Use this order: {order}.")


def misplaced(own_name: str, field: str) -> ValueError:
    """Return the error about inner middleware that changes the field `field` of a request."""
    return ValueError(
        f"a middleware after `{own_name}` changes `{field}` of the request, so a person's edit "
        f"would be lost. Move this middleware before `{own_name}`."
    )


def listed_with(own: AgentMiddleware[Any, Any, Any]) -> Sequence[Any]:
    """Return the argument `middleware` of the running `create_agent`, from its stack frame.

    LangChain does not tell a middleware what else is in the list. If calls of `create_agent` are
    nested, the call whose list contains `own` counts. Outside of such a call, the result is empty.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_name == "create_agent":
            listed = cast("Sequence[Any]", frame.f_locals.get("middleware") or ())
            if any(each is own for each in listed):
                return listed
        frame = frame.f_back
    return ()


def _place(each: Any, wrapped: Wrapped) -> tuple[_Side, str] | None:
    # Tools that are not wrapped may be asked about on either side.
    asked = getattr(each, "interrupt_on", None)
    meets = bool(wrapped) if wrapped is True or asked is None else not wrapped.isdisjoint(asked)
    places = {**_MODEL_CALLS, **(_TOOL_CALLS if meets else {})}
    kind = cast("type[AgentMiddleware[Any, Any, Any]]", type(each))
    hooks = (kind.wrap_model_call, kind.awrap_model_call)
    if any(hook.__qualname__.startswith("dynamic_prompt.") for hook in hooks):
        return "before", _CHANGES
    names = [base.__name__ for base in kind.__mro__ if base.__module__.startswith(_SHIPPED)]
    return next((places[name] for name in names if name in places), None)
