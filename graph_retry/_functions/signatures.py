"""The functions that users pass: their types, their checks, and their names in messages."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Protocol, TypeVar, cast, get_type_hints

from langchain_core.runnables import Runnable
from pydantic import BaseModel

from graph_retry._functions.arguments import checked
from graph_retry._functions.calling import unwrapped
from graph_retry._functions.kinds import Within
from graph_retry.errors import AttemptFailed

ParamsT = TypeVar("ParamsT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class AttemptContext:
    """Facts about the attempt for an `llm_call` with a second argument named `context`.

    `attempt` is 1-based. `idempotency_key` stays the same if a crash makes this model call run
    again, and no other model call has it. Pass the key to a provider that deduplicates requests.
    `deadline` is the `time.monotonic()` at which the call's `timeout` ends, if it has one.
    """

    attempt: int
    idempotency_key: str
    deadline: float | None = None


# The type has no protocols, because mypy infers no result type from a union of protocols.
LLMCall = (
    Callable[[ParamsT], ResultT]
    | Callable[[ParamsT, AttemptContext], ResultT]
    | Runnable[ParamsT, ResultT]
)
"""A model call: a function (sync or async), or a LangChain runnable such as a chat model.

A model call gets a copy of the params. A function also gets an `AttemptContext` if its second
parameter has that annotation or the name `context`. The result is a text, a LangChain message, a
`Completion` or any other value. If the model call raises an error, the attempt has failed.
"""


class Alternatives(Generic[ParamsT]):
    """Several params that a hook returns, for a person to choose from.

    A review shows all of these params, and `approve(choice=2)` chooses the second. The first params
    are the hook's suggestion, and an automatic retry uses the suggestion.

    Example:
        >>> len(Alternatives([{"model": "large"}, {"model": "small", "temperature": 0.0}]).params)
        2
    """

    @checked
    def __init__(
        self,
        params: Annotated[
            Sequence[ParamsT],
            Within(1),
            "a list that is not empty, of the params of each alternative",
        ],
    ) -> None:
        """Take the params in the order in which they are shown.

        Raises:
            WrongArgumentError: If the sequence is empty.
        """
        self.params = list(params)


class Hook(Protocol[ParamsT]):
    """A function (sync or async) that may propose new params after a failed attempt."""

    def __call__(
        self, error: AttemptFailed, attempt: int, params: ParamsT, /
    ) -> ParamsT | Alternatives[ParamsT] | Awaitable[ParamsT | Alternatives[ParamsT] | None] | None:
        """Propose the params of the next attempt.

        Args:
            error: The failure, with its `kind`, its `issues`, and the ledger in `attempts`.
            attempt: The number of the failed attempt; the first is 1.
            params: A copy of the params of that attempt. Do not change it: return a new object.

        Returns:
            New params, or `Alternatives([…])` for a person to choose from. None means that this
            hook proposes nothing; then the next hook, the feedback or a person is asked.
        """
        ...


class HookTraits(Protocol):
    """Optional attributes by which a hook influences the loop.

    The ready-made hooks use them. Your own hook may be an object with `__call__` and any of them.
    """

    new_means: bool
    """Whether the hook switches to different means, such as a larger model (default False).

    The params of such a hook are tried even after two equal failures. Other hooks must then leave
    the decision to a person."""

    field: str | None
    """The params field to which feedback and a person's comments are added (default: `messages` or
    `prompt`, or the text itself if the params are one text)."""

    def check_params(self, params: Any, /) -> None:
        """Raise `ValueError` if the hook cannot work with these params; called before attempt 1."""

    def asking(self, words: str, /) -> Any:
        """Return a copy of this feedback with different closing words.

        The words tell the model how to answer if JSON text is not wanted: in a different format, or
        by the tools of an agent.
        """


OnRetry = Hook[ParamsT] | Sequence[Hook[ParamsT]] | None
"""One hook, or several that are asked in order until one proposes changed params."""


def name_of(function: Callable[..., Any] | Runnable[Any, Any], default: str) -> str:
    """Return a name for messages, such as `extract` or `ChatModel.invoke`. A lambda has `default`.

    Example:
        >>> name_of("".join, "llm_call")
        'str.join'
    """
    function = unwrapped(function)
    if isinstance(function, Runnable):
        return function.get_name()
    owner = getattr(function, "__self__", None)
    name = getattr(function, "__name__", None) or type(function).__name__
    if owner is not None and not inspect.ismodule(owner):
        kind = cast("type[Any]", owner if inspect.isclass(owner) else type(owner))
        return f"{kind.__name__}.{name}"
    return default if name == "<lambda>" else name


def bind_call(
    llm_call: Callable[..., Any] | Runnable[Any, Any],
) -> Callable[[Any, AttemptContext], tuple[Any, ...]]:
    """Return a function that builds the positional arguments for `llm_call`.

    If the second parameter is named `context` (or annotated `AttemptContext`), the arguments are
    the params and the context. Otherwise, and for a runnable, they are the params alone.

    Raises:
        TypeError: If `llm_call` is not callable, takes no params, or requires further arguments.
    """
    if _takes_context(llm_call):
        return lambda params, context: (params, context)
    return lambda params, _context: (params,)


def _takes_context(llm_call: Callable[..., Any] | Runnable[Any, Any]) -> bool:
    if isinstance(llm_call, Runnable):
        return False
    if not callable(cast("object", llm_call)):
        kind = type(llm_call).__name__
        raise TypeError(f"`llm_call`, the first argument, must be a function, not `{kind}`.")
    try:
        taken = [*inspect.signature(llm_call).parameters.values()]
    except (TypeError, ValueError):
        return False
    name = name_of(llm_call, "llm_call")
    in_turn = [p for p in taken if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    if not in_turn:
        raise TypeError(
            f"`{name}` takes no params, so nobody could change anything about its call: give it "
            "one parameter, and pass as `params` what may be changed."
        )
    has_context = any(
        p.kind is not p.VAR_POSITIONAL
        and (p.name == "context" or p.annotation in (AttemptContext, "AttemptContext"))
        for p in in_turn[1:2]
    )
    named = [p for p in taken if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    needed = [p for p in named if p.default is p.empty and p not in in_turn[: 1 + has_context]]
    if missing := [f"`{p.name}`" for p in needed]:
        raise TypeError(
            f"`{name}` needs {', '.join(missing)}, but it is called as `llm_call(params)` or "
            "`llm_call(params, context)`: move what a person might change into params and "
            "capture the rest, e.g. with a lambda."
        )
    return has_context


def declared_params(llm_call: Callable[..., Any] | Runnable[Any, Any]) -> type[Any] | None:
    """Return the pydantic model or dataclass by which a function annotates its params, or None.

    A decorated function gives None, because a decorator such as pydantic's `validate_call` may
    convert the argument. An annotation that cannot be evaluated also gives None.

    Example:
        >>> def ask(params: AttemptContext) -> str: ...
        >>> declared_params(ask).__name__, declared_params(str.upper)
        ('AttemptContext', None)
    """
    if not inspect.isroutine(llm_call) or hasattr(llm_call, "__wrapped__"):
        return None
    try:
        first = next(iter(inspect.signature(llm_call).parameters))
        declared = inspect.get_annotations(llm_call).get(first)
        if isinstance(declared, str):
            declared = get_type_hints(llm_call).get(first)
    except Exception:  # noqa: BLE001 - an annotation is anybody's code, and may be of a later import
        return None
    cls = cast("type[Any]", declared) if isinstance(declared, type) else object
    return cls if issubclass(cls, BaseModel) or dataclasses.is_dataclass(cls) else None
