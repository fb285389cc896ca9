"""What every validator offers, and what one check found."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, cast

from graph_retry._issues import MAX_ISSUES, describe, format_issues, issue
from graph_retry._json import is_array, is_object
from graph_retry.records import Issue, Repair

MAX_DEPTH = 200  # Pydantic's JSON parser and the checkpointers stop soon after.


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


class Validator:
    """Something that judges a value and can rebuild an accepted one from graph state."""

    name: str
    """What is wanted, in a word or two, for titles and messages."""
    schema: dict[str, Any] | None = None
    """The JSON Schema of what is wanted, for prompts and forms; `None` if unknown."""
    wants_text: bool = False
    """Whether a model's text is itself the value, and not JSON that spells it."""

    @property
    def accepts_text(self) -> bool:
        """Whether text without JSON in it may be the value: its schema allows only strings."""
        return _kinds(self.schema or {}) == {str}

    @property
    def admits_text(self) -> bool:
        """Whether a string is among the values that its schema allows."""
        return str in _kinds(self.schema or {})

    def check(self, value: Any) -> Checked:
        """Judge `value`. A wrong value gives issues, 100 at most, and never an exception.

        Raises:
            TypeError: If an accepted value has no plain JSON form that brings it back.
        """
        accepted, issues = self._judge(value)
        if not issues:
            jsonable, repairs = self._kept(accepted, value)
            problem = json_problem(jsonable)
            if not problem:
                return Checked(value=accepted, jsonable=jsonable, repairs=repairs)
            if problem["code"] == "not_json":
                raise TypeError(
                    f"`output` `{self.name}` accepted a `{type(accepted).__name__}`, which has no "
                    "plain JSON form that validates back to it, so graph state cannot keep it; "
                    "return plain data, or give the type a serializer that its validation reads"
                )
            issues = [problem]
        more = issue("", f"there are more issues than these {MAX_ISSUES}", "more_issues")
        return Checked(issues=issues[:MAX_ISSUES] + [more] * (len(issues) > MAX_ISSUES))

    def rebuild(self, jsonable: Any) -> Any:
        """Make the validated value again from the `jsonable` of an accepted check.

        Raises:
            ValueError: If it was edited in state and is not accepted any more.
        """
        accepted, issues = self._judge(jsonable)
        if issues:
            raise ValueError(
                f"`output` in graph state is no longer a valid `{self.name}`; put back what was "
                f"there or run the call again:\n{format_issues(issues)}"
            )
        return accepted

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        raise NotImplementedError

    def _kept(self, accepted: Any, given: Any) -> tuple[Any, list[Repair]]:  # noqa: ARG002
        """Return the form for graph state, and how `given` had to be converted."""
        return accepted, []


def _kinds(schema: dict[str, Any]) -> set[type[Any]]:
    """Return the kinds of values a schema allows at its top: `str`, and `object` for any other."""
    branches = schema.get("anyOf")
    if is_array(branches):
        return {object, *(kind for each in branches if is_object(each) for kind in _kinds(each))}
    choices: list[Any] = [schema["const"]] if "const" in schema else schema.get("enum", [])
    if schema.get("type") == "string" or choices:
        return {str if isinstance(choice, str) else object for choice in choices or [""]}
    return {object}


def json_problem(value: Any, path: tuple[Any, ...] = ()) -> Issue | None:
    """Find what keeps `value`, which stands at `path`, from being JSON that graph state can hold.

    Subclasses, such as those of `str`, are not plain JSON: state would bring back something else.
    """
    kind = cast("Any", type(value))
    if len(path) > MAX_DEPTH:
        return issue(path[:8], f"nested deeper than {MAX_DEPTH} levels", "too_deep")
    if kind is dict or kind is list:
        for key, child in value.items() if kind is dict else enumerate(value):
            if kind is dict and type(key) is not str:
                return issue(path, "a key is not text", "not_json", "text", describe(key))
            here = (*path, key)
            if problem := json_problem(key, here) or json_problem(child, here):
                return problem
    elif kind is str and value.encode(errors="ignore") != value.encode(errors="replace"):
        return issue(path, "lone surrogates are not text", "string_unicode", "text")
    elif kind is str and not path and "\0" in value:  # a text that is itself a state's value
        return issue(path, "PostgreSQL cannot save a NUL character", "string_unicode", "text")
    elif kind is float and not math.isfinite(value):
        return issue(path, "JSON has no such number", "finite_number", "a number", describe(value))
    elif kind is int and not -(2**63) <= value < 2**64:
        return issue(path, "graph state holds integers of 64 bits", "int_range", "64 bits")
    elif kind not in (str, int, float, bool, type(None)):
        return issue(path, "this is not plain JSON", "not_json", "JSON", describe(value))
    return None
