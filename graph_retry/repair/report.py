"""What reading a text came to: the value and how it was read, or why it was refused."""

from dataclasses import dataclass, field
from typing import Any, Literal

from typing_extensions import TypedDict

from graph_retry.records import Repair

RefusalKind = Literal[
    "truncated", "elided", "ambiguous", "syntax", "no_json", "refusal", "too_deep"
]
RepairLevel = Literal["none", "minimal", "standard", "aggressive"]
LEVELS: tuple[RepairLevel, ...] = ("none", "minimal", "standard", "aggressive")
EXCERPT_RADIUS = 40


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
    """One token put in the place of `length` characters: a hypothesis about what went missing."""

    position: int
    length: int
    token: str

    def apply(self, text: str) -> str:
        """Return `text` with the edit made."""
        return text[: self.position] + self.token + text[self.position + self.length :]

    def describe(self) -> str:
        """Say what the edit does, for a person."""
        if not self.token:
            return "one bracket too many left out"
        verb = "put in place of another" if self.length else "supplied"
        return f"`{self.token}` {verb}"


class Unreadable(Exception):  # noqa: N818 - a signal inside the reader, never seen by a caller
    """Reading stopped. `edits` are the single edits that may explain it.

    `at_end` marks a text that simply stops: its edits need evidence that the model was done.
    """

    def __init__(
        self,
        kind: RefusalKind,
        position: int,
        message: str,
        edits: tuple[Edit, ...] = (),
        *,
        at_end: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: RefusalKind = kind
        self.position = position
        self.message = message
        self.edits = edits
        self.at_end = at_end

    def refusal(self, text: str) -> Refusal:
        """Describe the stop as data, with a bounded excerpt of `text`."""
        low = max(0, self.position - EXCERPT_RADIUS)
        return Refusal(
            kind=self.kind,
            position=self.position,
            message=self.message,
            excerpt=text[low : self.position + EXCERPT_RADIUS],
        )


class Notes:
    """Collects repairs: one record a kind, with the place of the first and how many more."""

    def __init__(self) -> None:
        self._first: dict[str, Repair] = {}
        self._more: dict[str, int] = {}

    def add(
        self,
        kind: str,
        position: int,
        detail: str,
        grade: Literal["format", "assumed", "guessed"] = "format",
    ) -> None:
        """Record one repair."""
        if kind in self._first:
            self._more[kind] = self._more.get(kind, 0) + 1
        else:
            self._first[kind] = Repair(kind=kind, position=position, grade=grade, detail=detail)

    def records(self, shift: int = 0, after: int = 0) -> list[Repair]:
        """List the repairs; a place beyond `after` moves by `shift` characters."""
        listed: list[Repair] = []
        for kind, first in self._first.items():
            more = self._more.get(kind, 0)
            position = first["position"]
            if position is not None and position > after:
                position += shift
            detail = first["detail"] + (f" (and {more} more)" if more else "")
            listed.append(
                Repair(kind=kind, position=position, grade=first["grade"], detail=detail)
            )
        return listed
