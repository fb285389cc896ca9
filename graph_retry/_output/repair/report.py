"""What reading a text came to: the value and how it was read, or why it was refused."""

from dataclasses import dataclass, field
from typing import Any, Literal

from typing_extensions import TypedDict

from graph_retry.records import Repair

RefusalKind = Literal[
    "truncated", "elided", "ambiguous", "syntax", "no_json", "refusal", "too_deep"
]
Grade = Literal["format", "assumed", "guessed"]


class Refusal(TypedDict):
    """Why a text was not read: a kind, a character offset, a sentence, and the text around it."""

    kind: RefusalKind
    position: int
    message: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """The outcome of reading one model output.

    `text` is JSON text for `value`, or the raw output where nothing was read. `repairs` tells
    every difference from strict JSON. `lossless` is false where a value was guessed, and where
    there is none. `failure` is `None` exactly when `ok`.
    """

    ok: bool
    value: Any
    text: str
    repairs: list[Repair] = field(default_factory=list[Repair])
    lossless: bool = True
    failure: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """One token put in the place of `length` characters: a hypothesis about what went wrong."""

    position: int
    length: int
    token: str


class Unreadable(Exception):
    """Reading stopped. `edits` are the single edits that may explain it."""

    def __init__(self, kind: RefusalKind, position: int, message: str, *edits: Edit) -> None:
        super().__init__(message)
        self.refusal = Refusal(kind=kind, position=position, message=message, excerpt="")
        self.edits = edits


def refuse_if(
    condition: object, kind: RefusalKind, position: int, message: str, *edits: Edit
) -> None:
    """Stop reading where a condition is true."""
    if condition:
        raise Unreadable(kind, position, message, *edits)


def repair(kind: str, position: int, detail: str, grade: Grade = "format") -> Repair:
    """Describe one repair."""
    return Repair(kind=kind, position=position, grade=grade, detail=detail)


class Notes:
    """Collects the repairs of one document.

    Of a kind there is one record: where it was made first, and how often it was made.
    """

    def __init__(self) -> None:
        self._made: dict[str, Repair] = {}
        self._places: dict[str, list[int]] = {}

    def add(self, kind: str, position: int, detail: str, grade: Grade = "format") -> None:
        """Record one repair."""
        places = self._places.setdefault(kind, [])
        if not places:
            self._made[kind] = repair(kind, position, detail, grade)
        if position not in places[-1:]:  # a mark may be stepped over twice
            places.append(position)

    def count(self, *kinds: str) -> int:
        """Return how many repairs of these kinds there were."""
        return sum([len(self._places.get(kind, ())) for kind in kinds])

    def records(self) -> list[Repair]:
        """List the repairs, one of a kind."""
        more = {
            kind: f" (and {len(places) - 1} more)"
            for kind, places in self._places.items()
            if len(places) > 1
        }
        return [
            {**first, "detail": first["detail"] + more.get(kind, "")}
            for kind, first in self._made.items()
        ]
