"""From a value to the smallest encoding that rebuilds it: the view, and only the types needed."""

from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from pydantic_core import PydanticSerializationError

from graph_retry.params.decode import build
from graph_retry.params.invalid import ParamsInvalid
from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.params.kind import Kind
from graph_retry.params.leaves import Unstorable, cannot_store, class_label
from graph_retry.params.node import OPAQUE, Node, Shape, differences, entries_of, shared
from graph_retry.params.pointer import spelled, tokens_of
from graph_retry.params.restore import has_class, restore
from graph_retry.params.shape import class_name, shape_of
from graph_retry.validate.issues import pointer


class Encoded(NamedTuple):
    """Params as graph state keeps them: plain JSON, and the types that JSON cannot say."""

    view: dict[str, Any]
    types: dict[str, str]


def encode(kind: Kind, value: Any, owner: str) -> Encoded:
    """Write a value as a view; each round adds the types that the last rebuilt copy missed.

    Raises:
        TypeError: The value has another type, or a part of it cannot be stored.
        ValueError: A part is a secret, or would come back changed.
    """
    if not isinstance(value, kind.instance):
        came = class_label(value.__class__)
        raise TypeError(f"{owner} must be a `{kind.label}`, not a `{came}`")
    whole = apart(kind, value, owner)
    if kind.adapter is None and whole.node is None:
        return Encoded(whole.json, {})
    view, types, known = whole.json, dict[str, str](), _known_types(whole, kind)
    asked_type = kind.adapter is None
    while True:
        error = None
        try:
            again = build(kind, view, types)
        except ParamsInvalid as caught:
            error, wrong = caught, [entry["path"] for entry in caught.issues]
        else:
            taken = apart(kind, again, owner)
            wrong = list(differences(whole, taken))
            if not wrong:
                return Encoded(view, shared(types, view))
            if all(_is_promotion(whole.json, taken.json, path) for path in wrong):
                # A whole number in a `float` field is that float (PEP 484).
                return encode(kind, again, owner)
        more = _missing(known, types, wrong, blind=error is not None)
        if more:
            types |= more
            continue
        if asked_type:
            _refuse(whole, wrong, error, owner)
        # Last resort: the parts that no entry can mend, as the declared type itself writes them.
        asked_type = True
        view = _as_dumped(kind, value, view, wrong)
        known = {path: tag for path, tag in known.items() if not _at_or_under(path, wrong)}
        types = {path: tag for path, tag in types.items() if path in known}


def apart(kind: Kind, value: Any, owner: str = "params") -> Shape:
    """Take params apart in the layout of their view.

    Raises:
        TypeError: A part cannot be stored.
        ValueError: A part is a secret, or nested without end.
    """
    layout = {"object": value, "bare": {"value": value}, "empty": {}}[kind.form]
    try:
        return shape_of(layout)
    except Unstorable as refused:
        place = _place(pointer(refused.tokens), owner)
        raise refused.error(f"{place} {refused.reason}") from None


def _known_types(whole: Shape, kind: Kind) -> dict[str, str]:
    """Collect the types that an entry can restore; the declared class itself needs none."""
    tags = dict(whole.node.flat()) if whole.node else {}
    if tags.get("") == class_name(kind.instance):
        del tags[""]
    return {
        path: tag
        for path, tag in tags.items()
        if tag != OPAQUE and not tag.startswith("dict[") and (":" not in tag or has_class(tag))
    }


def _missing(
    known: dict[str, str], types: dict[str, str], wrong: list[str], *, blind: bool
) -> dict[str, str]:
    """Select entries for the wrong places; a validation error is `blind` to what lies around."""
    more = {path: tag for path, tag in known.items() if path in wrong and path not in types}
    if blind and not more:
        more = {p: t for p, t in known.items() if p not in types and _at_or_under(p, wrong)}
    if blind and not more:
        around = (p for p in known if p not in types and any(_at_or_under(w, [p]) for w in wrong))
        more = {path: known[path] for path in around}
    return more


def _at_or_under(path: str, roots: list[str]) -> bool:
    return any(path == root or path.startswith(root + "/") for root in roots)


def _is_promotion(one: Any, other: Any, path: str) -> bool:
    one, other = _at(one, path), _at(other, path)
    return type(one) is int and type(other) is float and one == other


def _at(json: Any, path: str) -> Any:
    for token in tokens_of(path):
        json = entries_of(json).get(token) if is_object(json) or is_array(json) else None
    return json


def _as_dumped(kind: Kind, value: Any, view: Any, wrong: list[str]) -> Any:
    if kind.adapter is None:
        return view
    try:
        dump: Any = kind.adapter.dump_python(
            value, mode="json", by_alias=False, round_trip=True, warnings=False
        )
    except (PydanticSerializationError, ValueError, TypeError):
        return view
    dump = {"value": dump} if kind.form == "bare" else dump
    fresh = restore(view, None, [])
    for path in wrong:
        *way, last = tokens_of(path) or [""]
        home = _at(fresh, pointer(way))
        piece = _at(dump, path)
        if is_object(home) and last in home:
            home[last] = piece
        elif is_array(home) and last.isdecimal():
            home[int(last)] = piece
    return fresh


def _refuse(whole: Shape, wrong: list[str], error: ParamsInvalid | None, owner: str) -> NoReturn:
    nodes = dict(_nodes(whole.node or Node()))
    near = [p for p in nodes if _at_or_under(p, wrong)] or list(nodes if error else ())
    for path in near:
        tag = nodes[path].tag or ""
        if tag == OPAQUE:
            raise TypeError(f"{_place(path, owner)} {cannot_store(nodes[path].hidden[''])}")
        if tag.startswith("dict["):
            raise TypeError(f"{_place(path, owner)} has keys that are not `str`: use str keys")
    for path in near:
        tag = nodes[path].tag or ""
        if path and ":" in tag and not has_class(tag):
            raise TypeError(
                f"{_place(path, owner)} is a `{tag.replace(':', '.')}`, a class that cannot be "
                "found again by its name: define it at the top level of a module"
            )
    if error is not None:
        raise ParamsInvalid(error.issues, f"{owner} do not fit their own type") from error
    raise ValueError(
        f"{_place(wrong[0], owner)} would come back changed from graph state: make it a declared "
        "field that validation leaves as it is, or capture it in the function"
    )


def _nodes(node: Node, at: str = "") -> Iterator[tuple[str, Node]]:
    yield at, node
    for token, child in node.children.items():
        yield from _nodes(child, at + pointer((token,)))


def _place(path: str, owner: str) -> str:
    suffix = "" if owner == "params" else f" in {owner}"
    return f"`{spelled(path)}`{suffix}"
