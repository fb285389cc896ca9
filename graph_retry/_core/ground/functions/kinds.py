"""Check that a value fits a declared type, and describe the type in words for the error.

No value is converted, and `True` is not a number. The items of a container are checked as well. A
function must take the right number of arguments, and may be async only if its type allows that.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    runtime_checkable,
)

from langchain_core.runnables import RunnableConfig
from typing_extensions import is_protocol, is_typeddict

from graph_retry._core.ground.functions.calling import forgotten, unwrapped, yields
from graph_retry._core.ground.json import is_number, is_whole
from graph_retry._core.ground.wording import counted, did_you_mean, one_of, quoted_with_article
from graph_retry.lossless._ground import as_repr, error_text


@runtime_checkable
class Rule(Protocol):
    """A rule for values of a type, for `Annotated`. It may have a `hint`, which ends its errors."""

    def holds(self, value: Any, /) -> bool:
        """Return whether a value obeys the rule. The value already has the right type."""
        ...


class Within(NamedTuple):
    """The bounds of a number, or of the size of a text or list, for `Annotated`.

    A value must be at least `least`, at most `most`, and greater than `above`.
    """

    least: float = float("-inf")
    most: float = float("inf")
    above: float = float("-inf")

    def holds(self, value: Any) -> bool:
        """Return whether a value is within the bounds. NaN never is."""
        size = value if is_number(value) else len(value)
        return self.least <= size <= self.most and size > self.above

    def __str__(self) -> str:
        """Describe the bounds of a number."""
        if self.above > float("-inf"):
            return f" above {self.above:g}"
        return f" from {self.least:g}" + (f" to {self.most:g}" if self.most < float("inf") else "")


class Misfit(NamedTuple):
    """A value that does not fit its type: its place, its type, a reason and a suggestion."""

    place: str
    value: Any
    kind: Any
    why: str = ""
    hint: str = ""

    @property
    def wanted(self) -> str:
        """The type in words, such as `a list of texts`."""
        return _words(self.kind)


@cache
def _parts(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the origin and arguments of a type, such as `list` and `(int,)` of `list[int]`."""
    return get_origin(kind), get_args(kind)


def misfit(value: Any, kind: Any, place: str) -> Misfit | None:
    """Find the first part of a value that does not fit a type. Return None if all parts fit."""
    is_read = inspect.isgenerator(value) and value.gi_frame is None
    if is_read or (inspect.isasyncgen(value) and value.ag_frame is None):
        return Misfit(place, value, kind, ", which has been read to its end (make it again)")
    if kind is Any or type(value) is kind:
        return None
    origin, args = _parts(kind)
    if origin is Annotated:
        return _misfit_within(value, kind, place)
    if origin in (Union, types.UnionType):
        return _misfit_of_all(value, kind, place)
    if origin is Literal:
        if any(type(value) is type(each) and value == each for each in args):
            return None
        meant = did_you_mean(value, args) if isinstance(value, str) else ""
        return Misfit(place, value, kind, hint=meant)
    if (arguments := _arguments_of(kind)) is not None:
        why = _unlike(value, arguments, kind)
        return None if why is None else Misfit(place, value, kind, why, _make_it(value, Callable))
    if not _is_a(value, kind):
        return Misfit(place, value, kind, hint=_make_it(value, origin or kind))
    return next((found for found in _misfit_items(value, origin, args, place) if found), None)


def _misfit_within(value: Any, kind: Any, place: str) -> Misfit | None:
    """Check a value by its type, and then by the rules in `Annotated`."""
    inner, *more = _parts(kind)[1]
    rules = [each for each in more if isinstance(each, Rule)]
    found = misfit(value, inner, place)
    if found is None and all(each.holds(value) for each in rules):
        return None
    if found is not None and found.place != place:
        return found
    found = found or Misfit(place, value, kind)
    hints = [getattr(each, "hint", "") for each in rules]
    return found._replace(kind=kind, hint="".join([found.hint, *hints]))


