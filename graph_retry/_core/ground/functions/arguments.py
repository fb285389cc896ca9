"""Check the arguments of public functions by their annotations; make sync and async forms.

`checked` checks each call of a function, before the function runs. `check_options` checks the
options that a `TypedDict` declares. The error tells the allowed values and the given value.

`in_sync` makes the sync form of a coroutine function. `async_twin` makes the async form, whose name
begins with `a`. Both run the same coroutine function, and have its signature and docstring.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import (
    Annotated,
    Any,
    NotRequired,
    ParamSpec,
    TypeVar,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from typing_extensions import is_typeddict

from graph_retry._core.ground.credentials import Random, says_secret
from graph_retry._core.ground.functions.awaiting import naming_twin, run_async, run_sync
from graph_retry._core.ground.functions.kinds import (
    Misfit,
    Within,
    functions_in,
    is_ours,
    misfit,
)
from graph_retry._core.ground.wording import did_you_mean, kind_and_size, one_of
from graph_retry.lossless._ground import EscapedText, as_repr

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound=Callable[..., Any])

Count = Annotated[int, Within(1)]
Size = Annotated[int, Within(0)]
Amount = Annotated[float, Within(0)]
Seconds = Annotated[
    float,
    Within(above=0, most=1_000_000_000),  # 31 years, because a much later time cannot be computed.
    "a number of seconds above 0 (at most 1_000_000_000)",
]
Share = Annotated[float, Within(0, 1)]
Name = Annotated[str, Within(1)]
Moment = Annotated[str, "a text with a time in ISO 8601, such as '2030-05-01T08:00'"]
Secret = Annotated[
    str,
    Random(),
    "a random text of 22 characters or more, such as `secrets.token_urlsafe()` returns",
]


class WrongArgumentError(EscapedText, TypeError, ValueError):
    """An argument has a wrong name, type or value.

    This error is both a `TypeError` and a `ValueError`, so you can catch it as either of the two.
    """


def checked(target: T) -> T:
    """Decorate a function or class, so that its annotations are checked at each call.

    Raises:
        WrongArgumentError: Whenever an argument does not fit its annotation.

    Example:
        >>> @checked
        ... def say(a: str, n: Count = 1) -> str:
        ...     return a * n
        >>> say("ab", n="2")
        Traceback (most recent call last):
        ...
        graph_retry._core.ground.functions.arguments.WrongArgumentError: `n`: give a whole ...
    """
    if not isinstance(target, type):
        return cast("T", _checking(target, target))
    made = cast("Any", target)
    made.__init__ = _checking(made.__init__, made if is_dataclass(made) else made.__init__)
    return cast("T", made)


def _checking(function: Callable[..., Any], annotated: Any) -> Callable[..., Any]:
    """Return `function` with a check of its arguments by the annotations of `annotated`."""

    def check(args: tuple[Any, ...], given: Mapping[str, Any]) -> Mapping[str, Any]:
        signature, rest, own = _shape(function)
        kinds = hints_of(annotated)
        declared = get_args(kinds[rest])[0] if get_origin(kinds.get(rest)) is Unpack else None
        if not rest or declared:
            # Only `self`, which a caller cannot give, has no declared type.
            known = [name for name in own if name in kinds]
            check_names(given, [*known, *(hints_of(declared) if declared else ())])
        called = function.__qualname__.removesuffix(".__init__")
        try:
            bound = signature.bind_partial(*args, **given).arguments
        except TypeError:  # If the check below raises nothing, the call itself raises this error.
            parameters = signature.parameters.values()
            named = [f"`{p.name}=`" for p in parameters if p.kind is p.KEYWORD_ONLY]
            if named and len(args) > sum(p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters):
                raise WrongArgumentError(
                    f"`{called}`: give {one_of(named)}, each by its name; not "
                    f"{kind_and_size(args[-1])}."
                ) from None
            return given
        options = bound.pop(rest, {})
        in_turn = [name for name in [*bound][: len(args)] if name in kinds]
        # Two arguments may be swapped, so the error shows the order of those given by position.
        order = f" The order is `{called}({', '.join(in_turn)})`."
        for name, value in bound.items():
            is_many = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            hint = order if len(in_turn) > 1 and name in in_turn else ""
            for item in value if is_many else (value,):
                check_argument(name, item, kinds.get(name, Any), hint)
        if not declared:
            return given
        settled = check_options(declared, options)
        return {name: value for name, value in given.items() if name in {*settled, *bound}}

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def called_later(*args: Any, **given: Any) -> Any:
            return await function(*args, **check(args, given))

        return called_later

    @functools.wraps(function)
    def called(*args: Any, **given: Any) -> Any:
        return function(*args, **check(args, given))

    return called


def check_options(
    declared: Any, given: Mapping[str, Any], also: Iterable[str] = (), *, inside: str = ""
) -> dict[str, Any]:
    """Check options by the `TypedDict` that declares them. Return those that are not None.

    Args:
        declared: The `TypedDict`.
        given: The options.
        also: Names of other arguments, which may be suggested for a misspelt option.
        inside: The argument that holds the options, or "" if each option is an argument.

    Raises:
        WrongArgumentError: If an option is missing, unknown, or does not fit its type.
    """
    kinds = hints_of(declared)
    check_names(given, kinds, also, inside=inside)
    settled = {name: value for name, value in given.items() if value is not None}
    for name, value in settled.items():
        kind = kinds[name]
        kind = get_args(kind)[0] if get_origin(kind) is NotRequired else kind
        check_argument(f"{inside}[{as_repr(name)}]" if inside else name, value, kind)
    if missing := [name for name in _required(declared) if name not in settled]:
        what = f"`{inside}` has no" if inside else "missing argument"
        raise WrongArgumentError(f"{what} `{missing[0]}`.")
    return settled


def check_names(
    given: Iterable[str], known: Collection[str], also: Iterable[str] = (), *, inside: str = ""
) -> None:
    """Raise if an argument has an unknown name. The error suggests a similar known name."""
    for name in given:
        if name not in known:
            what = f"`{inside}` has an unknown key" if inside else "unknown argument"
            listed = f" Known are {', '.join(known)}."
            meant = did_you_mean(name, (*known, *also)) or listed
            raise WrongArgumentError(f"{what} `{name:.80}`.{meant}")


@cache
def _shape(function: Callable[..., Any]) -> tuple[inspect.Signature, str, list[str]]:
    """Return a function's signature, the name of `**options`, and other keyword arguments.

    The signature is read at the first call, because the import must be fast.
    """
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    rest = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), "")
    own = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return signature, rest, own


@cache
def hints_of(annotated: Any) -> dict[str, Any]:
    """Return the declared types of a function, dataclass or `TypedDict`, by name."""
    return get_type_hints(annotated, include_extras=True)


def _required(declared: Any) -> list[str]:
    # `__required_keys__` is wrong under `from __future__ import annotations`.
    kinds = hints_of(declared).items() if declared.__total__ else ()
    return [name for name, kind in kinds if get_origin(kind) is not NotRequired]


def check_argument(name: str, value: Any, kind: Any, hint: str = "") -> None:
    """Raise if a value does not fit a declared type. `hint` is added to the error.

    Raises:
        WrongArgumentError: If the value does not fit the type.

    Example:
        >>> try:
        ...     check_argument("--limit", "many", int)
        ... except WrongArgumentError as error:
        ...     print(error)
        `--limit`: give a whole number; not 'many'.
    """
    wrong = misfit(value, kind, name)
    if wrong is not None:
        shown = kind_and_size(wrong.value) if says_secret(name) else _shown(wrong.value)
        told = f"`{wrong.place}`: give {wrong.wanted}; not {shown}{wrong.why}.{wrong.hint}"
        raise WrongArgumentError(f"{told}{_how_to_use(wrong)}{hint}")


def _how_to_use(wrong: Misfit) -> str:
    """Return how to use a function of this library that was passed without being called."""
    if not is_ours(wrong.value):
        return ""
    use = f"{wrong.value.__name__}(…)"
    functions = functions_in(wrong.kind)
    if not functions or not is_typeddict(hints_of(wrong.value).get("return")):
        return f" Call it: `{use}`."
    # Its result is data, such as a decision, which the wanted function may have to return.
    names = [each for each in functions if all(isinstance(name, str) for name in each)]
    return f" Write `lambda {', '.join(names[0])}: {use}`." if names else ""


def _shown(value: Any) -> str:
    if get_origin(value) is not None:
        return f"the class `{value}`"
    if callable(value) and hasattr(value, "__name__"):
        return f"{'the class ' * isinstance(value, type)}`{value.__name__}`"
    return as_repr(value)


def in_sync(flow: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    """Make a coroutine function callable in sync code, with a check of its arguments.

    The coroutine runs without an event loop. So it may await only functions that need none, such as
    `call` and `sync_or_async`. If a graph or saver is async only, the error names the async form.

    Example:
        >>> @in_sync
        ... async def doubled(n: int) -> int:
        ...     return 2 * n
        >>> doubled(3), async_twin(doubled).__name__
        (6, 'adoubled')
    """

    @functools.wraps(flow)
    def sync(*args: P.args, **kwargs: P.kwargs) -> R:
        with naming_twin(f"a{flow.__name__}"):
            return run_sync(flow(*args, **kwargs))

    return checked(sync)


def async_twin(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return the async form of a function that `in_sync` has decorated.

    Example:
        >>> import asyncio
        >>> @in_sync
        ... async def doubled(n: int) -> int:
        ...     return 2 * n
        >>> asyncio.run(async_twin(doubled)(3))
        6
    """
    flow = cast("Callable[P, Coroutine[Any, Any, R]]", inspect.unwrap(function))
    owner, _, name = flow.__qualname__.rpartition(".")

    @functools.wraps(flow)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> R:
        return await run_async(flow(*args, **kwargs))

    twin.__name__, twin.__qualname__ = f"a{name}", f"{owner}.a{name}".lstrip(".")
    twin.__doc__ = f"Do the same as `{name}`, in async code.\n\n    {flow.__doc__}"
    return checked(twin)
