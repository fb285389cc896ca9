"""The error for a view that does not fit the params type, with one issue per field."""

from collections.abc import Callable, Iterable
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from graph_retry.params.pointer import spelled
from graph_retry.records import Issue
from graph_retry.validate.pydantic_issues import pydantic_issues

_SHOWN_ISSUES = 5


class ParamsInvalid(ValueError):
    """A view of params that does not fit their type; `issues` says where and why."""

    def __init__(self, issues: Iterable[Issue], subject: str = "params do not fit") -> None:
        """Keep the issues; `subject` opens the sentence."""
        self.issues = list(issues)
        self.subject = subject
        told = [f"`{spelled(i['path'])}` {i['message']}" for i in self.issues[:_SHOWN_ISSUES]]
        if len(self.issues) > _SHOWN_ISSUES:
            told.append(f"and {len(self.issues) - _SHOWN_ISSUES} more")
        super().__init__(f"{subject}: {'; '.join(told)}")

    def __reduce__(self) -> tuple[Callable[..., "ParamsInvalid"], tuple[list[Issue], str]]:
        """Rebuild from the issues, so that the error survives a process boundary."""
        return type(self), (self.issues, self.subject)


def field_issues(error: ValidationError, data: Any, at: str) -> list[Issue]:
    """Turn a validation error on `data`, which stands at `at` in a view, into issues."""
    return [{**each, "path": at + each["path"]} for each in pydantic_issues(error, data)]


def aliases_of(annotation: Any, seen: set[type] | None = None) -> dict[str, str]:
    """Collect alias -> field name over a type and every model inside it."""
    seen = set() if seen is None else seen
    found: dict[str, str] = {}
    inner: Iterable[Any] = get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation in seen:
            return {}
        seen.add(annotation)
        for name, field in annotation.model_fields.items():
            for alias in (field.alias, field.validation_alias):
                if isinstance(alias, str) and alias != name:
                    found[alias] = name
        inner = [field.annotation for field in annotation.model_fields.values()]
    for part in inner:
        found |= aliases_of(part, seen)
    return found