def _misfit_of_all(value: Any, kind: Any, place: str) -> Misfit | None:
    """Check a value against a union, and return the most specific misfit, as of a list item."""
    wrong = list[Misfit]()
    for branch in _parts(kind)[1]:
        found = misfit(value, branch, place)
        if found is None:
            return None
        wrong.append(found)
    inside = next((each for each in wrong if each.place != place), None)
    told = next((each for each in wrong if each.why or each.hint), wrong[0])
    return inside or told._replace(kind=kind)


def _misfit_items(
    value: Any, origin: Any, args: tuple[Any, ...], place: str
) -> Iterator[Misfit | None]:
    """Check the items of a container. An iterator is not read, because its items would be lost."""
    if not args or not isinstance(value, Collection):
        return
    if isinstance(value, Mapping):
        for key, item in cast("Any", value).items():
            yield misfit(key, args[0], f"{place}, key {as_repr(key, 40)}")
            yield misfit(item, args[-1], f"{place}[{as_repr(key, 40)}]")
        return
    items = list(cast("Any", value))
    is_pair = origin is tuple and args[-1] is not Ellipsis
    if is_pair and len(items) != len(args):
        yield Misfit(place, value, tuple)
    kinds = args if is_pair else (args[0],) * len(items)
    for number, (item, kind) in enumerate(zip(items, kinds, strict=False)):
        yield misfit(item, kind, f"{place}[{number}]")


def _is_a(value: Any, kind: Any) -> bool:
    """Return whether a value is of a type, without a check of the items in a container."""
    kind = _parts(kind)[0] or kind
    if kind in (Any, object) or isinstance(kind, TypeVar):
        return True
    if kind is int:
        return is_whole(value)
    if kind is float:
        return is_number(value)
    if kind == RunnableConfig and isinstance(value, Mapping) and value:
        # If a dict has no key of a config, it is meant as something else, such as an argument.
        known = RunnableConfig.__annotations__.keys()
        return not known.isdisjoint(cast("Mapping[str, Any]", value))
    if is_typeddict(kind):
        return isinstance(value, Mapping)
    if kind in (Sequence, Iterable, Collection) and isinstance(value, str | bytes | Mapping):
        return False
    # A class may have all methods of a protocol such as `Format`, but it is not such an object.
    return isinstance(value, kind) and (kind is type or not isinstance(value, type))


def _make_it(value: Any, kind: Any) -> str:
    """Advise to make an object of a class that was given in place of its object."""
    with suppress(TypeError):  # `value` or `kind` may be no class.
        if isinstance(value, kind) if is_protocol(kind) else issubclass(value, kind):
            return f" Make an object of it: `{value.__name__}(…)`."
    return ""


@cache
def _arguments_of(kind: Any) -> list[Any] | None:
    """Return the argument types of a `Callable`, or the argument names of a protocol, or None."""
    if get_origin(kind) is Callable or kind is Callable:
        listed: Any = (get_args(kind) or (...,))[0]
        # A `ParamSpec` stands for arguments of any kind, as `...` does.
        return list(listed) if hasattr(listed, "__iter__") else [...]
    kind = get_origin(kind) or kind
    if isinstance(kind, type) and Protocol in kind.__mro__ and "__call__" in vars(kind):
        return [*inspect.signature(kind.__call__).parameters][1:]
    return None


def functions_in(kind: Any) -> list[list[Any]]:
    """Return the arguments of all function types that a type, such as a union, allows."""
    origin, args = _parts(kind)
    if origin is Annotated:
        return functions_in(args[0])
    if origin in (Union, types.UnionType):
        return [found for branch in args for found in functions_in(branch)]
    return [] if (arguments := _arguments_of(kind)) is None else [arguments]


