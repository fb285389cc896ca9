"""Export people's corrections of failed and reviewed outputs as a data set.

Each row of the data set is a `Correction`. Each file format writes the row in another form. The
functions write files, and send nothing to a server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from pathlib import Path
from typing import Any, Literal, Unpack, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from typing_extensions import TypedDict

from graph_retry.data._corrections.files import Exported, writing
from graph_retry.data._corrections.record import (
    Correction,
    How,
    check_names,
    content_key,
    corrections_in,
)
from graph_retry.data._corrections.renderings import Format, ToMessages
from graph_retry.ledger import Ledger
from graph_retry.plugins import (
    Moment,
    arun_steps,
    as_repr,
    async_twin,
    checked,
    in_sync,
    is_object,
    is_sync,
    passed_as,
    run_steps,
    utc,
)
from graph_retry.threads import LedgerSource, aevery_ledger, every_ledger


class Selection(TypedDict, total=False):
    """The corrections to select.

    threads: Ids of the threads to read (default: all; see `every_ledger`).
    calls: Only calls with these names. If no call of the source has one of the names, an error is
        raised after the last row.
    labels: Only calls that have all of these `labels`.
    how: Only decisions of these kinds (default: all).
    roles: Only decisions by these roles (default: `human` and `rewind`). `rewind` is a person who
        used `rewind(decision=…)`. The others are `agent` and `system`.
    since: Only decisions at or after this time, in ISO 8601 (UTC if it has no offset).
    until: Only decisions before this time.
    where: A function `Correction -> bool` that selects rows.
    left_behind: Whether to include calls that a fork removed from their thread (default False,
        because the fork revoked the decisions about these calls).
    """

    threads: Iterable[str]
    calls: Collection[str]
    labels: Mapping[str, str]
    how: Collection[How]
    roles: Collection[str]
    since: Moment
    until: Moment
    where: Callable[[Correction], bool]
    left_behind: bool


@checked
def corrections_of(source: LedgerSource, **selection: Unpack[Selection]) -> Iterator[Correction]:
    """Yield the corrections of a source, thread by thread.

    Each decision gives one row, even if several forks of its thread or several exported files have
    the decision. Equal decisions about two calls give two rows, even if the calls are equal.

    Args:
        source: Any source of `graph_retry.threads.every_ledger`, or rows.
        **selection: See `Selection`.

    Raises:
        TypeError: If `source` is of another kind, or `selection` has an unknown name.
        ValueError: If `selection` has a value that is not allowed, or `calls` has a name that no
            call of the source has.

    Example:
        >>> from graph_retry import edit, resume
        >>> from graph_retry.testing import waiting_thread
        >>> graph, config = waiting_thread()
        >>> _ = resume(graph, config, edit(value="3"))
        >>> [(row["how"], row["output"], row["value"]) for row in corrections_of(graph)]
        [('edited', 'many', 3)]
    """
    return run_steps(_rows(source, _Sieve(selection)))


@checked
def acorrections_of(
    source: LedgerSource, **selection: Unpack[Selection]
) -> AsyncIterator[Correction]:
    """Do the same as `corrections_of`, in async code."""
    return arun_steps(_rows(source, _Sieve(selection)))


async def _rows(source: Any, sieve: _Sieve) -> AsyncGenerator[Correction]:
    """Yield the selected rows of a source."""
    source = [source] if isinstance(source, Ledger) else source
    listed = isinstance(source, Iterable) and not isinstance(source, str)
    # In a file, too, a ledger may name no thread, which a selection writes as None.
    of_file, wanted = isinstance(source, str | Path), cast("Any", sieve.threads)
    named = None if of_file or wanted is None else [name for name in wanted if name is not None]
    if listed and not isinstance(source, BaseCheckpointSaver):
        for item in cast("Iterable[Any]", source):
            for row in sieve.rows(item):
                yield row
    elif is_sync():
        for ledger in every_ledger(source, threads=named):
            for row in sieve.rows(ledger):
                yield row
    else:
        async for ledger in aevery_ledger(source, threads=named):
            for row in sieve.rows(ledger):
                yield row
    sieve.check_calls()


class _Sieve:
    """Selects rows, drops duplicates, and counts the rows that it drops.

    With `by_content`, rows with equal content are duplicates, because a data set needs each content
    once.
    """

    def __init__(self, selection: Selection, *, by_content: bool = False) -> None:
        self._by_content = by_content
        self.threads = dict.fromkeys(selection["threads"]) if "threads" in selection else None
        self._since, self._until = (_moment(name, selection) for name in ("since", "until"))
        self._selection = selection
        self._seen: set[str] = set()
        self._names: set[str] = set()
        self.left_out: Counter[str] = Counter()

    def check_calls(self) -> None:
        """After the whole source was read, refuse a name in `calls` that no call had."""
        check_names(self._selection.get("calls", ()), self._names)

    def rows(self, item: Any) -> Iterator[Correction]:
        """Yield the selected rows of an item. An item is a ledger or a row."""
        if is_object(item):
            rows: Iterable[Correction] = [cast("Correction", item)]
            self._names.add(item["call"])
        else:
            rows = self._rows_of(_ledger(item))
            self._names.add(item.name)
        for row in rows:
            if not self._is_wanted(row):
                self.left_out["not selected"] += 1
                continue
            known_as = {row["id"], *([content_key(row)] if self._by_content else ())}
            if known_as & self._seen:
                self.left_out["equal to an earlier row"] += 1
            else:
                self._seen |= known_as
                yield row

    def _rows_of(self, ledger: Ledger) -> Iterator[Correction]:
        if not ledger.current and not self._selection.get("left_behind"):
            return
        gone = sum(attempt["kept_in"] is not None for attempt in ledger.attempts)
        self.left_out.update({"the attempt's record was deleted": gone} if gone else {})
        yield from corrections_in(ledger)

    def _is_wanted(self, row: Correction) -> bool:
        wanted, at = self._selection, utc(row["at"] or "")
        return (
            row["role"] in wanted.get("roles", ("human", "rewind"))
            and (self.threads is None or row["thread"] in self.threads)
            and row["call"] in wanted.get("calls", (row["call"],))
            and row["how"] in wanted.get("how", (row["how"],))
            and wanted.get("labels", {}).items() <= row["labels"].items()
            and (self._since is None or (at is not None and self._since <= at))
            and (self._until is None or (at is not None and at < self._until))
            and self._fits(row)
        )

    def _fits(self, row: Correction) -> bool:
        with passed_as("where"):
            return bool(self._selection.get("where", bool)(row))


def _ledger(item: Any) -> Ledger:
    (ledger,) = every_ledger([item])  # It refuses anything else.
    return ledger


def _moment(name: Literal["since", "until"], selection: Selection) -> str | None:
    """Read a time of a selection, in UTC. A year or a month alone means its beginning."""
    given = selection.get(name)
    if given is None:
        return None
    known = [moment for rest in ("", "-01", "-01-01") if (moment := utc(f"{given}{rest}"))]
    if not known:
        raise ValueError(
            f"`{name}` is {as_repr(given)}: give a time in ISO 8601, such as 2030-05-01."
        )
    return known[0]


@in_sync
async def export(
    source: LedgerSource,
    path: str | Path,
    format: Format = "rows",
    *,
    split: Mapping[str, float] | None = None,
    redact: Callable[[str], str] | None = None,
    messages: ToMessages | None = None,
    **selection: Unpack[Selection],
) -> Exported:
    """Write people's corrections to a file. With `split`, write one file for each part.

    Only one thread is in memory at a time. A file appears only when it is complete.

    Args:
        source: A source that `graph_retry.threads.every_ledger` takes, or rows, such as those of
            `import_corrections`.
        path: The file to write. An existing file is replaced. If the name has an ending, it must
            fit the format: `.json` for `pydantic-evals`, and `.jsonl` or `.ndjson` for the others.
            With a `split`, the part's name is put before the ending: `data.jsonl` becomes
            `data.train.jsonl`.
        format: The file format; see `Format`. Rows that it cannot represent faithfully are left
            out, and counted. Equal rows become one example, except in the format `rows`.
        split: The share of each part, by its name, such as `{"train": 0.8, "test": 0.2}`. The
            thread's id decides the part: all rows of a thread are in the same part, in every
            export.
        redact: A function `text -> text` that removes private data. It runs after the call's own
            `redact`.
        messages: A function that builds chat messages from the params, for the formats `openai` and
            `preference`. The default uses only the param `messages` or `prompt`, or params that are
            a single text. Give a function if your call uses several params.
        **selection: See `Selection`.

    Returns:
        The number of rows in each file, and the number of omitted rows by reason.

    Raises:
        TypeError: If `source` cannot be read.
        ValueError: If an argument has a value that is not allowed, or `calls` has a name that no
            call of the source has. An existing file then stays unchanged.
        FileNotFoundError: If the folder of `path` does not exist.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export([Ledger([])], os.path.join(folder, "data.jsonl"), "openai").left_out
        Counter()
    """
    # Rows are decisions. The other formats are data sets.
    told, sieve = Exported(), _Sieve(selection, by_content=format != "rows")
    with writing(path, format, split, redact, messages, told) as write:
        async for row in _rows(source, sieve):  # If it raises, no file is replaced.
            write(row)
    told.left_out.update(sieve.left_out)
    return told


aexport = async_twin(export)
