"""Read JSON from a model's text, losslessly or not at all: `read`.

This package works without a graph, and imports nothing else of `graph_retry`.

`parse` has the entry points, and `strict` reads strict JSON. In other texts, `candidates` finds the
places where a JSON document may begin, and `weighted` reads a document at each place. `answer`
makes one value of the documents that are probably the model's answer, or refuses it because of the
text around it. `results` has the types.
"""

from typing import TYPE_CHECKING

from graph_retry.lossless._ground import Repair, RepairLevel, on_demand
from graph_retry.lossless.results import ParsedOutput, Refusal, RefusalKind

if TYPE_CHECKING:
    from graph_retry.lossless.parse import read
else:
    __getattr__ = on_demand(__name__, "parse")

__all__ = ["ParsedOutput", "Refusal", "RefusalKind", "Repair", "RepairLevel", "read"]
