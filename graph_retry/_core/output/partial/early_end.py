"""Validate an answer while it arrives, to find out early that it cannot become valid."""

from __future__ import annotations

from typing import Any

from graph_retry._core.ground.json import is_array, is_number
from graph_retry._core.output.partial.growing import GrowingDocument, GrowingText
from graph_retry._core.output.partial.settled import Settled
from graph_retry._core.output.validator import Validator, format_issues
from graph_retry.records import Failure, Issue, RepairLevel


class Watch:
    """Validates an answer piece by piece.

    `value` is the answer so far. `failure` is set when the answer can no longer become valid. Only
    a JSON document at the beginning of the text is validated. It may be in a fence, or follow the
    model's closed thoughts. Other documents and plain text are only shown.
    """

    def __init__(
        self, validator: Validator | None, level: RepairLevel, *, judges: bool = True
    ) -> None:
        self.failure: Failure | None = None
        self.issues: list[Issue] = []
        is_text = (
            validator is None or validator.wants_text or validator.kinds == frozenset({"string"})
        )
        self._document = GrowingText() if is_text else GrowingDocument()
        # At the level `aggressive`, repair may guess, so the final value is unknown now.
        judges = judges and level != "aggressive"
        self._name, self._wants_object = "", False
        self._settled: Settled | None = None
        if validator is not None and judges and not validator.admits_text:
            self._name, self._wants_object = (
                validator.name,
                validator.kinds == frozenset({"object"}),
            )
            judge = validator.judge
            self._settled = judge and Settled(judge)

    @property
    def value(self) -> Any:
        """The answer so far; `ABSENT` before its first part."""
        return self._document.value

    @property
    def closed_value(self) -> Any:
        """The answer so far, without an unfinished text at its end."""
        return self._document.without_open_text()

    @property
    def text(self) -> str:
        """The whole text so far."""
        return self._document.text

    def add(self, piece: str) -> bool:
        """Add the next piece; return whether `value` may have grown."""
        if not self._document.add(piece):
            return False
        try:
            self.issues = self._certain()
        except RecursionError:  # The value is nested too deeply. Only the whole is validated.
            self._settled = None
        if self.issues:
            why = f"the output can no longer be a valid {self._name}: {format_issues(self.issues)}"
            self.failure = {"kind": "invalid_schema", "type": "ValidationError", "message": why}
        return True

    def _certain(self) -> list[Issue]:
        """Return the errors of the answer so far that no later text can correct."""
        value = self.value
        if self._settled is None or not self._document.begins_the_text:
            return []
        if is_array(value) and all(map(is_number, value)):
            return []  # This may be a citation such as `[1]`.
        # Later text may turn an object into a list of documents, but never a list of several
        # elements into an object.
        is_other = self._wants_object and is_array(value) and len(value) > 1
        wrong = self._settled.issues(value, is_closed=is_other)
        return wrong if wrong and self._document.is_exact() else []
