"""Read JSON from a model's text, losslessly or not at all: `read`.

Nothing here needs a graph: this package imports nothing of `graph_retry` but itself.

A text walks through the room like this. `parse` has the entry points, and `strict` reads strict
JSON. In other text, `candidates` finds the places where a document may begin, and `weighted` reads
a document at each of them. `answer` keeps the documents whose place says that they are the answer,
makes one value of them, and refuses it if the text around it casts doubt on it. `results` has what
comes out.
"""

from typing import TYPE_CHECKING, Any

from graph_retry.lossless._ground import Repair, RepairLevel
from graph_retry.lossless.results import ParsedOutput, Refusal, RefusalKind

if TYPE_CHECKING:
    from graph_retry.lossless.parse import read

__all__ = ["ParsedOutput", "Refusal", "RefusalKind", "Repair", "RepairLevel", "read"]


def __getattr__(name: str) -> Any:
    """Load the reader when it is first used: many calls get strict JSON only.

    Raises:
        AttributeError: If there is no such name.
    """
    if name != "read":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from graph_retry.lossless import parse  # noqa: PLC0415

    return parse.read
