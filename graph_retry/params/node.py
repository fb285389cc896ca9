"""A value as plain JSON, and beside it a tree of the types that JSON cannot say."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.params.pointer import tokens_of
from graph_retry.validate.issues import pointer

OPAQUE = "?"
"""Tag of a value that only its declared type may be able to rebuild."""

EVERY = "-"
"""Token for every element of a list that has no entry of its own."""


@dataclass(slots=True)
class Node:
    """What JSON cannot say about one value: its own type, its children's, and what has no field.

    `hidden` holds values that are compared but never stored (private attributes, opaque objects).
    """

    tag: str | None = None
    children: dict[str, "Node"] = field(default_factory=dict[str, "Node"])
    hidden: dict[str, Any] = field(default_factory=dict[str, Any])

    def flat(self, at: str = "") -> Iterator[tuple[str, str]]:
        """Yield each JSON Pointer with the type recorded there, parents first."""
        if self.tag is not None:
            yield at, self.tag
        for token, child in self.children.items():
            yield from child.flat(at + pointer((token,)))

    def child(self, token: str, in_list: bool) -> "Node | None":
        """Look up what is known about one child."""
        found = self.children.get(token)
        return self.children.get(EVERY) if found is None and in_list else found


class Shape(NamedTuple):
    """A value as JSON, and the types beside it (`None` where plain JSON says it all)."""

    json: Any
    node: Node | None = None


_NOTHING = Node()


def tree_of(types: Mapping[str, str]) -> Node | None:
    """Build the tree of a types map; `None` when it is empty."""
    if not types:
        return None
    root = Node()
    for path, tag in types.items():
        node = root
        for token in tokens_of(path):
            node = node.children.setdefault(token, Node())
        node.tag = tag
    return root


def shared(types: Mapping[str, str], view: Any) -> dict[str, str]:
    """Shorten a types map: elements of one list that all say the same say it once."""
    root = tree_of(types)
    return dict(_shared(root, view).flat()) if root else {}


def _shared(node: Node, json: Any) -> Node:
    if is_array(json):
        found = [_shared(node.child(str(i), True) or Node(), item) for i, item in enumerate(json)]
        if found and all(item == found[0] for item in found):
            return Node(node.tag, {EVERY: found[0]})
        return Node(node.tag, {str(i): item for i, item in enumerate(found)})
    inner = json if is_object(json) else {}
    return Node(node.tag, {k: _shared(n, inner.get(k)) for k, n in node.children.items()})


def differences(
    one: Shape, other: Shape, at: tuple[str, ...] = (), *, hidden: bool = True
) -> Iterator[str]:
    """Yield the JSON Pointers at which two shapes differ, strictly by type.

    With `hidden=False` only what is stored is compared.
    """
    mine, theirs = one.node or _NOTHING, other.node or _NOTHING
    if mine.tag != theirs.tag or type(one.json) is not type(other.json):
        yield pointer(at)
        return
    if hidden and (mine.hidden or theirs.hidden):
        for name in mine.hidden.keys() | theirs.hidden.keys():
            if not equal(mine.hidden.get(name), theirs.hidden.get(name)):
                yield pointer((*at, name) if name else at)
    if is_object(one.json) or is_array(one.json):
        left, right = entries_of(one.json), entries_of(other.json)
        for token in left if left.keys() == right.keys() else {**left, **right}:
            if token in left and token in right:
                a = Shape(left[token], mine.children.get(token))
                b = Shape(right[token], theirs.children.get(token))
                yield from differences(a, b, (*at, token), hidden=hidden)
            else:
                yield pointer((*at, token))
    elif one.json != other.json:
        yield pointer(at)


def entries_of(json: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """Return the children of a JSON container by pointer token."""
    return json if is_object(json) else {str(i): item for i, item in enumerate(json)}


def equal(one: Any, other: Any) -> bool:
    """Compare by type and `==`; what cannot be compared is not equal."""
    try:
        return type(one) is type(other) and bool(one == other)
    except (TypeError, ValueError):
        return False
