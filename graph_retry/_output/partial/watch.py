"""Notice, while an answer arrives, that it can no longer become valid."""

from __future__ import annotations

from typing import Any

from graph_retry._issues import format_issues
from graph_retry._json import is_array, is_number
from graph_retry._output.partial.growing import GrowingDocument, GrowingText
from graph_retry._output.partial.part import OpenPart, Part
from graph_retry._output.validator import Validator
from graph_retry.records import Failure, Issue, RepairLevel


class Watch:
    """Takes an answer piece by piece: `value` is what there is of it, `failure` why it is lost.

    A document with which the text begins, perhaps in a fence or after closed thoughts, is taken for
    the answer. One behind prose may be anything: it is shown, and not judged before the end. Plain
    text is shown, too.
    """

    def __init__(
        self, validator: Validator | None, level: RepairLevel, *, judges: bool = True
    ) -> None:
        self.failure: Failure | None = None
        self.issues: list[Issue] = []
        is_text = validator is None or validator.wants_text or validator.accepts_text
        self._document = GrowingText() if is_text else GrowingDocument()
        # `aggressive` guesses, so its later reading is unknown now.
        judges = judges and level != "aggressive"
        self._name, self._part = "", Part()
        if validator is not None and judges and not validator.admits_text:
            self._name, self._part = validator.name, validator.part
        self._whole = OpenPart(self._part)

    @property
    def value(self) -> Any:
        """The present part of the answer; `ABSENT` before any."""
        return self._document.value

    @property
    def closed_value(self) -> Any:
        """The present part of the answer, without an unfinished text."""
        return self._document.without_open_text()

    @property
    def text(self) -> str:
        """Everything that has come."""
        return self._document.text

    def add(self, piece: str) -> bool:
        """Take the next piece; tell whether there may be more of the value."""
        if not self._document.add(piece):
            return False
        try:
            self.issues = self._certain()
        except RecursionError:  # it is too deep to check in parts, so only the whole is checked
            self._whole = OpenPart(Part())
        if self.issues:
            why = f"the output can no longer be a valid {self._name}: {format_issues(self.issues)}"
            self.failure = {"kind": "invalid_schema", "type": "ValidationError", "message": why}
        return True

    def _certain(self) -> list[Issue]:
        """Return the errors of the present value that no later text can correct."""
        value = self.value
        if not self._document.begins_the_text:
            return []
        if is_array(value) and all(map(is_number, value)):
            return []  # it may be a citation such as `[1]`
        wrong = self._whole.issues(value)
        # Of an object, documents in a row make a list; no second bracket makes an object of a list.
        if not wrong and is_array(value) and len(value) > 1 and self._part.container is dict:
            wrong = self._part.errors(value)
        return wrong if wrong and self._document.is_exact() else []
