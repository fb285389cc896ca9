"""Write corrections to files and read them back.

An export writes all files completely or none. It can be split by thread.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from graph_retry.data._corrections.record import Correction, redacted_row
from graph_retry.data._corrections.renderings import FORMATS, Format, LeftOut, ToMessages
from graph_retry.plugins import (
    as_repr,
    checked,
    did_you_mean,
    digest,
    drawn,
    is_number,
    is_object,
    json_lines,
    replacing,
)

_NEEDED = ("params", "value")
_MAY_LACK = ("split", "added")


@dataclass(frozen=True)
class Exported:
    """The result of an export: rows by file (`written`), omitted rows by reason (`left_out`)."""

    written: dict[str, int] = field(default_factory=dict[str, int])
    left_out: Counter[str] = field(default_factory=Counter[str])


@contextmanager
def writing(
    path: str | Path,
    format: Format,
    split: Mapping[str, float] | None,
    redact: Callable[[str], str] | None,
    messages: ToMessages | None,
    told: Exported,
) -> Generator[Callable[[Correction], None], None, None]:
    """Yield a function that writes a row. Count the rows in `told`.

    The files appear only when the block has ended without an error. A row that the format cannot
    represent is left out.
    """
    shares, kind = _checked_split(split), FORMATS[format]
    whole = _checked_path(Path(path), format)
    paths = {part: whole.with_name(f"{whole.stem}.{part}{whole.suffix}") for part in shares or ()}
    paths = paths or {"": whole}
    told.written.update(dict.fromkeys(map(str, paths.values()), 0))
    with ExitStack() as stack:
        files = {part: stack.enter_context(replacing(place)) for part, place in paths.items()}
        for file in files.values():
            file.write(kind.head)

        def write(row: Correction) -> None:
            part = _part_of(row["thread"] or row["id"], shares)  # A thread is in one part.
            named = cast("Correction", {**row, "split": part} if part else row)
            try:
                made = kind.render(redacted_row(named, redact), messages)
            except LeftOut as why:
                told.left_out[str(why)] += 1
                return
            is_first = not told.written[str(paths[part])]
            files[part].write(("" if is_first else kind.between) + json.dumps(made))
            told.written[str(paths[part])] += 1

        yield write
        for part, file in files.items():
            file.write(kind.end if told.written[str(paths[part])] or kind.head else "")


def _checked_path(path: Path, format: Format) -> Path:
    """Refuse a file name with the ending of another format, and a missing folder."""
    endings = FORMATS[format].endings
    if path.suffix and path.suffix not in endings:
        raise ValueError(
            f"`path` ends in {as_repr(path.suffix)}: for the format {as_repr(format)}, use "
            f"{' or '.join(map(repr, endings))}."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"`path` is {as_repr(str(path))}, but the folder {path.parent} does not exist: "
            "create it first."
        )
    return path


def _checked_split(split: Mapping[str, float] | None) -> Mapping[str, float] | None:
    shares = [] if split is None else list(split.values())
    if split is not None and not (
        all(is_number(cast("Any", share)) and share > 0 for share in shares)
        and abs(sum(shares) - 1) < 1e-9
        and all(part.isidentifier() for part in split)
    ):
        raise ValueError(
            f"`split` is {as_repr(dict(split), 200)}: give shares that add up to 1, by the "
            "name of the part, such as {'train': 0.8, 'test': 0.2}."
        )
    return split


def _part_of(thread: str, split: Mapping[str, float] | None) -> str:
    """Choose the part of a thread by a hash of its id: the same part in every export."""
    if split is None:
        return ""
    at, reached = drawn(thread), 0.0
    for part, share in split.items():
        reached += share
        if at < reached:
            return part
    return list(split)[-1]


@checked
def import_corrections(path: str | Path) -> Iterator[Correction]:
    """Read rows from a file that `export` wrote in the format `rows`, or that you wrote yourself.

    A row of your own is a JSON object with `params` and the correct `value`. Every other field of
    `Correction` is optional. By default, such a row gets `how="own"` and `vouched=True`.

    Raises:
        ValueError: If a line is not a row. The message names the line's number.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "own.jsonl")
        ...     _ = path.write_text('{"params": {"prompt": "How old?"}, "value": {"age": 36}}')
        ...     (row,) = import_corrections(path)
        >>> row["how"], row["vouched"], row["value_from"]
        ('own', True, 'person')
    """
    for place, given in json_lines(path, "rows"):
        yield _imported(given, place)


def _imported(given: Any, place: str) -> Correction:
    missing = [name for name in _NEEDED if not is_object(given) or name not in given]
    if missing:
        raise ValueError(
            f"{place} has no `{missing[0]}`: write one JSON object on each line, with at least "
            "`params` and `value`. For a file of `export_ledgers`, use `corrections_of(path)`."
        )
    if not is_object(given["params"]) and given["params"] is not None:
        raise ValueError(
            f"{place} has `params` that are not an object: write a single value as {{'value': …}}."
        )
    blank = {name: None for name in Correction.__annotations__ if name not in _MAY_LACK}
    own: dict[str, Any] = blank | dict.fromkeys(("thread", "call", "node", "outcome"), "")
    own |= {"how": "own", "role": "human", "attempt": 1, "value_from": "person", "vouched": True}
    own |= {"labels": {}, "issues": [], "pair": False, "provenance": {}}
    own |= {"redacted": False, "is_message": False}
    own |= {"id": digest(given["params"], given["value"]), **given}
    try:
        _row_type().validate_python(own, strict=True)
    except ValidationError as error:
        wrong = error.errors()[0]
        name = ".".join(map(str, wrong["loc"]))
        if wrong["type"] == "extra_forbidden":
            meant = did_you_mean(name, tuple(Correction.__annotations__))
            raise ValueError(f"{place} has the unknown field `{name}`.{meant}") from None
        raise ValueError(f"{place} has a wrong `{name}`: {wrong['msg']}.") from None
    return cast("Correction", own)


@cache
def _row_type() -> TypeAdapter[Correction]:
    return TypeAdapter(with_config(ConfigDict(extra="forbid"))(Correction))
