"""Tell, while an answer comes, that it can no longer become what is asked for."""

from __future__ import annotations

from typing import Any

from graph_retry._issues import ABSENT, format_issues, issue
from graph_retry._json import is_array, is_object
from graph_retry._output.partial.growing import GrowingDocument
from graph_retry._output.partial.open_part import OpenPart
from graph_retry._output.validator import Validator
from graph_retry.records import Failure, Issue, RepairLevel


class Watch:
    """Takes an answer piece by piece: `value` is what there is of it, `failure` why it is lost.

    A document with which the text begins, perhaps in a fence or after closed thoughts, is taken for
    the answer. One that stands in prose may be anything, and is not judged before the end. With
    `may_be_element` others may follow the document that make a list of it, whatever is repaired.
    """

    def __init__(
        self,
        validator: Validator,
        level: RepairLevel,
        *,
        judges: bool = True,
        may_be_element: bool = False,
    ) -> None:
        self.failure: Failure | None = None
        self.issues: list[Issue] = []
        self._name = validator.name
        wants_text = validator.wants_text or validator.accepts_text
        self._document = None if wants_text else GrowingDocument(level)
        # What `aggressive` makes of a text is a guess, and so is what would become of it.
        self._judges = judges and level != "aggressive" and not validator.admits_text
        self._part = validator.opened() if self._judges else None
        # Documents in a row are read as a list, so an object may turn out to be an element.
        may_be_element = may_be_element or level == "standard"
        self._sequence = validator.opened() if self._part and may_be_element else None

    @property
    def value(self) -> Any:
        """What there is of the answer; `ABSENT` as long as nothing is."""
        return ABSENT if self._document is None else self._document.value

    @property
    def closed_value(self) -> Any:
        """What there is of the answer, without a text that is still coming."""
        return ABSENT if self._document is None else self._document.without_open_text()

    @property
    def text(self) -> str:
        """What has come of a text that may be judged."""
        return "" if self._document is None else self._document.text

    def add(self, piece: str) -> bool:
        """Take the next piece; tell whether there may be more of the value."""
        if self._document is None or not self._document.add(piece):
            return False
        error = self._document.error
        if error is not None and self._judges:
            self._fail(
                {"kind": "invalid_syntax", "type": "InvalidJSON", "message": error},
                [issue("", error, "invalid_json", "one JSON value")],
            )
        elif error is None and (wrong := self._wrong(self._document)):
            message = f"the output can no longer be a valid {self._name}: {format_issues(wrong)}"
            self._fail(
                {"kind": "invalid_schema", "type": "ValidationError", "message": message}, wrong
            )
        return error is None

    def _wrong(self, document: GrowingDocument) -> list[Issue]:
        try:
            return self._certain(document)
        except RecursionError:  # nested too deeply to be judged in part: the whole will tell
            self._part = None
            return []

    def _certain(self, document: GrowingDocument) -> list[Issue]:
        value, part = document.value, self._part
        if part is None or not (is_object(value) or is_array(value)):
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
    """Tell whether a list of documents that begins with this one would be wrong, too."""
    return part is None or bool(part.wrong_kind([value, value]) or part.issues([value]))
