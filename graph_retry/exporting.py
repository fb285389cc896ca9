"""Ledgers as JSON Lines: one call a line, readable by every later version."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from pydantic_core import to_jsonable_python

from graph_retry.ledger import Ledger, check_version
from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.records import SCHEMA_VERSION, Attempt

_FIELDS = Attempt.__annotations__.keys() - {"name"}  # the first exports had none


def export_ledgers(
    ledgers: Iterable[Ledger],
    path: str | Path,
    redact: Callable[[Attempt], Attempt] | None = None,
) -> None:
    """Write ledgers to a file, one a line, each with its schema version.

    Args:
        ledgers: What `attempts_of` returns, or `[Ledger(error.attempts)]`.
        path: The file; an older one is replaced.
        redact: Returns each attempt as it may be told; it gets a copy.

    Example:
        >>> import os, tempfile
        >>> from graph_retry import InterventionRequired, retry_llm_call
        >>> try:
        ...     retry_llm_call(lambda params: "no", {"prompt": "secret"}, output=int)
        ... except InterventionRequired as error:
        ...     ledger = Ledger(error.attempts)
        >>> def redact(attempt):
        ...     return {**attempt, "params_patch": [], "params_types": {}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "ledgers.jsonl")
        ...     export_ledgers([ledger], path, redact)
        ...     (again,) = import_ledgers(path)
        >>> again.at(1)["raw"], again.params_at(1)
        ({'text': 'no'}, {})
    """
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for ledger in ledgers:
            attempts = copy.deepcopy(ledger.attempts)
            line = {
                "graph_retry_ledger": SCHEMA_VERSION,
                "namespace": ledger.namespace,
                "attempts": attempts if redact is None else [redact(each) for each in attempts],
            }
            file.write(json.dumps(line, default=to_jsonable_python) + "\n")


def import_ledgers(path: str | Path) -> list[Ledger]:
    """Read what `export_ledgers` wrote, with this version or an earlier one.

    Raises:
        ReplayMismatch: If a newer version wrote it.
        ValueError: If a line is no ledger; it is named by its number.
    """
    found: list[Ledger] = []
    with Path(path).open(encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                found.append(_read(line, f"line {number} of {path}"))
    return found


def _read(line: str, place: str) -> Ledger:
    try:
        entry: Any = json.loads(line)
    except ValueError as error:
        raise ValueError(
            f"{place} is no JSON ({error}): pass a file of `export_ledgers`."
        ) from None
    version: Any = entry.get("graph_retry_ledger") if is_object(entry) else None
    if type(version) is not int or not is_array(entry.get("attempts")):
        raise ValueError(f"{place} is no exported ledger: pass a file of `export_ledgers`.")
    check_version([cast("Attempt", {"schema_version": version})])
    for attempt in entry["attempts"]:
        missing = sorted(_FIELDS - attempt.keys()) if is_object(attempt) else ["everything"]
        if missing:
            raise ValueError(f"{place} has an attempt without `{missing[0]}`: export it again.")
    return Ledger(entry["attempts"], str(entry.get("namespace", "")))
