"""Check the order of an agent's middleware around `RetryMiddleware`.

The first middleware in LangChain's list is the outermost. Middleware that changes a request must
come before `RetryMiddleware`, because a person must see and edit the final request. Middleware that
repeats calls, or that turns a failure into an answer, must come after it, within one attempt.
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
_AGAIN = "it would take a person's rejection for a failure, and call again"
_CHANGES = "it changes the request, so a person's edit would be lost"

_MODEL_CALLS: Final[dict[str, tuple[_Side, str]]] = {
    "TodoListMiddleware": ("before", _CHANGES),
    "ContextEditingMiddleware": ("before", _CHANGES),
    "LLMToolSelectorMiddleware": ("after", "its own model call would be paid again at each answer"),
    "ModelRetryMiddleware": ("after", _AGAIN),
    "ModelFallbackMiddleware": ("after", _AGAIN),
}
_TOOL_CALLS: Final[dict[str, tuple[_Side, str]]] = {
    "HumanInTheLoopMiddleware": ("before", "its reviewer's edit would replace a later one"),
    "ToolErrorMiddleware": ("before", "it would hide each failure from the people who are asked"),
    "ToolRetryMiddleware": ("after", _AGAIN),
}
"""The side on which middleware of LangChain must be, and the reason. Other middleware is free.

The table has names and not classes, because older versions of LangChain lack some classes.
"""


def check_order(
    listed: Sequence[Any], own: AgentMiddleware[Any, Any, Any], own_name: str, wrapped: Wrapped
) -> None:
    """Check the middleware of the agent that `create_agent` is making.

    Raises:
        ValueError: If LangChain's own middleware has the wrong place or a wrong option.
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
                f"`{each.name}` makes an answer of a failure, so that `{own_name}` would not see "
                "it and nobody would be asked: give it `on_failure='error'`"
            )
        if each is not own:
            right[side].append(each)
    if wrong:
        before, after = ([each.name for each in right[side]] for side in ("before", "after"))
        order = ", ".join(f"`{name}`" for name in (*before, own_name, *after))
        raise ValueError(f"{'. '.join(wrong)}. The right order is {order}.")


def misplaced(own_name: str, field: str) -> ValueError:
    """Return the error about inner middleware that changes a field of the request."""
    return ValueError(
        f"middleware after `{own_name}` changes `{field}` of the request, so a person's edit would "
        f"be lost: put it before `{own_name}` in `middleware`."
    )


def listed_with(own: AgentMiddleware[Any, Any, Any]) -> Sequence[Any]:
    """Return the argument `middleware` of the running `create_agent`, from its stack frame.

    LangChain does not tell a middleware about the others. The argument's name is public, and a list
    with this very object must be the right one. Outside of `create_agent`, the result is empty.
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
