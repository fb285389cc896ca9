"""Find the failure kind, such as `transient`, of an exception or of a provider's finish reason.

The failure kind decides the next step of a call: see `FAILURE_KINDS` in `records.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from json import JSONDecodeError

from langchain_core.exceptions import OutputParserException
from pydantic import ValidationError

from graph_retry._core.ground.credentials import without_keys
from graph_retry._core.ground.issues import attempt, issue
from graph_retry._core.ground.wording import passed_as, quoted_with_article
from graph_retry._core.output.providers.anthropic import unparsed_arguments
from graph_retry._core.output.providers.exceptions import provider_kind
from graph_retry._core.output.providers.objects import meaning_of
from graph_retry.lossless import ParsedOutput
from graph_retry.lossless._ground import EscapedText, as_repr, text_of
from graph_retry.records import FAILURE_KINDS, OWN_TYPES, Failure, FailureKind, Issue

MAX_MESSAGE = 4_000
"""The maximum number of characters of an error message in the ledger."""


class BudgetExceededError(EscapedText):
    """A call was not made, because a `SharedBudget` is spent or too many calls failed in a row."""


def classified(
    error: Exception, classify: Callable[[Exception], FailureKind | None]
) -> FailureKind | None:
    """Return the failure kind that the user's `classify` returns; None means the default kind.

    Raises:
        ValueError: If the kind does not exist.
    """
    with passed_as("classify"):
        kind = classify(error)
    if kind is not None and kind not in [*FAILURE_KINDS]:
        made_by = quoted_with_article(type(error).__name__)
        raise ValueError(
            f"`classify` returned {as_repr(kind, 200)} for {made_by}, which is not "
            f"a failure kind: return one of {', '.join(FAILURE_KINDS)}, or None for the default."
        ) from error
    return kind


def failure_of(error: Exception, kind: FailureKind | None = None) -> Failure:
    """Describe an exception of `llm_call` as a failure.

    A `kind` from the user's `classify` is used unchanged. An unknown exception is `rejected_input`,
    because other params may help. API keys in the message are masked.

    Example:
        >>> failure_of(TimeoutError("no answer in 30 s"))["kind"]
        'transient'
    """
    text = without_keys(text_of(error)) or type(error).__name__
    # A client may compute the attributes of its exceptions, and reading them may raise.
    read, failed = (kind, []) if kind else attempt(_kind, error)
    known = None if failed else read
    failure = Failure(
        kind=known or "rejected_input", type=_type_of(type(error)), message=text[:MAX_MESSAGE]
    )
    if known is None:
        failure["is_unknown"] = True
    return failure


def _type_of(error: type[Exception]) -> str:
    """Return the name of a class, with its module if the name is also that of an error of ours."""
    name, module = error.__name__, f"{error.__module__}"
    is_ours = module.partition(".")[0] == __name__.partition(".")[0]
    return name if is_ours or name not in OWN_TYPES else f"{module}.{name}"


def syntax_issue(parsed: ParsedOutput, name: str = "json") -> Issue:
    """Describe why a text was not read, with line and column if they are known.

    Example:
        >>> from graph_retry.lossless import read
        >>> syntax_issue(read("no number"))["expected"]
        'one JSON value'
    """
    assert parsed.failure is not None  # noqa: S101
    text, at, received = parsed.text, parsed.failure["position"], parsed.failure["excerpt"]
    # A format may have read only a part of the text. Then its positions are not of this text.
    if 0 < at < len(text) and text.startswith(received, max(0, at - 40)):
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        received = f"at line {line}, column {column}: {text[at : at + 60]}"
    wanted = f"one {name.upper()} value"
    return issue("", parsed.failure["message"], f"invalid_{name}", wanted, received)


def finish_kind(finish_reason: str | None) -> FailureKind | None:
    """Return the failure kind that a provider's finish reason means, or None.

    Example:
        >>> finish_kind("length")
        'truncated'
    """
    meaning = meaning_of(finish_reason)
    return None if meaning == "stopped" else meaning


def announced(finish_reason: str | None, refusal: str | None, *, is_read: bool) -> Failure | None:
    """Return the failure that the provider reported beside the answer, or None.

    A cut-off is a failure only if the answer is a structured value. For example, if a tool call is
    cut off, Anthropic returns only the arguments that had arrived, and nothing shows the loss. An
    answer that is read from text (`is_read`) itself shows whether it is complete.
    """
    if refusal:
        return {"kind": "refusal", "type": "Refusal", "message": refusal}
    kind = finish_kind(finish_reason)
    if kind in ("refusal", "invalid_syntax") or (
        kind in ("truncated", "context_overflow") and not is_read
    ):
        stopped = f"the model stopped with `{finish_reason}`"
        return {"kind": kind, "type": kind.capitalize(), "message": stopped}
    return None


def is_complete(finish_reason: str | None) -> bool | None:
    """Return True if the model finished, False if it was cut off, None if this is unknown.

    Example:
        >>> is_complete("stop"), is_complete("length"), is_complete(None)
        (True, False, None)
    """
    known = {"stopped": True, "truncated": False, "context_overflow": False}
    return known.get(meaning_of(finish_reason) or "")


def _kind(error: Exception) -> FailureKind | None:
    is_unread = isinstance(error, OutputParserException | JSONDecodeError)
    if is_unread or unparsed_arguments(error) is not None:
        return "invalid_syntax"
    if isinstance(error, ValidationError):
        return "invalid_schema"
    if isinstance(error, BudgetExceededError):
        return "permanent"
    return provider_kind(error)
