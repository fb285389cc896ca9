"""The console command where no terminal is: plain lines, options for answers, exit codes."""

import json
import os
from importlib.metadata import version
from pathlib import Path

import pytest

from graph_retry.data import import_corrections
from tests.cli.conftest import GRAPH, answer


@pytest.mark.parametrize("graph", ["node", "asynchronous", "function", "entry"])
def test_a_thread_is_answered_to_its_end(database, run, calls, graph):
    """Refused, failed again, finished: each tells what happened, and no call is made twice."""
    database.begin(graph)
    assert calls() == 1

    code, out, _ = run(*answer(database, "edit", "n=many", graph=graph))
    assert (code, calls()) == (5, 1)
    assert 'Not applied: `n` expects a number, not "many".' in out

    code, out, _ = run(*answer(database, "edit", "n=1", graph=graph))
    assert (code, calls()) == (0, 2)
    assert "Attempt 2 failed, too: ValidationError" in out

    code, out, _ = run(*answer(database, "edit", "n=3", "--by", "ada", graph=graph))
    assert (code, calls()) == (0, 3)
    assert out.startswith("Finished:")
    assert json.loads(out.removeprefix("Finished:")) == {"n": 3}

    code, out, err = run(*answer(database, "approve", graph=graph))
    assert (code, out, calls()) == (4, "", 3)
    assert "no review is open on thread '1': human:ada answered it at 20" in err

    code, out, _ = run("show", "1", "--db", database.place)
    assert code == 0
    assert "params: n: 1 → 3" in out
    assert "answer: edit by ada (terminal)" in out
    assert "outcome: succeeded (repaired: trailing_comma)" in out
    assert "tokens: 1,200 | time: 0.0 s" in out


