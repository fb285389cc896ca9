"""Threads and their reviews, beyond one call: the inbox, the ledgers, deadlines, ways back.

The files have the names of what they offer. All public names come from this package.
"""

from typing import TYPE_CHECKING

from graph_retry._core.ground.on_demand import on_demand

if TYPE_CHECKING:
    from graph_retry.threads._expiry import aexpire_reviews, expire_reviews
    from graph_retry.threads._history import (
        LedgerSource,
        aattempts_of,
        aevery_ledger,
        attempts_of,
        every_ledger,
        export_ledgers,
        import_ledgers,
    )
    from graph_retry.threads._inbox import alist_reviews, assign, defer, list_reviews
    from graph_retry.threads._resumption import aresumption, resumption
    from graph_retry.threads._rewind import Change, arewind, rewind
else:
    __getattr__ = on_demand(
        __name__,
        "_expiry",
        "_history",
        "_inbox",
        "_resumption",
        "_rewind",
    )

__all__ = [
    "Change",
    "LedgerSource",
    "aattempts_of",
    "aevery_ledger",
    "aexpire_reviews",
    "alist_reviews",
    "aresumption",
    "arewind",
    "assign",
    "attempts_of",
    "defer",
    "every_ledger",
    "expire_reviews",
    "export_ledgers",
    "import_ledgers",
    "list_reviews",
    "resumption",
    "rewind",
]
