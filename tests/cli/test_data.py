"""What the console command does with a whole database."""

import json

from graph_retry.data import import_corrections
from tests.cli.conftest import answer


def test_corrections_are_written_to_a_file(database, run, tmp_path):
    """Every thread's decisions are rows; what a format cannot hold is counted, and said why."""
    database.begin("node", "1", "2", "3")
    for thread, output in (("1", '{"n": 5}'), ("2", '{"n": 6}')):
        assert run(*answer(database, "respond", output, thread=thread))[0] == 0
    assert run(*answer(database, "edit", "n=2", thread="3"))[0] == 0
    path = tmp_path / "rows.jsonl"
    code, out, _ = run("corrections", "--db", database.place, path)
    assert (code, out) == (0, f"3 written to {path}\n")
    assert [row["how"] for row in import_corrections(path)] == ["supplied", "supplied", "edited"]

    path = tmp_path / "cases.jsonl"
    code, out, _ = run(
        *("corrections", "--db", database.place, path, "--format", "langsmith"),
        *("--how", "supplied", "--split", "train=0.5", "--split", "test=0.5"),
    )
    assert code == 0
    assert out.splitlines()[-1] == "1 left out: not selected"
    parts = [tmp_path / f"cases.{part}.jsonl" for part in ("train", "test")]
    lines = [line for part in parts for line in part.read_text().splitlines()]
    assert {json.loads(line)["outputs"]["output"]["n"] for line in lines} == {5, 6}


def test_a_wrong_export_is_told(sqlite, run, tmp_path):
    """A format, share, kind, ending or folder that does not fit is named; no file is written."""
    sqlite.begin()
    for name, options, says in (
        ("x", ("--format", "csv"), "'csv' is not one of 'rows', 'openai'"),
        ("x", ("--split", "train:0.8"), "'train:0.8' must have the form PART=SHARE"),
        ("x", ("--split", "train=most"), "`split['train']`: give a number; not 'most'"),
        ("x", ("--split", "train=0.5"), "add up to 1"),
        ("x", ("--how", "fixed"), "not 'fixed'"),
        ("x.csv", (), "use '.jsonl' or '.ndjson'"),
        ("no/x.jsonl", (), "does not exist: create it first"),
        ("x.jsonl", ("--name", "cuont"), "has `cuont`, but no call of"),
    ):
        ended, _, err = run("corrections", "--db", sqlite.place, tmp_path / name, *options)
        assert (ended, says in err) == (2, True), err
        assert not list(tmp_path.glob("x*"))


def test_recorded_calls_are_evaluated(sqlite, run, calls, tmp_path):
    """The function is imported, each call made once, and the threads stay as they were."""
    sqlite.begin("node", "1", "2", "3")
    assert run(*answer(sqlite, "respond", '{"n": 5}', thread="1"))[0] == 0
    before = calls()
    kept = tmp_path / "results.jsonl"
    code, out, _ = run(
        *("evaluate", "--db", sqlite.place, "--call", "tests.cli.served:five"),
        *("--output", "tests.cli.served:Number", "--keep", kept),
    )
    cells = [line.strip().removeprefix("figure: ").split(" | value: ") for line in out.splitlines()]
    figures = dict(cells)
    told = [figures[name] for name in ("valid at once", "reviews avoided", "agree")]
    assert (code, told) == (0, ["3", "1", "1"])
    assert (calls(), len(kept.read_text().splitlines())) == (before, 4)
    code, out, _ = run(
        *("evaluate", "--db", sqlite.place, "--call", "tests.cli.served:typed_five"),
        *("--output", "tests.cli.served:Number", "--params", "tests.cli.served:Params"),
    )
    assert (code, "valid at once | value: 3" in out) == (0, True)
    for name, told in (
        ("six", "`--call` is 'tests.cli.served:six', but the module has no 'six'"),
        ("Params", "`--call`: give a function of 1 argument, "),
    ):
        code, _, err = run("evaluate", "--db", sqlite.place, "--call", f"tests.cli.served:{name}")
        assert (code, told in err, "llm_call" in err) == (2, True, False), err
