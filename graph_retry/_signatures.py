"""Names and signatures of the functions users hand over."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast, get_origin, get_type_hints

from langchain_core.runnables import Runnable
from pydantic import BaseModel

from graph_retry._awaiting import unwrapped
from graph_retry.errors import AttemptFailed

ParamsT = TypeVar("ParamsT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class AttemptContext:
    """Facts about the attempt for an `llm_call` with a second argument named `context`.

    `attempt` is 1-based. `idempotency_key` is the same when a crash makes the same call run again,
    and differs for every other call: pass it to a provider that deduplicates requests.
    `deadline` is the `time.monotonic()` at which the call's `timeout` ends, if it has one.
    """

    attempt: int
    idempotency_key: str
    deadline: float | None = None


# No `Protocol`: mypy finds no result type where a function may fit one of several.
LLMCall = (
    Callable[[ParamsT], ResultT]
    | Callable[[ParamsT, AttemptContext], ResultT]
    | Runnable[ParamsT, ResultT]
)
"""A model call: a function, sync or async, or one of LangChain's runnables, such as a chat model,
which is invoked with the params.

A function gets a copy of the params, which is its own, and an `AttemptContext` if its second
parameter has that annotation or the name `context`. It returns text, a LangChain message, a
`Completion` or any other value. An exception is the attempt's failure.
"""


class Alternatives(Generic[ParamsT]):
    """Params that a person may choose from, returned by a hook; the first are its suggestion.

    A person sees all of them, and `approve(choice=2)` takes the second. An automatic retry takes
    the first.

    Example:
        >>> len(Alternatives([{"model": "large"}, {"model": "small", "temperature": 0.0}]).params)
        2
    """

    def __init__(self, params: Sequence[ParamsT]) -> None:
        """Take the params in the order in which they are shown.

        Raises:
            ValueError: If there are none.
        """
        if not params:
            raise ValueError("`Alternatives` needs params to choose from: give one or more.")
        self.params = list(params)


class Hook(Protocol[ParamsT]):
    """A function, sync or async, that may mend the params after a failed attempt."""

    def __call__(
        self, error: AttemptFailed, attempt: int, params: ParamsT, /
    ) -> ParamsT | Alternatives[ParamsT] | Awaitable[ParamsT | Alternatives[ParamsT] | None] | None:
        """Propose the params of the next attempt.

        Args:
            error: Why the attempt failed: its `kind`, its `issues`, the ledger in `attempts`.
            attempt: The number of the failed attempt; the first is 1.
            params: A copy of the params that the attempt was made with; it must not be changed.

        Returns:
            New params, `Alternatives([…])` for a person to choose from, or None to leave it to
            the next hook, the feedback or a person.
        """
        ...


class HookTraits(Protocol):
    """Optional attributes of a hook that the loop uses.

    The ready hooks are made of these. A hook of your own is an object with `__call__` and the parts
    it needs.
    """

    new_means: bool
    """True where it goes over to other means, such as a larger model, and not to other words: its
    params are also tried after two equal failures, before a person is asked. Default: False."""

    field: str | None
    """The params field that `feedback` and a person's comments are written to. Default:
    `messages` or `prompt`, or the bare text."""

    def check_params(self, params: Any, /) -> None:
        """Raise `ValueError`, before the first call, for params that the hook could not work on."""

    def asking(self, words: str, /) -> Any:
        """Return the same feedback with other closing words.

        They tell the model how to answer if its answer is not JSON text: in another format, or by
        the tools of an agent.
        """


OnRetry = Hook[ParamsT] | Sequence[Hook[ParamsT]] | None
"""One hook, or hooks that are asked in order until one proposes other params."""


def name_of(function: Callable[..., Any] | Runnable[Any, Any], default: str) -> str:
    """Return a name a person recognises: `ChatModel.invoke`, `extract`, or `default` for a lambda.

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
    """Return a function that makes the positional arguments for `llm_call`.

    A function with a second parameter called `context` (or annotated `AttemptContext`) gets the
    context as well. Every other function, and a runnable, gets the params alone.

    Raises:
        TypeError: If `llm_call` is not callable, takes no params, or needs arguments nobody will
            give.
    """
    if isinstance(llm_call, Runnable):
        return lambda params, _context: (params,)
    if not callable(cast("object", llm_call)):
        msg = f"`llm_call` must be a function of the params, not `{type(llm_call).__name__}`."
        raise TypeError(msg)
    try:
        signature = inspect.signature(llm_call)
    except (TypeError, ValueError):
        return lambda params, _context: (params,)
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p for p in signature.parameters.values() if p.kind in kinds]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())
    required_keywords = [
        p.name
        for p in signature.parameters.values()
        if p.kind is p.KEYWORD_ONLY and p.default is p.empty
    ]
    second = positional[1] if len(positional) > 1 else None
    with_context = second is not None and (
        second.name == "context" or second.annotation in (AttemptContext, "AttemptContext")
    )
    missing = [
        p.name for p in positional[2 if with_context else 1 :] if p.default is p.empty
    ] + required_keywords
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        msg = (
            f"`{name_of(llm_call, 'llm_call')}` needs {names}, but it is called as "
            "`llm_call(params)` or `llm_call(params, context)`: move what a person might change "
            "into params and capture the rest, e.g. with a lambda."
        )
        raise TypeError(msg)
    if not (positional or takes_any):
        msg = (
            f"`{name_of(llm_call, 'llm_call')}` takes no params, so nobody could change anything "
            "about its call: give it one parameter, and pass as `params` what may be changed."
        )
        raise TypeError(msg)
    if with_context:
        return lambda params, context: (params, context)
    return lambda params, _context: (params,)


