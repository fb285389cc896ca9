"""The last resort of the `aggressive` level: some value, flagged as a guess."""

from typing import Any

from graph_retry.records import Repair

MOST_CHARACTERS = 100_000


def guess(text: str) -> tuple[Any, list[Repair]] | None:
    """Let `json_repair` make an object or array of `text`; `None` where it makes none.

    Its time grows with the square of a long string, so texts over `MOST_CHARACTERS` are left.
    """
    if len(text) > MOST_CHARACTERS:
        return None
    import json_repair  # noqa: PLC0415 - only this level pays for it

    try:
        value = json_repair.loads(text)
    except (RecursionError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None
    if not isinstance(value, (dict, list)) or not value:
        return None
    detail = "json-repair guessed the value: data may be missing or invented"
    return value, [Repair(kind="guess", position=0, grade="guessed", detail=detail)]
