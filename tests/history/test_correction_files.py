"""Files of corrections: refused in time, whole or not at all, without secrets, of any size."""

import json
import tracemalloc
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver

import graph_retry.data
from graph_retry import approve, comment, edit, reject, respond, resume
from graph_retry.data import corrections_of, export, import_corrections
from graph_retry.ledger import Ledger
from graph_retry.threads import attempts_of, every_ledger, export_ledgers
from tests.history.conftest import ALLOWED, reply
from tests.loops import Model, answer, one_call, thread

FORMATS = ("rows", "openai", "preference", "pydantic-evals", "langsmith")


WRONG = {
    "selection": ({"hows": []}, TypeError, "Did you mean `how`"),
    "how": ({"how": ["respond"]}, ValueError, r"`how\[0\]`: give "),
    "format": ({"format": "csv"}, ValueError, "`format`: give 'rows', .*not 'csv'"),
    "split": ({"split": {"train": 0.8}}, ValueError, "add up to 1"),
    "part": ({"split": {"../x": 1.0}}, ValueError, "add up to 1"),
    "csv": ({"path": "rows.csv"}, ValueError, "ends in '.csv': for the format 'rows'"),
    "document": (
        {"path": "rows.jsonl", "format": "pydantic-evals"},
        ValueError,
        "use '.json'.",
    ),
    "folder": ({"path": "no/rows.jsonl"}, FileNotFoundError, "does not exist: create it"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_before_anything_is_written(tmp_path, name):
    """An argument that cannot be meant is named, and no file appears."""
    given, error, says = WRONG[name]
    options = {**given}
    with pytest.raises(error, match=says):
        export([], tmp_path / options.pop("path", "rows.jsonl"), **options)
    assert list(tmp_path.iterdir()) == []


def test_an_export_that_fails_leaves_the_old_file(many, tmp_path):
    """A file is replaced when the new one is whole, and not before."""
    path = tmp_path / "rows.jsonl"
    path.write_text("old")

    def broken(row):
        return 1 / (row["thread"] != "9") > 0

    with pytest.raises(ZeroDivisionError):
        export(many, path, where=broken)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("rows.jsonl", "old")]


@pytest.mark.parametrize("source", ["graph", "rows", "ledgers"])
def test_a_name_that_no_call_has_replaces_no_file(mode, many, tmp_path, source):
    """The known names are listed, and the old file stays, even if another name selects rows."""
    path = tmp_path / "rows.jsonl"
    path.write_text("old")
    sources = {"rows": corrections_of(many), "ledgers": every_ledger(many)}
    with pytest.raises(ValueError, match=r"has `cuont`.* Did you mean `count`\? .* has `count`"):
        mode.call(
            *(graph_retry.data, "export", sources.get(source, many), path),
            calls=["count", "cuont"],
        )
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("rows.jsonl", "old")]


def test_calls_without_corrections_are_known(tmp_path):
    """Nobody was asked about this call, so no row is a correct export."""
    graph = one_call("node", None, Model(), InMemorySaver())
    graph.invoke({"params": {"n": 1}}, thread())
    wrote = export(graph, tmp_path / "rows.jsonl", calls=["count"])
    assert wrote.written == {str(tmp_path / "rows.jsonl"): 0}
    with pytest.raises(ValueError, match="`source` has no calls"):
        export([], tmp_path / "rows.jsonl", calls=["count"])


def test_a_file_that_is_not_text_is_told(tmp_path):
    """A database is read through its checkpointer, and not by its path."""
    path = tmp_path / "threads.sqlite"
    path.write_bytes(b"SQLite format 3\x00\xff\xfe")
    with pytest.raises(
        ValueError, match=r"threads.sqlite is not text, .* file of `export_ledgers`"
    ):
        list(corrections_of(path))
    with pytest.raises(ValueError, match=r"is not text, .* file of rows"):
        list(import_corrections(path))


OWN = {
    "{": "line 1 of .* is not JSON",
    "[]": "has no `params`: write one JSON object on each line",
    '{"graph_retry_ledger": 1, "attempts": []}': r"no `params`.* use `corrections_of\(path\)`",
    '{"params": {}}': "has no `value`",
    '{"params": {}, "value": 1, "vlaue": 2}': "unknown field `vlaue`.*`value`",
    '{"params": 3, "value": 1}': "not an object",
    '{"params": {}, "value": 1, "how": 3}': "wrong `how",
    '{"params": {}, "value": 1, "labels": {"a": 1}}': "wrong `labels.a`: .* valid string",
    '{"params": {}, "value": 1, "issues": [{}]}': "wrong `issues.0.path`: Field required",
}


@pytest.mark.parametrize("line", OWN)
def test_a_line_that_is_no_row_is_told_by_its_number(tmp_path, line):
    """Nothing of one's own is half understood."""
    (tmp_path / "own.jsonl").write_text(line)
    with pytest.raises(ValueError, match=OWN[line]):
        list(import_corrections(tmp_path / "own.jsonl"))


def test_a_file_of_a_windows_editor_is_read(tmp_path):
    """Its byte order mark is no part of the first row."""
    text = '{"params": {}, "value": 1}\r\n{"params": {}, "value": 2}\r\n'
    (tmp_path / "own.jsonl").write_text(text, encoding="utf-8-sig", newline="")
    assert [row["value"] for row in import_corrections(tmp_path / "own.jsonl")] == [1, 2]


