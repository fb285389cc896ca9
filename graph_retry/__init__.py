"""Human-in-the-loop retry for LangGraph model calls.

To call a model, use `retry_llm_call`, `aretry_llm_call` or the node of `create_retry_node`. To list
the reviews that wait, use `pending_reviews`. To answer them, use `resume`.

The other names are in these modules: `hooks` (automation), `threads` (all threads, their ledgers,
ways back), `data` (corrections, evaluations, figures, plots), `observers` (messages to people),
`agents`, `output`, `lossless` (the reader), `desk` (the page) and `testing`.
"""

from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graph_retry._core.ground.functions.signatures import AttemptContext
    from graph_retry._core.output.completion import Completion
    from graph_retry._core.review.answers import (
        Decision,
        accept,
        approve,
        comment,
        edit,
        reject,
        respond,
    )
    from graph_retry._core.threads.answers.answering import (
        apending_reviews,
        aresume,
        pending_reviews,
        resume,
    )
    from graph_retry._core.threads.reviews import PendingReview
    from graph_retry.errors import (
        AnswerRefused,
        AttemptFailed,
        AttemptsExhausted,
        CallCancelled,
        GraphRetryError,
        InterventionRequired,
        ReplayMismatch,
        StaleDecision,
    )
    from graph_retry.function import (
        aretry_llm_call,
        create_retry_node,
        gather_calls,
        retry_llm_call,
        review_later,
    )
    from graph_retry.options import RetryOptions
    from graph_retry.records import Attempt, Issue

__all__ = [
    "AnswerRefused",
    "Attempt",
    "AttemptContext",
    "AttemptFailed",
    "AttemptsExhausted",
    "CallCancelled",
    "Completion",
    "Decision",
    "GraphRetryError",
    "InterventionRequired",
    "Issue",
    "PendingReview",
    "ReplayMismatch",
    "RetryOptions",
    "StaleDecision",
    "accept",
    "apending_reviews",
    "approve",
    "aresume",
    "aretry_llm_call",
    "comment",
    "create_retry_node",
    "edit",
    "gather_calls",
    "pending_reviews",
    "reject",
    "respond",
    "resume",
    "retry_llm_call",
    "review_later",
]

_PLACES = {
    "_core.ground.functions.signatures": ("AttemptContext",),
    "_core.output.completion": ("Completion",),
    "_core.review.answers": (
        "Decision",
        "accept",
        "approve",
        "comment",
        "edit",
        "reject",
        "respond",
    ),
    "_core.threads.reviews": ("PendingReview",),
    "_core.threads.answers.answering": ("apending_reviews", "aresume", "pending_reviews", "resume"),
    "errors": (
        "AnswerRefused",
        "AttemptFailed",
        "AttemptsExhausted",
        "CallCancelled",
        "GraphRetryError",
        "InterventionRequired",
        "ReplayMismatch",
        "StaleDecision",
    ),
    "function": (
        "aretry_llm_call",
        "create_retry_node",
        "gather_calls",
        "retry_llm_call",
        "review_later",
    ),
    "options": ("RetryOptions",),
    "records": ("Attempt", "Issue"),
}
"""The public names by module. A module is loaded when one of its names is first used."""


def __getattr__(name: str) -> Any:
    """Load a public name, or a public module, when a program first uses it.

    Raises:
        ImportError: If the name is in another public module. The message names this module.
        AttributeError: If there is no such name.
    """
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    modules = [found.name for found in iter_modules(__path__) if not found.name.startswith("_")]
    if name in modules:
        return import_module(f"{__name__}.{name}")
    if not name.startswith("_"):
        for module in modules:
            exported: Any = ()
            with suppress(ImportError):  # The module may need an extra that is not installed.
                exported = getattr(import_module(f"{__name__}.{module}"), "__all__", ())
            if name in exported:
                where = f"from {__name__}.{module} import {name}"
                raise ImportError(f"`graph_retry` does not export `{name}`: write `{where}`.")
    from graph_retry.lossless._ground import as_repr  # noqa: PLC0415 - the import must be fast

    raise AttributeError(f"module {as_repr(__name__)} has no attribute {as_repr(name)}")


def __dir__() -> list[str]:
    """List the public names for completion, including those that are not loaded yet."""
    return __all__
