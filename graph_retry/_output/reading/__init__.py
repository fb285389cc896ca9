"""The result of reading a model's text, losslessly or not at all.

A text passes `parse` (strict JSON ends there, by `strict`), `answer` (which document is meant),
`document` (one document: read, judged, built), `search` (the cheapest readings) with the moves of
`moves` and `strings` and the words of `lexis`. What all this costs is the table of `costs`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from typing_extensions import TypedDict

from graph_retry.records import Repair

RefusalKind = Literal[
    "truncated", "elided", "ambiguous", "syntax", "no_json", "refusal", "too_deep"
]
Grade = Literal["format", "assumed", "coerced", "guessed"]


class Refusal(TypedDict):
    """Why a text was not read: a kind, a character offset, a sentence, and the text around it."""

    kind: RefusalKind
    position: int
    message: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """The outcome of reading one model output.

    `text` is JSON text for `value`, or the raw output if nothing was read. `repairs` lists every
    difference from strict JSON. `lossless` is false if a value was guessed, or if there is no
    value. `failure` is None exactly if `ok`.
    """

    ok: bool
    value: Any
    text: str
    repairs: list[Repair] = field(default_factory=list[Repair])
    lossless: bool = True
    failure: Refusal | None = None


class Wanted(NamedTuple):
    """The caller's knowledge of the answer: is it whole, is it a list, which value fits."""

    complete: bool | None = None
    is_list: bool | None = None
    fits: Callable[[Any], bool] | None = None


class Unreadable(Exception):
    """Reading stopped: the position, the text found there, and the error."""

    def __init__(self, kind: RefusalKind, position: int, message: str) -> None:
        super().__init__(message)
        self.refusal = Refusal(kind=kind, position=position, message=message, excerpt="")


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a text: where it stands, its value and repairs, or why it has none."""

    start: int
    end: int
    value: Any = None
    repairs: list[Repair] = field(default_factory=list[Repair])
    refusal: Unreadable | None = None

    @property
    def is_strict(self) -> bool:
        """Whether it is JSON as it stands."""
        return not self.repairs and self.refusal is None


def refuse_if(condition: object, kind: RefusalKind, position: int, message: str) -> None:
    """Stop reading where a condition is true."""
    if condition:
        raise Unreadable(kind, position, message)


def repair(kind: str, position: int, detail: str, grade: Grade = "format") -> Repair:
    """Describe one repair."""
    return Repair(kind=kind, position=position, grade=grade, detail=detail)


def merged(repairs: list[Repair]) -> list[Repair]:
    """List repairs with one of a kind: where it was made first, and how often."""
    first: dict[str, Repair] = {}
    places: dict[str, set[int | None]] = {}
    for each in repairs:
        first.setdefault(each["kind"], each)
        places.setdefault(each["kind"], set()).add(each["position"])
    return [
        {**each, "detail": f"{each['detail']} (and {len(places[kind]) - 1} more)"}
        if len(places[kind]) > 1
        else each
        for kind, each in first.items()
    ]
