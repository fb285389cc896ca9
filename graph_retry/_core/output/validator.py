"""The base class of validators, the result of one check, and the text of its issues."""

from __future__ import annotations

import builtins
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.issues import MAX_ISSUES, SHOWN_ISSUES, issue, json_problem
from graph_retry._core.ground.json import as_floats
from graph_retry._core.ground.schemas import ANY_KIND, alternatives, kinds, kinds_of
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.output.partial.settled import Judge
from graph_retry.records import Issue, Repair


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The result of one validation.

    `value` is the validated Python value, and `jsonable` is its plain JSON form for graph state.
    Both are None if there are `issues`. `repairs` lists the conversions that validation made.
    `judged` is the JSON that was validated, if a wrapper was removed or long numbers converted.
    """

    value: Any = None
    jsonable: Any = None
    issues: list[Issue] = field(default_factory=list[Issue])
    repairs: list[Repair] = field(default_factory=list[Repair])
    judged: Any = None

    @property
    def ok(self) -> bool:
        """Whether the value is valid."""
        return not self.issues

    @property
    def ignores(self) -> bool:
        """Whether validation left out a part of the given value."""
        return any(one["kind"] == "ignored" for one in self.repairs)

    @property
    def is_unwrapped(self) -> bool:
        """Whether the given value was a wrapper around `judged`."""
        return any(one["kind"] == "unwrapped" for one in self.repairs)


class Validator:
    """Validates values, and rebuilds accepted values from their JSON in graph state."""

    name: str
    """The wanted output in a word or two, for titles and messages."""
    schema: dict[str, Any] | None = None
    """The JSON Schema of the wanted output, for prompts and forms; `None` if unknown."""
    wants_text: bool = False
    """Whether the model's text itself is the output, so that no JSON is parsed."""
    wants_message: bool = False
    """Whether the output is the message of an agent's model, as an object."""

    call_names: frozenset[str] = frozenset()
    """The tool names that choose one of several classes of the output."""

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The JSON types that the schema allows."""
        return kinds_of(self.schema, self.schema)

    @property
    def admits_text(self) -> bool:
        """Whether the schema names strings as one of its types."""
        named = map(kinds, alternatives(self.schema, self.schema))
        return any("string" in allowed != ANY_KIND for allowed in named)

    @property
    def judge(self) -> Judge | None:
        """The check for incomplete values; None if only whole values are checked."""
        return None

    def reads_calls(self, value: Any) -> bool:  # noqa: ARG002
        """Return whether a value consists of valid calls that name classes of the output."""
        return False

    def written(self, value: Any) -> Any:
        """Convert an object to JSON if several classes have its fields; return others unchanged.

        Raises:
            TypeError: If the value has no JSON form that keeps its classes.
        """
        return value

    def has_place(self, value: Any) -> bool:  # noqa: ARG002
        """Return whether a value fits the type or schema; always False for a validator function."""
        return False

    def check(self, value: Any) -> Checked:
        """Validate `value`. A wrong value raises no error: the result has up to 100 of its issues.

        Raises:
            TypeError: If a valid value cannot be converted to plain JSON and back without a change.
        """
        return self._checked(value, *self._judge(value))

    async def acheck(self, value: Any) -> Checked:
        """Validate `value` as `check` does, and await the validator if it is async.

        Raises:
            AsyncUnderSyncError: If the validator is async and the run is not.
        """
        return self._checked(value, *await self._ajudge(value))

    async def acheck_digits(self, exact: Any) -> Checked:
        """Validate JSON with numbers that no float holds exactly. A `Decimal` gets all digits."""
        plain = as_floats(exact)
        checked = replace(await self.acheck(plain), judged=plain)
        return self._with_digits(checked, exact) if checked.ok else checked

    def _with_digits(self, checked: Checked, exact: Any) -> Checked:  # noqa: ARG002
        """Validate `exact` with all digits. `checked` is the result for rounded floats."""
        return checked

    def _checked(self, value: Any, accepted: Any, issues: list[Issue]) -> Checked:
        if not issues:
            jsonable, repairs, issues = self._kept(accepted, value)
            problem = json_problem(jsonable)
            if not problem and not issues:
                return Checked(value=accepted, jsonable=jsonable, repairs=repairs)
            if problem and problem["code"] == "not_json":
                kind = cast("type[object]", type(accepted))
                is_namesake = kind.__module__ != "builtins" and hasattr(builtins, kind.__name__)
                name = f"{kind.__module__}.{kind.__name__}" if is_namesake else kind.__name__
                came = quoted_with_article(name)
                raise TypeError(
                    f"`output` `{self.name}` accepted {came}, which has no "
                    "plain JSON form that validates back to it, so graph state cannot keep it; "
                    "return plain data, give the type a serializer that its validation reads, or "
                    "give a union of classes with equal fields a discriminator"
                )
            issues = [problem] if problem else issues
        more = issue("", f"only the first {MAX_ISSUES} issues were looked at", "more_issues")
        # Two branches of a union may have the same issue.
        shown = [*{json.dumps(one, default=str): one for one in issues[:MAX_ISSUES]}.values()]
        return Checked(issues=shown + [more] * (len(issues) > MAX_ISSUES))

    def rebuild(self, jsonable: Any) -> Any:
        """Rebuild the validated value from the `jsonable` of an accepted check.

        Raises:
            ValueError: If the JSON was edited in graph state and is no longer valid.
        """
        accepted, issues = self._judge(jsonable)
        if issues:
            raise ValueError(
                f"`output` in graph state is no longer a valid `{self.name}`; put back what was "
                f"there or run the call again:\n{format_issues(issues)}"
            )
        return accepted

    def part_to_change(self, value: Any) -> Any:
        """Return the part of an output to which a person's changes apply."""
        return value

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        raise NotImplementedError

    async def _ajudge(self, value: Any) -> tuple[Any, list[Issue]]:
        return self._judge(value)

    def _kept(
        self,
        accepted: Any,
        given: Any,  # noqa: ARG002
    ) -> tuple[Any, list[Repair], list[Issue]]:
        """Return the JSON form for graph state, the conversions, and issues for guesses."""
        return accepted, [], []


@checked
def format_issues(issues: Sequence[Issue]) -> str:
    """Write the first 20 issues as a numbered list, for a person or a model.

    An issue needs only its `message`.

    Example:
        >>> print(format_issues([{"path": "/b", "message": "not a number", "received": '"x"'}]))
        1. /b: not a number (received "x")
        >>> format_issues([])
        'no issues'
    """
    lines: list[str] = []
    for number, problem in enumerate(issues[:SHOWN_ISSUES], 1):
        facts = ", ".join(
            f"{key} {problem[key]}" for key in ("expected", "received") if problem.get(key)
        )
        place = problem.get("path") or "(whole value)"
        line = f"{place}: {problem['message']}{facts and f' ({facts})'}"
        lines.append(f"{number}. {' '.join(line.split())}")
    if len(issues) > SHOWN_ISSUES:
        lines.append(f"… and {len(issues) - SHOWN_ISSUES} more")
    return "\n".join(lines) or "no issues"
