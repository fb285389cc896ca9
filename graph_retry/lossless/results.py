"""The types of results: a value with its repairs, a refusal, a document in a text."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from typing_extensions import TypedDict

from graph_retry.lossless._ground import Repair

RefusalKind = Literal["truncated", "elided", "ambiguous", "syntax", "no_json", "too_deep"]
"""Why a text is refused.

`truncated`: the text ends too early, and the missing part cannot be known. `elided`: the text
itself says that data was left out. `ambiguous`: several readings are possible, the reading would
lose a value, or the text takes the answer back. `syntax`: a name or arithmetic stands in place of a
value, or the answer is a part of other data. `no_json`: the text has no answer in JSON. `too_deep`:
the brackets are nested too deeply.
"""

Grade = Literal["format", "assumed", "coerced", "guessed"]


class Refusal(TypedDict):
    """Why a text could not be read.

    kind: The kind of reason.
    position: Character offset of the place in the text.
    message: The reason, in a sentence.
    excerpt: The text around this place.
    """

    kind: RefusalKind
    position: int
    message: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """The outcome of reading one model output.

    ok: Whether a value was read.
    value: The value, or None.
    text: The JSON text of `value`. If the output could not be read, it is the raw output.
    repairs: Every difference from strict JSON.
    lossless: False if the value was guessed, or if there is no value.
    failure: The reason why there is no value; None if `ok` is true.
    """

    ok: bool
    value: Any
    text: str
    repairs: list[Repair] = field(default_factory=list[Repair])
    lossless: bool = True
    failure: Refusal | None = None


class Wanted(NamedTuple):
    """What the caller knows about the wanted answer.

    complete: True if the model finished its answer, False if it was cut off, None if unknown.
    is_list: True if a list is wanted, False if a single value is, None if unknown.
    fits: A function `value -> bool`; None if any value fits.
    names: Names of tools, each for one type. They distinguish types with equal fields.
    """

    complete: bool | None = None
    is_list: bool | None = None
    fits: Callable[[Any], bool] | None = None
    names: frozenset[str] = frozenset()

    def are_chosen_by(self, called: list[str]) -> bool:
        """Return whether the names of tool calls choose between types, and so are data."""
        is_known = not self.names.isdisjoint(called)
        return is_known and (len(self.names) > 1 or not self.names.issuperset(called))


NOTHING_KNOWN = Wanted()


class Unreadable(Exception):
    """The error for a text that cannot be read. Its `refusal` has the reason."""

    def __init__(self, kind: RefusalKind, position: int, message: str) -> None:
        super().__init__(message)
        self.refusal = Refusal(kind=kind, position=position, message=message, excerpt="")
        self.readings: Callable[[], list[Document]] | None = None
        """Returns the readings, if the reason is that several readings are about as likely."""


@dataclass(frozen=True, slots=True)
class Document:
    """One JSON document in a text: its start, its end, and its value (or why there is none)."""

    start: int
    end: int
    value: Any = None
    repairs: list[Repair] = field(default_factory=list[Repair])
    refusal: Unreadable | None = None

    @property
    def is_strict(self) -> bool:
        """Whether the document is strict JSON, read without any repair."""
        return not self.repairs and self.refusal is None


def refuse_if(condition: object, kind: RefusalKind, position: int, message: str) -> None:
    """Raise `Unreadable` if the condition is true."""
    if condition:
        raise Unreadable(kind, position, message)


def repair(kind: str, position: int, detail: str, grade: Grade = "format") -> Repair:
    """Return the record of one repair. `position` is a character offset in the text."""
    return Repair(kind=kind, position=position, grade=grade, detail=detail)


def merged(repairs: list[Repair]) -> list[Repair]:
    """Keep the first repair of each kind. Its `detail` gets the number of other repairs."""
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
