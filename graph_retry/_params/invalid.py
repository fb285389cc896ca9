"""The error for a view that does not fit the params type, with one issue per field."""

from __future__ import annotations

from graph_retry.records import Issue

_SHOWN_ISSUES = 5


class ParamsInvalid(ValueError):
    """A view of params that does not fit their type; `issues` says where and why."""

    def __init__(self, issues: list[Issue], subject: str = "params do not fit") -> None:
        """Keep the issues; `subject` opens the sentence."""
        super().__init__(issues, subject)
        self.issues = issues
        self.subject = subject

    def __str__(self) -> str:
        told = [f"`{spelled(i['path'])}` {i['message']}" for i in self.issues[:_SHOWN_ISSUES]]
        more = len(self.issues) - _SHOWN_ISSUES
        return f"{self.subject}: {'; '.join([*told, f'and {more} more'] if more > 0 else told)}"


def spelled(path: str) -> str:
    """Spell a JSON Pointer into the params as Python would, for sentences."""
    parts = (f"[{key}]" if key.isdecimal() else f".{key}" for key in path.split("/")[1:])
    return "params" + "".join(parts).replace("~1", "/").replace("~0", "~")