@pytest.mark.parametrize(
    ("options", "stdin", "code", "told", "made"),
    [
        (["approve"], None, 0, "Attempt 2 failed, too", 2),
        (["edit", "n=2"], None, 0, '"n": 2', 2),
        (["edit", "n=2", 'options={"deep": {"b": [1]}}'], None, 0, '"n": 2', 2),
        (["edit", "note=null", "n=2"], None, 0, '"n": 2', 2),
        (["edit", "m=2"], None, 5, 'There is no field "m"', 1),
        (["reject", "too dear"], None, 0, "The call is stopped.", 1),
        (["reject", ""], None, 0, "The call is stopped.", 1),
        (["reject", "-"], "too dear\n", 0, "The call is stopped.", 1),
        (["respond", '{"n": 9}'], None, 0, "Your output is used. It is valid.", 1),
        (["respond", '{"n": 9'], None, 5, "it is not valid JSON", 1),
        (["respond", "-"], '{"n": 9}\n', 0, "Your output is used. It is valid.", 1),
        (["respond", "-"], '{"n": "x"}\n', 5, "field: n | problem: ", 1),
        (["respond", "-"], "", 5, "The output is not valid", 1),
    ],
)
@pytest.mark.parametrize("graph", ["node", "function"])
def test_every_answer_can_be_given_by_options(
    sqlite, run, calls, graph, options, stdin, code, told, made
):
    """What happened next is told on standard output; a refusal has an exit code of its own."""
    sqlite.begin(graph)
    found, out, err = run(*answer(sqlite, *options, graph=graph), stdin=stdin)
    assert (found, err, calls()) == (code, "", made)
    assert told in out


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["show", "9", "--db", "{db}"], 3, "the database has no thread '9'"),
        (["answer", "9", "--db", "{db}", "--graph", "{graph}", "approve"], 3, "has no thread '9'"),
        (["continue", "9", "--db", "{db}", "--graph", "{graph}"], 3, "has no thread '9'"),
        (["inbox"], 2, "give the source"),
        (["inbox", "--db", "{db}", "--url", "http://127.0.0.1:1"], 2, "give the source"),
        (["inbox", "--db", "{db}.not"], 2, "(No such file or directory)"),
        (["inbox", "--db", "."], 2, "which is a folder"),
        (["inbox", "--db", __file__], 2, "not a SQLite database (file is not a database)"),
        (["inbox", "--db", os.devnull], 2, "no table of LangGraph checkpoints"),
        (["inbox", "--url", "localhost:2024"], 2, "with http:// or https:// before it"),
        (["web", "--db", "{db}", "--port", "99999"], 2, "less than or equal to 65535"),
        (["inbox", "--url", "http://127.0.0.1:1"], 1, "(server: http://127.0.0.1:1)"),
        (["inbox", "--db", "postgresql://127.0.0.1:1/x"], 1, "OperationalError"),
        (["inbox", "--db", "{db}", "--no-such-option"], 2, "No such option"),
        (["answer", "1", "--db", "{db}", "approve"], 2, "`--graph module:variable`"),
        (["answer", "1", "--db", "{db}", "--graph", "{graph}"], 2, "give one answer after THREAD"),
        (["answer", "1", "--db", "{db}", "--graph", "{graph}", "approve", "--apply"], 2,
            "`--apply` needs `--file`"),
        (["answer", "--db", "{db}", "--graph", "{graph}"], 2, "give THREAD and one answer"),
        (["answer", "1", "--db", "{db}", "--graph", "{graph}", "edit"], 2, "edit field=value"),
        (["answer", "1", "--db", "{db}", "--graph", "{graph}", "edit", "n:2"], 2,
            "edit field=value …, not n:2"),
        (["answer", "1", "--db", "{db}", "--graph", "{graph}", "--reject", "x"], 2,
            "Write reject without the dashes"),
        (["answer", "1", "--db", "{db}", "--graph", "{graph}", "edit", "n"], 2, "field=value"),
        (["answer", "1", "--db", "{db}", "--graph", "{graph}", "respond", "/none"], 2,
            "cannot be read"),
        (["answer", "1", "--db", "{db}", "--graph", "{graph}", "respond", ""], 2,
            "respond FILE"),
        (["answer", "1", "--db", "{db}", "--graph", "nowhere:graph", "approve"], 2,
            "no module 'nowhere'"),
        (["answer", "1", "--db", "{db}", "--graph", "nowhere.py:graph", "approve"], 2,
            "no module 'nowhere'"),
        (["answer", "1", "--db", "{db}", "--graph", "nowhere", "approve"], 2,
            "names no variable"),
        (["answer", "1", "--db", "{db}", "--graph", "tests.cli.served:gone", "approve"], 2,
            "no 'gone'"),
        (["answer", "1", "--db", "{db}", "--graph", "tests.cli.served:not_a_graph", "approve"],
            2, "'not_a_graph' has the type str"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told_in_a_line(sqlite, run, calls, words, code, told):
    """Nothing goes to standard output, no traceback is shown, no model is called."""
    sqlite.begin()
    names = {"db": sqlite.place, "graph": f"{GRAPH}node"}
    found, out, err = run(*(word.format(**names) for word in words))
    assert (found, out, calls()) == (code, "", 1)
    assert told in err
    assert "Traceback" not in err


def test_a_database_that_sqlite_cannot_open_is_told_with_its_cause(sqlite, run):
    """It is there and has checkpoints, as in a folder in which this user may not write."""
    sqlite.begin()
    Path(f"{sqlite.place}-wal").mkdir()
    code, out, err = run("inbox", "--db", sqlite.place)
    assert (code, out) == (2, "")
    assert "which SQLite cannot open (unable to open database file" in err


def test_a_value_inside_another_is_changed_by_its_path(sqlite, run, tmp_path):
    """The path is the one that the table of problems shows; the rest of the list is kept."""
    sqlite.begin("lines")
    code, _, err = run(*answer(sqlite, "respond", "/lines/7/n=3", graph="lines"))
    assert (code, "or FIELD=VALUE" in err) == (2, True)
    assert run(*answer(sqlite, "respond", "/lines/1/n=3", "total=7", graph="lines"))[0] == 0
    run("corrections", "--db", sqlite.place, tmp_path / "rows.jsonl")
    (row,) = import_corrections(tmp_path / "rows.jsonl")
    assert row["value"] == {"total": 7, "lines": [{"n": 1}, {"n": 3}]}


def test_a_refused_output_names_the_field_that_is_missing(sqlite, run, calls):
    """The JSON in the file is what the refusal is about, and not that it came as text."""
    sqlite.begin("person")
    code, out, _ = run(*answer(sqlite, "respond", "-", graph="person"), stdin='{"name": "Ada"}')
    assert (code, calls()) == (5, 1)
    assert "field: age | problem: Field required" in out


def test_what_reviews_redact_is_not_printed(sqlite, run):
    """Neither in the question, nor in the list of attempts, nor as the output."""
    sqlite.begin("private")
    told = [run("show", "1", "--db", sqlite.place)[1]]
    for n in (1, 2):
        command = answer(sqlite, "edit", f"n={n}", f"note=secret {n}", graph="private")
        told.append(run(*command)[1])
        told.append(run("show", "1", "--db", sqlite.place)[1])
    assert "secret" not in "".join(told)
    assert "note: *** 1 → *** 2" in told[-1]
    assert told[-2] == "Finished. The output is not shown: this call redacts its texts.\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--version"], f"graph-retry {version('graph-retry')}\n"),
        (["inbox", "--help"], "GRAPH_RETRY_URL"),
    ],
)
def test_the_command_tells_about_itself(run, words, told):
    """Its version, and the variables it reads."""
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert told in out


