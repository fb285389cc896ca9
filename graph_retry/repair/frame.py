"""One open container: what was read of it, and which single edits may explain that it broke."""

from dataclasses import dataclass, field

from graph_retry.repair.report import Edit

CLOSE = {"{": "}", "[": "]", "(": ")"}
MOST_PLACES = 6


@dataclass(slots=True)
class Frame:
    """Places in the text; `inner` is the last child, where it is a container of the same kind."""

    text: str
    start: int
    kind: str
    starts: list[int] = field(default_factory=list[int])
    first_comma: int = -1
    comma: int = -1
    value_at: int = -1
    end: int = -1
    inner: "Frame | None" = None

    def separate(self, comma: int) -> None:
        """Note that a member ended at a comma, written or supplied."""
        self.comma = comma
        if self.first_comma < 0:
            self.first_comma = comma

    def unclosed(self) -> tuple[Edit, ...]:
        """Suggest that this container should have been closed after its last value.

        The other places that would do come along, so that a choice between them is noticed.
        """
        close = CLOSE[self.kind]
        if self.end < 0:
            return ()
        if self.text[self.end - 1] == close and self.text[: self.end - 1].rstrip()[-1:] == self.kind:
            return ()  # what is empty may be the remains of a value
        edits = [Edit(self.end, 0, close)]
        child = self.inner
        while child is not None and len(edits) < MOST_PLACES:
            if len(child.starts) > 1 and not child.aligned():
                edits += (Edit(child.first_comma, 0, close), Edit(child.comma, 0, close))
            if child.kind == "[":
                edits.append(Edit(child.start, 1, ""))
            child = child.inner
        if self.kind == "[":
            edits.append(Edit(self.start, 1, ""))
        return tuple(edits)

    def wrongly_closed(self, position: int) -> tuple[Edit, ...]:
        """Suggest what another bracket at `position` may mean."""
        return (*self.unclosed(), Edit(position, 1, CLOSE[self.kind]))

    def unopened(self) -> tuple[Edit, ...]:
        """Suggest that the last value of this object began a list, which other values follow."""
        if self.end < 0 or self.text[self.end - 1] == "]":
            return ()
        return (Edit(self.value_at, 0, "["),)

    def key_in_list(self) -> tuple[Edit, ...]:
        """Suggest what a colon after an element may mean: the element is a key."""
        missing_opener = Edit(self.value_at, 0, "{")
        wrong_opener = Edit(self.start, 1, "{")
        early = (Edit(self.end - 1, 1, ""),) if self.text[self.end - 1] == "}" else ()
        return (*self.unclosed(), missing_opener, wrong_opener, *early)

    def aligned(self) -> bool:
        """Tell whether each member starts a line of its own, all indented alike and deeper."""
        columns = {self._column(start) for start in self.starts}
        if len(columns) != 1 or None in columns:
            return False
        line = self.text.rfind("\n", 0, self.start) + 1
        outer = len(self.text[line:]) - len(self.text[line:].lstrip(" \t"))
        return (columns.pop() or 0) > outer

    def _column(self, position: int) -> int | None:
        line = self.text[:position].rstrip(" \t")
        return position - len(line) if line.endswith("\n") else None