def test_rows_of_ones_own_stand_beside_reviews(many, tmp_path):
    """Params and the right value suffice; every format takes what it can."""
    (tmp_path / "own.jsonl").write_text('{"params": {"prompt": "Who?"}, "value": {"n": 99}}\n')
    rows = chain(corrections_of(many), import_corrections(tmp_path / "own.jsonl"))
    wrote = export(rows, tmp_path / "chat.jsonl", "openai")
    assert sum(wrote.written.values()) == 11
    assert '"content": "{\\"n\\": 99}"' in (tmp_path / "chat.jsonl").read_text()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=4)
ROWS = st.lists(st.tuples(OBJECTS, VALUES, VALUES, st.text(), st.none() | OBJECTS), max_size=8)


@given(drawn=ROWS)
@settings(deadline=None)
@pytest.mark.slow
def test_whatever_a_row_holds_comes_back(drawn):
    """A file has each row once, unchanged; the parts of a split hold all of them together."""
    (plain,) = corrections_of([*padded(1)])
    rows = []
    for number, (params, value, output, message, revised) in enumerate(drawn):
        more = {"value": value, "output": output, "message": message, "revised": revised}
        rows.append({**plain, **more, "id": str(number), "thread": str(number), "params": params})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        export(rows, path)
        back = list(import_corrections(path))
        assert json.dumps(back) == json.dumps(list(corrections_of(rows)))
        wrote = export(import_corrections(path), path, split={"train": 0.5, "test": 0.5})
        parts = [row for part in wrote.written for row in import_corrections(part)]
    assert {row["id"] for row in parts} == {row["id"] for row in back}
    assert len(parts) == len(back)


def test_a_row_that_is_no_chat_stops_no_other(tmp_path):
    """Messages that nobody can send, and an empty output, are left out and counted."""
    odd = [{"messages": [3]}, {"messages": [{"role": "robot", "content": "x"}]}, {"text": "x"}]
    own = [*({"params": each, "value": 1} for each in odd), {"params": {"prompt": "a"}}]
    lines = [json.dumps({"value": "", **each}) for each in [*own, {**own[-1], "value": "b"}]]
    (tmp_path / "own.jsonl").write_text("\n".join(lines))
    wrote = export(import_corrections(tmp_path / "own.jsonl"), tmp_path / "chat.jsonl", "openai")
    assert sum(wrote.written.values()) == 1
    assert wrote.left_out == {
        "its `messages` are not chat messages: give `messages=`": 2,
        "its params have no `messages` or `prompt`: give `messages=`": 1,
        "one of its outputs is empty": 1,
    }


CANARY = "kanarienvogel"


@pytest.mark.parametrize("where", ["in the call", "in the export"])
def test_nothing_redacted_leaks_through_any_format(mode, tmp_path, where):
    """Params, outputs, errors, comments and supplied outputs: each format has them redacted."""

    def redact(text):
        return text.replace(CANARY, "***")

    def model(params):
        if params["n"] == 5:
            raise ValueError(f"no {CANARY}")
        return json.dumps({"n": CANARY, CANARY: 1})

    marked = {"name": f"read {CANARY}", "labels": {CANARY: CANARY}}
    is_in_call = where == "in the call"
    options, exported = ({"redact": redact}, {}) if is_in_call else (marked, {"redact": redact})
    graph = one_call(
        "node",
        mode,
        Model(model),
        InMemorySaver(),
        output=dict[str, int | str],
        allowed_decisions=ALLOWED,
        review="always",
        **options,
    )
    decisions = [
        respond({"n": CANARY, CANARY: 2}),
        edit(prompt=f"after {CANARY}"),
        comment(f"look at the {CANARY}"),
        reject(f"a {CANARY}"),
        approve(),
    ]
    for n, decision in enumerate([*decisions, respond({"n": CANARY})]):
        asked = {"n": n, "prompt": f"How many {CANARY}?", "more": {CANARY: [CANARY]}}
        place = thread(str(n) if is_in_call else f"{CANARY} {n}")
        mode.invoke(graph, {"params": asked}, place)
        answer(mode, graph, place, decision if is_in_call else {**decision, "by": CANARY})
    for format in FORMATS:
        export(graph.checkpointer, tmp_path / format, format, **exported)
        text = (tmp_path / format).read_text()
        assert "***" in text
        assert CANARY not in text


def padded(count):
    """Yield ledgers with a supplied output each, some kilobytes long."""
    graph = one_call("node", None, Model(reply), InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    resume(graph, thread(), respond({"n": 3}))
    (ledger,) = attempts_of(graph, thread())
    for number in range(count):
        attempt = json.loads(json.dumps(ledger.attempts[0]))
        attempt["params_patch"][0]["value"]["prompt"] = f"{number} " + "x" * 2_000
        attempt["idempotency_key"] = f"key {number}"
        yield Ledger([attempt], thread=f"thread {number}")


@pytest.mark.parametrize(
    ("count", "most"),
    [(1_000, 1_500_000), pytest.param(10_000, 6_000_000, marks=pytest.mark.long)],
)
def test_many_corrections_take_bounded_memory(tmp_path, count, most):
    """The file is several times as large as what the export holds at any time."""
    export_ledgers(padded(count), tmp_path / "ledgers.jsonl")
    tracemalloc.start()
    wrote = export(tmp_path / "ledgers.jsonl", tmp_path / "rows.jsonl")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert wrote.written == {str(tmp_path / "rows.jsonl"): count}
    assert (tmp_path / "rows.jsonl").stat().st_size > 3_000 * count
    assert peak < most
