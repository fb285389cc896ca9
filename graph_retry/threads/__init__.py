"""Functions for all saved threads: list and read reviews, read attempts, end reviews, go back.

Import all public names from this package. Their code is in `_core/threads/`.
"""

from typing import TYPE_CHECKING

from graph_retry.lossless._ground import on_demand

if TYPE_CHECKING:
    from graph_retry._core.langgraph.storage.checkpoints import OpenReview
    from graph_retry._core.langgraph.storage.stores import ProcessLock, Store, add_store
    from graph_retry._core.review.answers import assign, defer
    from graph_retry._core.review.judge import read_answer
    from graph_retry._core.threads.answers.resumption import aresumption, resumption
    from graph_retry._core.threads.answers.rewind import Change, arewind, rewind
    from graph_retry._core.threads.expiry import aexpire_reviews, expire_reviews
    from graph_retry._core.threads.history import (
        LedgerSource,
        aattempts_of,
        aevery_ledger,
        attempts_of,
        every_ledger,
        export_ledgers,
        import_ledgers,
    )
    from graph_retry._core.threads.inbox import (
        Inbox,
        Standing,
        alist_reviews,
        astanding,
        list_reviews,
        standing,
    )
    from graph_retry._core.threads.saved.why_closed import is_rejection
else:
    __getattr__ = on_demand(
        __name__,
        *("review.answers", "review.judge", "threads.saved.why_closed", "threads.inbox"),
        *("threads.history", "threads.expiry"),
        *("threads.answers.resumption", "threads.answers.rewind"),
        *("langgraph.storage.stores", "langgraph.storage.checkpoints"),
        home="graph_retry._core",
    )

__all__ = [
    "Change",
    "Inbox",
    "LedgerSource",
    "OpenReview",
    "ProcessLock",
    "Standing",
    "Store",
    "aattempts_of",
    "add_store",
    "aevery_ledger",
    "aexpire_reviews",
    "alist_reviews",
    "aresumption",
    "arewind",
    "assign",
    "astanding",
    "attempts_of",
    "defer",
    "every_ledger",
    "expire_reviews",
    "export_ledgers",
    "import_ledgers",
    "is_rejection",
    "list_reviews",
    "read_answer",
    "resumption",
    "rewind",
    "standing",
]
