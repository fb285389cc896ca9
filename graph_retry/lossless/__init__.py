"""Read JSON from a model's text, losslessly or not at all: `read`.

Nothing here needs a graph: this package imports nothing of `graph_retry` but itself.

A text walks through the room like this. `parse` has the entry points, and `strict` reads strict
JSON. In other text, `candidates` finds the places where a document may begin, and `weighted` reads
a document at each of them. `answer` keeps the documents whose place says that they are the answer,
makes one value of them, and refuses it if the text around it casts doubt on it. `results` has what
comes out.
"""

from typing import TYPE_CHECKING

from graph_retry.lossless._ground import Repair, RepairLevel, on_demand
from graph_retry.lossless.results import ParsedOutput, Refusal, RefusalKind

if TYPE_CHECKING:
    from graph_retry.lossless.parse import read
else:
    __getattr__ = on_demand(__name__, "parse")

__all__ = ["ParsedOutput", "Refusal", "RefusalKind", "Repair", "RepairLevel", "read"]