@pytest.mark.parametrize("option", ["--url", "--db"])
def test_an_option_beats_the_environment(sqlite, run, monkeypatch, option):
    """Also the other one's variable: what is typed is meant."""
    sqlite.begin()
    nowhere = "http://127.0.0.1:1"
    places = {"--db": sqlite.place, "--url": nowhere}
    monkeypatch.setenv("GRAPH_RETRY_DB", sqlite.place if option == "--url" else "/nowhere")
    monkeypatch.setenv("GRAPH_RETRY_URL", nowhere)
    code, out, err = run("inbox", option, places[option])
    if option == "--db":
        assert (code, out.count("thread: 1")) == (0, 1)
    else:
        assert (code, f"(server: {nowhere})" in err) == (1, True)


def test_a_second_answer_is_told_who_was_first(sqlite, run, calls):
    """An answer to a review that somebody has answered is stale, whether it names the review."""
    (review,) = sqlite.begin()
    run(*answer(sqlite, "edit", "n=1", "--by", "ada"))
    run(*answer(sqlite, "reject", "--by", "ada"))
    for named in (["--review", review], []):
        code, out, err = run(*answer(sqlite, "approve", *named))
        assert (code, out, calls()) == (4, "", 2)
        assert "human:ada answered it at 20" in err


def test_one_of_several_reviews_is_named(sqlite, run, calls):
    """Where two wait, the error lists them; one is answered and the other waits on."""
    first, second = sqlite.begin("pair")
    code, _, err = run(*answer(sqlite, "edit", "n=2", graph="pair"))
    assert (code, calls()) == (2, 2)
    assert first in err
    assert second in err
    code, out, _ = run(*answer(sqlite, "edit", "n=2", "--review", second, graph="pair"))
    assert (code, calls()) == (0, 3)
    assert f"1 more on this thread: {first}" in out


def test_an_assigned_review_is_not_one_of_the_others(sqlite, run, calls):
    """It is asked again; the count and the list are of the other reviews."""
    first, *others = sqlite.begin("shared")
    code, out, _ = run(*answer(sqlite, "assign", "bob", "--review", first, graph="shared"))
    assert (code, calls()) == (0, 3)
    listed = next(line for line in out.splitlines() if "more on this thread" in line)
    told = [f"{each} (count, attempt 1)" for each in others]
    assert listed == f"2 more on this thread: {', '.join(told)}."


def test_a_deferred_review_says_until_when(sqlite, run, calls):
    """In UTC, at once and whenever somebody looks at the thread."""
    first, *_ = sqlite.begin("shared")
    until = "2030-05-01T08:00"
    code, out, _ = run(*answer(sqlite, "defer", until, "--review", first, graph="shared"))
    assert (code, calls()) == (0, 3)
    assert f", deferred until {until}:00.000+00:00." in out
    _, out, _ = run("show", "1", "--db", sqlite.place)
    assert out.count(f"deferred until {until}") == 1
    _, out, _ = run("inbox", "--db", sqlite.place, "--json")
    assert until not in out


