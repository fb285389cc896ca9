"""The types of the functions that users pass, and how these functions get the params."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    Protocol,
    TypeVar,
    _SpecialForm,  # pyright: ignore[reportPrivateUsage]
    cast,
    get_type_hints,
)

from langchain_core.runnables import Runnable
from pydantic import BaseModel

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.functions.calling import unwrapped
from graph_retry._core.ground.functions.kinds import Within
from graph_retry.errors import AttemptFailed
from graph_retry.lossless._ground import error_text

ParamsT = TypeVar("ParamsT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class AttemptContext:
    """Facts about an attempt. An `llm_call` gets them as a second argument named `context`.

    attempt: The number of the attempt; the first is 1.
    idempotency_key: A text that identifies one call of the model. It stays the same if a crash
        makes this call run again. Pass it to a provider that deduplicates requests.
    deadline: The `time.monotonic()` at which the option `timeout` ends; None without this option.
    """

    attempt: int
    idempotency_key: str
    deadline: float | None = None


# The type has no protocols, because mypy infers no result type from a union of protocols.
LLMCall = (
    Callable[[ParamsT], ResultT]
    | Callable[[ParamsT, AttemptContext], ResultT]
    | Callable[[], ResultT]
    | Runnable[ParamsT, ResultT]
)
"""A model call: a function (sync or async), or a LangChain runnable such as a chat model.

It gets a copy of the params. A function also gets an `AttemptContext`, if its second parameter has
that annotation or the name `context`. A function with keyword arguments only, such as the method of
an SDK, gets dict params by name. If the params are None, the function may have no parameter. The
result is a text, a LangChain message, a `Completion`, a stream of such pieces, or any other value.
If an error is raised, the attempt has failed. Pieces that cannot be joined, such as a text and a
dict, are an error. The `stream` of a chain gives the same result as its `invoke`.
"""


class Alternatives(Generic[ParamsT]):
    """Several params that a hook returns, from which a person may choose.

    A review shows all alternatives, and suggests the first. `approve(choice=2)` chooses the second.
    An automatic retry uses the first.

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
        """Keep the alternatives. A review shows them in this order.

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
            hook proposes nothing. Then the next hook, the feedback or a person is asked.
        """
        ...


class HookTraits(Protocol):
    """Optional attributes of a hook, which change how the loop uses the hook.

    A hook that is an object with `__call__` may have any of these attributes, as the ready-made
    hooks do.
    """

    new_means: bool
    """Whether the hook tries other means, such as a larger model (default False).

    Automatic retries usually end after two equal failures in a row. They continue with params from
    a hook whose `new_means` is True.
    """

    from_attempt: int
    """The number of the first attempt after which the hook may change the params (default 1)."""

    field: str | None
    """The params field for feedback and comments (default: `messages` or `prompt`, or the text)."""

    def check_params(self, params: Any, /) -> None:
        """Raise `ValueError` if the hook cannot work with these params; called before attempt 1."""

    def asking(self, words: str, /) -> Any:
        """Return a copy of this feedback with `words` as its last sentence.

        `words` tells the model how to answer, for example by a tool call instead of JSON text.
        """


OnRetry = Hook[ParamsT] | Sequence[Hook[ParamsT]] | None
"""One hook, or several hooks that are asked in order until one changes the params."""

# mypy has no other name for the type of the expressions `Literal["a"]` and `Annotated[int, …]`.
OutputForm = Mapping[str, Any] | Callable[[Any], Any] | UnionType | _SpecialForm
"""An output's declaration that is not a class: a JSON Schema, a function or a union."""


