"""Find the cheapest readings of a text, by Dijkstra's algorithm over positions and modes.

A reading goes through the text and writes it again as strict JSON. Its state is the position `pos`,
the `mode`, and the open containers in `stack`. If several readings reach the same state, only two
continue: the cheapest reading, and the cheapest reading that wrote a different text. These two are
enough to find the cheapest reading with a different value. `Work` limits the number of steps, so
the time is linear in the length of the text.
"""

from typing import NamedTuple

from graph_retry.lossless.weighted.costs import ACCIDENT, LOSSES, MARGIN

CEILING, MAX_DEPTH, _PRIME = 120, 500, (1 << 61) - 1
START, CHARACTERS, DOCUMENT = 25_000, 250, 10


class Frame:
    """An open container. Its kind is `o`, `a`, `t`, `T` or `g`.

    `o` is an object `{`, and `a` is an array `[`. `t` is a tuple `(` without a comma so far, and
    `T` is a tuple with a comma. `g` is a `(` that only groups, as in `(1)`.
    """

    __slots__ = ("depth", "indent", "kind", "line_indent", "parent")

    def __init__(self, parent: "Frame | None", kind: str, line_indent: int, indent: int) -> None:
        self.parent, self.kind = parent, kind
        self.line_indent, self.indent = line_indent, indent  # of its first line; of its members
        self.depth: int = parent.depth + 1 if parent else 1


class Work:
    """The amount of work that is left for all searches in one text.

    If nothing is left, a search ends in a refusal. Each added reading takes one unit, reading
    `CHARACTERS` characters takes one unit, and each document takes `DOCUMENT` units.
    """

    def __init__(self, size: int) -> None:
        self.left = START + size // 2


Step = tuple[str, Frame | None, str]
"""The mode, the innermost open container and the written text of a step."""


class Node(NamedTuple):
    """One unfinished reading: its cost, its state, and its last step.

    `written` is the JSON text that the last step wrote, and `sig` is the hash of the text before
    it. `rows` are the last step's rows in `costs`, and `at` is its position. `parent` is the
    reading before the last step.
    """

    cost: int
    pos: int
    mode: str
    stack: Frame | None
    sig: int
    written: str
    rows: tuple[str, ...]
    at: int
    parent: "Node | None"


def _signed(sig: int, written: str) -> int:
    """Return the hash of a text that ends in `written`. `sig` is the hash of the rest."""
    data = written.encode("utf-8", "surrogatepass")
    return ((sig << 8 * len(data) % 61) + int.from_bytes(data, "big")) % _PRIME


class Search:
    """A search for the cheapest reading, with a queue of unfinished readings, cheapest first.

    A subclass implements `expand`, which adds all readings that are one step longer than
    `self.node`.
    """

    def __init__(self, text: str, price: dict[str, int], work: Work) -> None:
        self.text, self.price, self.work, self.end = text, price, work, len(text)
        self.limit = CEILING + self.end // 100
        self.buckets: list[list[Node]] = [[] for _ in range(self.limit + 1)]
        self.node = Node(0, 0, "r", None, 0, "", (), 0, None)
        self.at = 0  # the position of the present step
        self.odd = ""  # the surprise that is added to the cost of each present step
        self.is_near = True  # Whether this reading costs little enough to assume accidents.
        self.sig = 0  # the hash of all text that the present reading has written
        self.furthest = 0
        self.too_deep = False
        self._frames: dict[tuple[Frame | None, str, int, int], Frame] = {}

    def frame(self, parent: Frame | None, kind: str, line_indent: int, indent: int = -1) -> Frame:
        """Return one object for all equal frames, so that states are compared by identity."""
        key = (parent, kind, line_indent, indent)
        if key not in self._frames:
            self._frames[key] = Frame(parent, kind, line_indent, indent)
        return self._frames[key]

    def go(self, pos: int, mode: str, stack: Frame | None, written: str = "", *rows: str) -> None:
        """Extend the present reading by one step, which costs the sum of all `rows`, and add it.

        `rows[0]` may be a loss of data.
        """
        self.work.left -= 1
        total, price = self.node.cost, self.price
        if self.odd:
            rows = (*rows, self.odd)
        elif rows and not any(rows):
            rows = ()
        for row in rows:
            total += price[row]
        if total > self.limit:
            return
        if stack is not None and stack.depth > MAX_DEPTH:
            self.too_deep = True
            return
        if rows and rows[0] in LOSSES:  # No value and no other loss has this text.
            written = f"\1{rows[0]}{self.at}"
        step = (total, pos, mode, stack, self.sig, written, rows, self.at, self.node)
        # A named tuple's own `__new__` takes three times as long.
        self.buckets[total].append(tuple.__new__(Node, step))

    def spend(self, characters: int) -> None:
        """Count the work of a step that reads many characters."""
        self.work.left -= characters // CHARACTERS

    def expand(self) -> None:
        """Add a reading for each possible next step of the present reading."""
        raise NotImplementedError

    def run(self, first: Node, most: int = 1 << 20, keep: int = 2) -> list[Node]:
        """Return the cheapest reading, and the readings that cost at most `MARGIN` points more.

        The cheapest reading may cost at most `most` points. At most `keep` readings are returned.
        """
        self.limit = min(self.limit, most + MARGIN)
        seen: dict[tuple[int, str, Frame | None], tuple[int, ...]] = {}
        cheapest: dict[int, int] = {}
        found: dict[int, Node] = {}
        cost, work = first.cost, self.work
        self.buckets[cost].append(first)
        while cost <= self.limit and (found or cost <= most) and len(found) < keep:
            if work.left <= 0:
                return []
            if not self.buckets[cost]:
                cost += 1
                continue
            node = self.buckets[cost].pop()
            self.sig = _signed(node.sig, node.written) if node.written else node.sig
            if node.mode == "$":
                if not found:
                    self.limit = min(self.limit, node.cost + MARGIN)
                found.setdefault(self.sig, node)
                continue
            key = node[1:4]
            sigs = seen.get(key, ())
            if len(sigs) == keep or self.sig in sigs:
                continue
            seen[key] = (*sigs, self.sig)
            self.furthest = max(self.furthest, node.pos)
            self.node, self.odd = node, ""
            self.is_near = cost < cheapest.setdefault(node.pos, cost) + ACCIDENT
            self.expand()
        return [*found.values()] if work.left > 0 else []