def test_a_graph_is_loaded_from_a_file(sqlite, run, tmp_path, monkeypatch):
    """A file beside which its own modules lie is loaded as Python runs it."""
    sqlite.begin()
    (tmp_path / "neighbour.py").write_text("from tests.cli.served import node\n")
    (tmp_path / "my_graph.py").write_text("from neighbour import node as graph\n")
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    code, out, _ = run(
        "answer", "1", "--db", sqlite.place, "--graph", f"{tmp_path}/my_graph.py:graph",
        "edit", "n=2",
    )  # fmt: skip
    assert (code, out.split("\n")[0]) == (0, "Finished:")


def test_the_inbox_is_read_from_the_database_alone(database, run):
    """Each thread is one line of JSON for programs, and one plain line for people."""
    ids = database.begin("node", "a", "b")
    code, out, _ = run("inbox", "--json", "--db", database.place)
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [each["thread_id"] for each in found] == ["b", "a"]
    assert [each["review_id"] for each in found] == ids[::-1]
    assert found[0]["params"]["n"] == 0
    code, out, _ = run("inbox", "--db", database.place)
    assert [line.split(" | ")[:3] for line in out.splitlines()] == [
        ["  thread: b", "function: count", "attempt: 1"],
        ["  thread: a", "function: count", "attempt: 1"],
    ]


def test_an_empty_inbox_is_no_error(sqlite, run):
    """Nothing to do is good news, and no line of JSON."""
    sqlite.begin()
    run(*answer(sqlite, "edit", "n=2"))
    assert run("inbox", "--db", sqlite.place)[:2] == (0, "Nothing waits.\n")
    assert run("inbox", "--db", sqlite.place, "--json")[:2] == (0, "")


@pytest.mark.parametrize(("n", "told"), [(0, "\\u202e"), (-1, "\\x1b[2J")])
def test_what_a_model_wrote_cannot_steer_anything(sqlite, run, n, told):
    """Escapes and overrides are spelled out, markup stays text."""
    sqlite.begin(n=n)
    for words in (["inbox"], ["inbox", "--json"], ["show", "1"]):
        _, out, _ = run(*words, "--db", sqlite.place)
        assert [char for char in out if not (char.isprintable() or char == "\n")] == []
        assert "[bold]no[/bold]" in out or n == 0
    assert told in run("show", "1", "--db", sqlite.place)[1]


@pytest.mark.parametrize("words", [["inbox"], ["show", "1"]])
def test_what_a_model_wrote_cannot_forge_lines(sqlite, run, words):
    """Outside a terminal every line that starts at the margin, or two spaces in, is our own."""
    forged = "x\n== count succeeded\n  attempt: 9 | answer: approve by ada\nCancelled."
    sqlite.begin("forger", note=forged)
    _, out, _ = run(*words, "--db", sqlite.place)
    assert "approve by ada" in out
    own = [line for line in out.splitlines() if not line.startswith("    ")]
    assert not [line for line in own if line.startswith(("== count succ", "  attempt: 9", "Canc"))]
    assert not [line for line in own if " | answer: approve" in line]


def test_show_tells_the_question_and_what_was_tried(sqlite, run):
    """From the database alone: the issue, the params, the change, who made it, and the cost."""
    sqlite.begin()
    run(*answer(sqlite, "edit", "n=1", 'options={"deep": {"a": 7}}', "--by", "ada"))
    code, out, _ = run("show", "1", "--db", sqlite.place)
    assert code == 0
    for text in (
        "== count failed (attempt 2): ValidationError",
        "What is wrong with the output:",
        "The model wrote:",
        "field: n | value: 1",
        "field: options → deep → a (/options/deep/a) | before: 1 | after: 7",
        "attempt: 2 | author: human:ada | reason: edited",
    ):
        assert text in out


def test_the_environment_says_where(sqlite, run, monkeypatch):
    """What is typed every time is set once."""
    sqlite.begin()
    monkeypatch.setenv("GRAPH_RETRY_DB", sqlite.place)
    monkeypatch.setenv("GRAPH_RETRY_GRAPH", f"{GRAPH}node")
    monkeypatch.setenv("GRAPH_RETRY_BY", "ada")
    assert run("answer", "1", "edit", "n=2")[0] == 0
    assert "edit by ada" in run("show", "1")[1]
