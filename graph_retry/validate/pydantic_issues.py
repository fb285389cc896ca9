"""Pydantic's errors as issues whose paths point into the data that was checked."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from graph_retry.records import Issue
from graph_retry.validate.issues import describe, issue
from graph_retry.validate.plain import ABSENT, is_dict, is_list, same


def pydantic_issues(error: ValidationError, root: Any = ABSENT) -> list[Issue]:
    """Make one issue per error.

    Pydantic mixes union tags and validator names into its locations. With `root`, the value that
    was checked, they are taken out of the path and named in the message instead.
    """
    issues: list[Issue] = []
    for each in error.errors(include_url=False):
        path = list(each["loc"]) if root is ABSENT else real_path(each, root)
        tags = _left_out(each["loc"], path)
        message = f"{each['msg']} (as {', '.join(tags)})" if tags else each["msg"]
        received = None if _is_missing(each) else describe(each["input"])
        issues.append(issue(path, message, each["type"], _expected(each), received))
    return issues


def real_path(error: ErrorDetails, root: Any) -> list[int | str]:
    """Find the parts of an error's location that lead through `root` to the input it names."""
    loc, missing = error["loc"], _is_missing(error)
    path = _walk(loc, root, error["input"], set())
    if path is None:
        # The input was made by someone's validator and is nowhere in the data.
        path, node = list[int | str](), root
        for part in loc:
            if (child := child_of(node, part)) is not ABSENT:
                path, node = [*path, part], child
    return [*path, loc[-1]] if missing else path


def _walk(
    steps: Sequence[int | str], node: Any, goal: Any, dead_ends: set[tuple[int, int]]
) -> list[int | str] | None:
    if not steps:
        return [] if same(node, goal) else None
    if (len(steps), id(node)) in dead_ends:
        return None
    child = child_of(node, steps[0])
    if child is not ABSENT:
        rest = _walk(steps[1:], child, goal, dead_ends)
        if rest is not None:
            return [steps[0], *rest]
    rest = _walk(steps[1:], node, goal, dead_ends)
    if rest is None:
        dead_ends.add((len(steps), id(node)))
    return rest


def child_of(node: Any, part: int | str) -> Any:
    """Look up one step below a dict or a list; `ABSENT` where there is none."""
    if is_dict(node):
        return node.get(part, ABSENT)
    if is_list(node) and isinstance(part, int) and 0 <= part < len(node):
        return node[part]
    return ABSENT


def _left_out(loc: Sequence[int | str], path: Sequence[int | str]) -> list[str]:
    """List the union tags of a location: what is not in the path, save validators' own names."""
    kept = list(path)
    tags: list[str] = []
    for part in loc:
        if kept and kept[0] == part:
            kept.pop(0)
        elif isinstance(part, str) and part != "[key]" and not part.startswith("function-"):
            tags.append(part)
    return tags


def _is_missing(error: ErrorDetails) -> bool:
    return error["type"].startswith("missing")


def _expected(error: ErrorDetails) -> str | None:
    """Say in a few words what was wanted, from the error's context or else from its code."""
    context = error.get("ctx", {})
    for key in ("expected", "expected_tags", "class_name"):
        if key in context:
            return str(context[key])
    limits = [f"{k} {v}" for k, v in context.items() if k not in {"error", "actual_length"}]
    if limits:
        return ", ".join(limits)
    if _is_missing(error):
        return "a value"
    kind, _, reason = error["type"].rpartition("_")
    return kind if reason in {"type", "parsing"} else None
