"""Find the cheapest readings of a text, by Dijkstra's algorithm over positions and modes.

A `Node` is a reader at position `pos` in some `mode`, with the open containers in `stack`. Of the
readers that reach the same state, two continue: the cheapest, and the cheapest of those with
another value so far. These two are enough to find the cheapest reading of all, and the cheapest
one with another value. `WIDTH` bounds the readers at one position, so that the time grows only with
the length of the text.
"""

from typing import Any, NamedTuple

from graph_retry._output.reading.costs import MARGIN

CEILING, WIDTH, BEAM, MAX_DEPTH, _PRIME = 120, 20, 20, 500, (1 << 61) - 1
Mean = tuple[Any, ...]
"""The part that a node adds to the value: a kind of one character, and the kind's arguments."""


class Frame:
    """An open container. Kinds: `o` is `{`, `O` is `{{`, `a` is `[`, `t` is `(`, `T` is `( ,`."""

    __slots__ = ("depth", "indent", "kind", "line_indent", "parent")

    def __init__(self, parent: "Frame | None", kind: str, line_indent: int, indent: int) -> None:
        self.parent, self.kind = parent, kind
        self.line_indent, self.indent = line_indent, indent  # of its own line; of its members
        self.depth: int = parent.depth + 1 if parent else 1


class Node(NamedTuple):
    """One reader: its cost, state and last step; `sig` is the value's hash before this step."""

    cost: int
    pos: int
    mode: str
    stack: Frame | None
    sig: int
    mean: Mean
    row: str
    at: int
    parent: "Node | None"


def signed(sig: int, mean: Mean) -> int:
    """Return the hash of a value after `mean` was added; it ignores how strings were cut."""
    if mean[0] == "2":
        for part in mean[1:]:
            sig = signed(sig, part) if part else sig
        return sig
    text = f"\1{mean}"
    if mean[0] == "s":
        text = f"{mean[1]}\0{mean[2]}" if mean[2] else mean[1]
    data = text.encode("utf-8", "surrogatepass")
    return (sig * pow(256, len(data), _PRIME) + int.from_bytes(data, "big")) % _PRIME


class Search:
    """The queue of readers; a subclass adds their possible next steps in `expand`."""

    def __init__(self, text: str, price: dict[str, int]) -> None:
        self.text, self.price, self.end = text, price, len(text)
        self.limit = CEILING + self.end // 100
        self.buckets: list[list[Node]] = [[] for _ in range(self.limit + 1)]
        self.node = Node(0, 0, "r", None, 0, (), "", 0, None)
        self.at = self.extra = 0  # the position and the extra cost of the present step
        self.sig = 0  # the hash of the value that the present reader has read so far
        self.pops = self.furthest = 0
        self.too_deep = False
        self._frames: dict[tuple[Frame | None, str, int, int], Frame] = {}

    def frame(self, parent: Frame | None, kind: str, line_indent: int, indent: int = -1) -> Frame:
        """Return the same object for equal frames, so that states are compared by identity."""
        key = (parent, kind, line_indent, indent)
        if key not in self._frames:
            self._frames[key] = Frame(parent, kind, line_indent, indent)
        return self._frames[key]

    def go(self, pos: int, mode: str, stack: Frame | None, mean: Mean = (), *rows: str) -> None:
        """Add the present reader's next step, at the cost of `rows`; the first is the repair."""
        node, total = self.node, self.node.cost + self.extra
        for row in rows:
            total += self.price[row]
        if total > self.limit:
            return
        if stack is not None and stack.depth > MAX_DEPTH:
            self.too_deep = True
            return
        row = rows[0] if rows else ""
        self.buckets[total].append(
            Node(total, pos, mode, stack, self.sig, mean, row, self.at, node)
        )

    def lose(self, row: str, pos: int, mode: str, stack: Frame | None, *rows: str) -> None:
        """Add a next step that loses data, for the reason `row`."""
        self.go(pos, mode, stack, ("!", row, self.at), row, *rows)

    def expand(self) -> None:
        """Add a reader for each possible next step of the present one."""
        raise NotImplementedError

    def run(self, first: Node, most: int = 1 << 20) -> list[Node]:
        """Return the cheapest reading up to a cost of `most`, and others within the margin."""
        self.limit = min(self.limit, most + MARGIN)
        seen: dict[tuple[int, str, Frame | None], int | None] = {}  # None after two values
        arrivals: dict[int, tuple[int, int]] = {}
        found: list[Node] = []
        cost, best_sig = first.cost, -1
        self.buckets[cost].append(first)
        while cost <= self.limit and (found or cost <= most) and len(found) < 20:
            if not self.buckets[cost]:
                cost += 1
                continue
            node = self.buckets[cost].pop()
            self.sig = signed(node.sig, node.mean) if node.mean else node.sig
            if node.mode == "$":
                if not found or self.sig != best_sig:
                    best_sig = best_sig if found else self.sig
                    found.append(node)
                    self.limit = min(self.limit, found[0].cost + MARGIN)
                continue
            key = node[1:4]
            sig = seen.get(key, -1)
            if sig is None or sig == self.sig:
                continue
            seen[key] = self.sig if sig == -1 else None
            best, width = arrivals.get(node.pos, (cost, 0))
            if width >= WIDTH or cost > best + BEAM:
                continue
            arrivals[node.pos] = best, width + 1
            self.furthest = max(self.furthest, node.pos)
            self.pops += 1
            self.node, self.extra = node, 0
            self.expand()
        return found
