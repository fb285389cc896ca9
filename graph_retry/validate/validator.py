"""What every validator offers, and what one check found."""

from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from graph_retry.records import Issue, Repair
from graph_retry.validate.issues import bounded


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The outcome of one check.

    `value` is the validated Python value and `jsonable` its plain JSON form for graph state; both
    are `None` when there are `issues`. `repairs` lists the coercions that were needed.
    """

    value: Any = None
    jsonable: Any = None
    issues: list[Issue] = field(default_factory=list[Issue])
    repairs: list[Repair] = field(default_factory=list[Repair])

    @property
    def ok(self) -> bool:
        """Whether the value is what the caller asked for."""
        return not self.issues

    @classmethod
    def refused(cls, issues: list[Issue]) -> "Checked":
        """Make the outcome of a failed check; a very long list of issues is cut, and says so."""
        return cls(issues=bounded(issues))


@runtime_checkable
class Validator(Protocol):
    """Something that judges a value and can rebuild an accepted one from graph state."""

    @property
    def name(self) -> str:
        """What is wanted, in a word or two, for titles and messages."""
        ...

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of what is wanted, for prompts and forms; `None` if unknown."""
        ...

    @property
    def wants_text(self) -> bool:
        """Whether a model's text is itself the value, and not JSON that spells it."""
        ...

    def check(self, value: Any) -> Checked:
        """Judge `value`. A wrong value gives issues and never an exception.

        Raises:
            TypeError: If an accepted value has no plain JSON form that brings it back.
        """
        ...

    def rebuild(self, jsonable: Any) -> Any:
        """Make the validated value again from the `jsonable` of an accepted check."""
        ...