def _unlike(function: Any, arguments: list[Any], kind: Any) -> str | None:
    """Return why a value is no function of these arguments (or ""); None if it is one."""
    is_class = isinstance(function, type) or get_origin(function) is not None
    if is_class or not callable(function) or is_ours(function):
        return ""
    result = (get_args(kind) or (None, Any))[-1]
    waits = any((get_origin(each) or each) is Awaitable for each in (result, *get_args(result)))
    is_sync = get_origin(kind) is Callable and result is not Any and not waits
    if is_sync and inspect.iscoroutinefunction(unwrapped(function)):
        return ", which is async"
    if arguments != [...] and yields(function):
        return ", which is a generator function (use `return` in place of `yield`)"
    if (line := forgotten(function)) is not None:
        return f", which never returns what it computes in {line} (add `return`)"
    try:
        if arguments != [...]:
            inspect.signature(function).bind(*arguments)
    except ValueError:  # Some builtins have no signature to check.
        return None
    except TypeError as error:
        return f", which cannot be called so ({error_text(error)})"
    return None


def is_ours(function: Any) -> bool:
    """Return whether a value is a public function of this library, which is never a callback."""
    if not inspect.isfunction(function) or "." in function.__qualname__:
        return False
    # `checked` wraps public functions. A function that one of them made has a dotted name, and a
    # function made by `exec` may have no module.
    module: str | None = function.__module__
    return (module or "").startswith(_PACKAGE) and hasattr(function, "__wrapped__")


_PACKAGE = f"{__name__.partition('.')[0]}."
_PLAIN: dict[Any, str] = {
    str: "a text",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    type(None): "None",
    Any: "any value",
    Awaitable: "a call to await",
    RunnableConfig: 'a config, such as {"configurable": {…}}',
    **dict.fromkeys((dict, Mapping), "a dict"),
    **dict.fromkeys((list, Sequence, Iterable, Collection), "a list"),
}


def _words(kind: Any, size: str = "") -> str:
    """Describe a type in words, such as `a list of texts`. `size` is added to the words."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        told = next((each for each in args[1:] if isinstance(each, str)), None)
        within = next((str(each) for each in args[1:] if isinstance(each, Within)), "")
        of_size = within if args[0] in (int, float) else " that is not empty"
        return told or _words(args[0], of_size if within else "")
    if origin is Literal:
        return one_of([repr(each) for each in args]) + size
    if origin in (Union, types.UnionType):
        return _words_of_union(args) + size
    if (arguments := _arguments_of(kind)) is not None:
        return _words_of_function(arguments)
    plain = _PLAIN.get(origin or kind)
    is_open = not args or args[-1] is Any or isinstance(args[-1], TypeVar)
    if plain not in ("a dict", "a list") or is_open:
        return (plain or quoted_with_article((origin or kind).__name__)) + size
    item = _words(args[-1])
    by = " by name" if plain == "a dict" and args[0] is str else ""
    is_plain = item in _PLAIN.values()
    if is_plain:
        return f"{plain} of {item.removeprefix('a ')}s{by}{size}"
    part = "item" if plain == "a list" else "value"
    return f"{plain}{by}{size}, each {part} {item}"


def _words_of_union(branches: Iterable[Any]) -> str:
    """Describe a union, as in `a text or a list of these`. No type is named twice."""
    words = list[str]()
    for branch in branches:
        (inner, *more) = get_args(branch) if get_origin(branch) is Annotated else (branch,)
        held = get_origin(inner) is tuple or _PLAIN.get(get_origin(inner)) == "a list"
        items = [_words(each) for each in get_args(inner) if held and each is not Ellipsis]
        size = " that is not empty" if any(isinstance(each, Within) for each in more) else ""
        if words and items == [one_of(words)]:
            words.append(f"a list of these{size}")
        elif items and set(items) <= set(words):
            words.append("a pair of these in this order")
        else:
            words.append(_words(branch))
    return one_of(words)


def _words_of_function(arguments: list[Any]) -> str:
    if arguments == [...]:
        return "a function"
    if all(isinstance(each, str) for each in arguments):
        return f"a function `({', '.join(arguments)})`"
    if Any in arguments:
        return f"a function of {counted(len(arguments), 'argument')}"
    only = "only " if len(arguments) == 1 else ""
    return f"a function that takes {only}{' and '.join(map(_words, arguments))}"