def name_of(function: Callable[..., Any] | Runnable[Any, Any], default: str) -> str:
    """Return the name of a function for messages, such as `extract`. A lambda gets `default`.

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


@dataclass(frozen=True)
class Passing:
    """How a function gets the params: as one object, by name, or not at all.

    by: "name" for a function with keyword arguments only, such as a method of an SDK, and "nothing"
        for a function without parameters. Otherwise "position".
    has_context: Whether the function also gets an `AttemptContext`.
    """

    name: str
    by: Literal["position", "name", "nothing"] = "position"
    has_context: bool = False
    signature: inspect.Signature | None = None

    def bound(
        self, llm_call: Any, params: Any, context: AttemptContext
    ) -> tuple[Callable[..., Any] | Runnable[Any, Any], tuple[Any, ...]]:
        """Return the function to call in one attempt, and its positional arguments."""
        if self.by == "nothing":
            return llm_call, ()
        if self.by == "position":
            return llm_call, ((params, context) if self.has_context else (params,))
        own = {"context": context} if self.has_context else {}
        return partial(llm_call, **own, **(params or {})), ()

    def check_kind(self, kind: type[Any]) -> None:
        """Raise if the function cannot take params of a class. None has the class `NoneType`."""
        if self.by == "nothing" and kind is not type(None):
            raise TypeError(
                f"`{self.name}` has no parameter, so nobody could change anything in its call: "
                "give it one parameter, or pass `None` as `params`."
            )
        if self.by == "name" and not issubclass(kind, dict | None):
            raise TypeError(
                f"`{self.name}` has only keyword arguments, so it gets the params by name: pass "
                "a dict as `params`, or wrap the function, e.g. `lambda params: "
                f"{self.name}(…)`."
            )

    def check_names(self, params: Mapping[str, Any]) -> None:
        """Raise if params that are passed by name do not fit the function's arguments."""
        if self.by != "name" or self.signature is None:
            return
        own = {"context"} if self.has_context else set[str]()
        try:
            self.signature.bind(**dict.fromkeys({*own, *params}))
        except TypeError as error:
            raise TypeError(
                f"`{self.name}` gets the params by name, but they do not fit its arguments: "
                f"{error_text(error)}."
            ) from None


def passing_to(llm_call: Callable[..., Any] | Runnable[Any, Any]) -> Passing:
    """Find out how a function gets the params, from its signature.

    The first positional parameter gets the params. The second gets the context if it is named
    `context` (or annotated `AttemptContext`). A runnable gets only the params.

    Raises:
        TypeError: If `llm_call` is not callable, or requires further arguments.
    """
    name = name_of(llm_call, "llm_call")
    if isinstance(llm_call, Runnable):
        return Passing(name)
    if not callable(cast("object", llm_call)):
        kind = type(llm_call).__name__
        raise TypeError(f"`llm_call`, the first argument, must be a function, not `{kind}`.")
    try:
        signature = inspect.signature(llm_call)
    except (TypeError, ValueError):
        return Passing(name)
    taken = [*signature.parameters.values()]
    in_turn = [p for p in taken if p.kind not in (p.KEYWORD_ONLY, p.VAR_KEYWORD)]
    if not in_turn:
        has_context = any(_is_context(p) and p.default is p.empty for p in taken)
        return Passing(name, "name" if taken else "nothing", has_context, signature)
    has_context = any(p.kind is not p.VAR_POSITIONAL and _is_context(p) for p in in_turn[1:2])
    named = [p for p in taken if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    needed = [p for p in named if p.default is p.empty and p not in in_turn[: 1 + has_context]]
    if missing := [f"`{p.name}`" for p in needed]:
        raise TypeError(
            f"`{name}` needs {', '.join(missing)}, but is called as `llm_call(params)` or "
            f"`llm_call(params, context)`. Wrap it, e.g. `lambda params: {name}(**params)` for "
            "a dict: put values that a person might change into params, and keep the others in "
            "the lambda."
        )
    return Passing(name, "position", has_context)


def _is_context(parameter: inspect.Parameter) -> bool:
    declared = parameter.annotation in (AttemptContext, "AttemptContext")
    return declared or parameter.name == "context"


def declared_params(llm_call: Callable[..., Any] | Runnable[Any, Any]) -> type[Any] | None:
    """Return the pydantic model or dataclass that annotates a function's params, or None.

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
        first, parameter = next(iter(inspect.signature(llm_call).parameters.items()))
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            return None
        declared = inspect.get_annotations(llm_call).get(first)
        if isinstance(declared, str):
            declared = get_type_hints(llm_call).get(first)
    except Exception:  # noqa: BLE001 - an annotation is anybody's code, and may be of a later import
        return None
    cls = cast("type[Any]", declared) if isinstance(declared, type) else object
    return cls if issubclass(cls, BaseModel) or dataclasses.is_dataclass(cls) else None
