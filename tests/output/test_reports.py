"""Texts of 238 public reports, with the value that was decided by hand before they were read.

A row of `reports.jsonl` has the report, the text, the JSON Schema that was wanted (none: any JSON),
and the value. A row without a value has to be refused, and one that `may_ask` may be.
"""

import json
from pathlib import Path

import pytest

from graph_retry import AttemptsExhausted, Completion, retry_llm_call
from graph_retry.output import parse_output

ROWS = [*map(json.loads, (Path(__file__).parent / "reports.jsonl").read_text("utf-8").splitlines())]
ASKED = object()
REFUSED_THOUGH_PLAIN = {"baml#1755", "jsonrepair#116 comma"}


def outcome(row):
    """Read the text of a row; `ASKED` if it is refused."""
    complete = row.get("finished")
    if "wanted" not in row:
        read = parse_output(row["text"], complete=complete)
        return read.value if read.ok else ASKED
    said = Completion(row["text"], finish_reason="stop") if complete else row["text"]
    try:
        return retry_llm_call(lambda _: said, {}, output=row["wanted"], review=False)
    except AttemptsExhausted:
        return ASKED


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["report"])
def test_no_report_is_read_wrongly_and_what_is_plain_is_read(row):
    """A value is the right one; a question is asked only where the text leaves a doubt."""
    got = outcome(row)
    if got is ASKED:
        assert "value" not in row or row.get("may_ask") or row["report"] in REFUSED_THOUGH_PLAIN
    else:
        assert got == row.get("value", ASKED)


def test_other_ends_of_lines_change_nothing():
    """Texts with the ends of lines of Windows are read as the same values, or refused as well."""
    rows = [row for row in ROWS if "\n" in row["text"] and "\r" not in row["text"]]
    for row in rows:
        got = outcome({**row, "text": row["text"].replace("\n", "\r\n")})
        plain = got if got is ASKED else json.loads(json.dumps(got).replace("\\r\\n", "\\n"))
        assert plain == outcome(row), row["report"]
    assert len(rows) > 80