def declared_params(llm_call: Callable[..., Any] | Runnable[Any, Any]) -> type[Any] | None:
    """Return the model or dataclass that a plain function declares for its params, or None.

    A decorator may convert its argument, as pydantic's `validate_call` does. So the result is None
    for a decorated function, and for an annotation that cannot be evaluated.

    Example:
        >>> def ask(params: AttemptContext) -> str: ...
        >>> declared_params(ask).__name__, declared_params(str.upper)
        ('AttemptContext', None)
    """
    if not inspect.isroutine(llm_call) or hasattr(llm_call, "__wrapped__"):
        return None
    try:
        first = next(iter(inspect.signature(llm_call).parameters))
        declared = get_type_hints(llm_call).get(first)
    except Exception:  # noqa: BLE001 - an annotation is anybody's code, and may be of a later import
        return None
    cls = cast("type[Any]", declared) if isinstance(declared, type) else object
    return cls if issubclass(cls, BaseModel) or dataclasses.is_dataclass(cls) else None


def check_hook(hook: Any, option: str = "on_retry") -> None:
    """Refuse what cannot be called as `hook(error, attempt, params)`, before a model is paid for.

    Raises:
        TypeError: If it is not a function, or takes other arguments.
    """
    if isinstance(hook, type) or get_origin(hook) is not None:
        name = hook.__name__ if isinstance(hook, type) else str(hook)
        wrong = f"the class `{name}` (meant as `output={name}`?)"
    elif not callable(hook):
        wrong = f"{hook!r:.200}"
    else:
        try:
            inspect.signature(hook).bind(None, 1, None)
        except ValueError:  # a builtin without a signature
            return
        except TypeError as error:
            wrong = f"`{name_of(hook, option)}`, which does not take these three ({error})"
        else:
            return
    raise TypeError(
        f"`{option}` must be a function `(error, attempt, params) -> new params | None`"
        f"{', or a list of them' if option == 'on_retry' else ''}, not {wrong}."
    )


def check_callback(function: Any, argument: str, *, may_be_async: bool) -> None:
    """Refuse what cannot be called with one argument, before a model is paid for.

    Raises:
        ValueError: If it is a class, takes other arguments, or is async where it must not be.
    """
    wanted = f"give a function that takes {argument} alone"
    if isinstance(function, type) or get_origin(function) is not None:
        raise ValueError(f"{wanted}, and no class")
    if not may_be_async and inspect.iscoroutinefunction(unwrapped(function)):
        raise ValueError(f"{wanted} and is not async")
    try:
        inspect.signature(function).bind(None)
    except ValueError:  # a builtin without a signature
        return
    except TypeError as error:
        raise ValueError(f"{wanted} ({error})") from None
