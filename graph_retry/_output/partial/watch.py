"""Notice, while an answer arrives, that it can no longer become valid."""

from __future__ import annotations

from typing import Any

from graph_retry._issues import format_issues, issue
from graph_retry._json import is_array, is_object
from graph_retry._output.partial.growing import GrowingDocument, GrowingText
from graph_retry._output.partial.open_part import OpenPart
from graph_retry._output.validator import Validator
from graph_retry.records import Failure, Issue, RepairLevel


class Watch:
    """Takes an answer piece by piece: `value` is what there is of it, `failure` why it is lost.

    A document with which the text begins, perhaps in a fence or after closed thoughts, is taken for
    the answer. One behind prose may be anything: it is shown, and not judged before the end. Plain
    text is shown, too. With `may_be_element` others may follow the document that make a list of it,
    whatever is repaired.
    """

    def __init__(
        self,
        validator: Validator | None,
        level: RepairLevel,
        *,
        judges: bool = True,
        may_be_element: bool = False,
    ) -> None:
        self.failure: Failure | None = None
        self.issues: list[Issue] = []
        is_text = validator is None or validator.wants_text or validator.accepts_text
        self._document = GrowingText() if is_text else GrowingDocument(level)
        self._judged: Validator | None = None
        # `aggressive` guesses, so nobody can say now what it will read.
        if validator is not None and judges and level != "aggressive" and not validator.admits_text:
            self._judged = validator
        self._part = self._judged.opened() if self._judged else None
        # Documents in a row are read as a list, so an object may turn out to be an element.
        may_be_element = may_be_element or level == "standard"
        self._sequence = self._judged.opened() if self._judged and may_be_element else None

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
        error, judged = self._document.error, self._judged
        if judged is None:
            return error is None
        if error is not None:
            self._fail(
                {"kind": "invalid_syntax", "type": "InvalidJSON", "message": error},
                [issue("", error, "invalid_json", "one JSON value")],
            )
        elif wrong := self._wrong(self._document):
            message = f"the output can no longer be a valid {judged.name}: {format_issues(wrong)}"
            self._fail(
                {"kind": "invalid_schema", "type": "ValidationError", "message": message}, wrong
            )
        return error is None

    def _wrong(self, document: GrowingText) -> list[Issue]:
        try:
            return self._certain(document)
        except RecursionError:  # too deep to check in parts: only the whole is
            self._part = None
            return []

    def _certain(self, document: GrowingText) -> list[Issue]:
        value, part = document.value, self._part
        if (
            part is None
            or not document.begins_the_text
            or not (is_object(value) or is_array(value))
        ):
            return []
        if is_array(value) and all(type(item) in (int, float) for item in value):
            return []  # a citation like `[1]`, perhaps
        # Nothing stands around the whole, so that no bracket can be missing around it.
        wrong = part.issues(value) or (part.wrong_kind(value) if len(value) > 1 else [])
        if not wrong or not document.is_exact():
            return []
        if is_object(value) and not _is_wrong_in_a_row(self._sequence, value):
            return []
        return wrong

    def _fail(self, failure: Failure, issues: list[Issue]) -> None:
        self.failure, self.issues = failure, issues


def _is_wrong_in_a_row(part: OpenPart | None, value: dict[str, Any]) -> bool:
    """Return whether a list of documents that begins with this one would also be wrong."""
    return part is None or bool(part.wrong_kind([value, value]) or part.issues([value]))
