"""The real command in a real pseudo-terminal, with somebody who types."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.terminal import STRICT, Terminal

ROOT = Path(__file__).parent.parent.parent
COMMAND = [*STRICT, "-c", "from graph_retry.desk.cli import main; main()"]
EDITOR = """
import json, pathlib, sys
file = pathlib.Path(sys.argv[1])
params = json.loads(file.read_text())
file.write_text(json.dumps({**params, "n": 1, "note": "from the editor"}))
"""


def environment(**more):
    """Return the environment of a person's shell."""
    mine = {"PYTHONPATH": str(ROOT), "TERM": "xterm", **more}
    looks = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")
    return {**{name: value for name, value in os.environ.items() if name not in looks}, **mine}


@pytest.fixture
def terminal(tmp_path):
    """Start the command in a terminal on a database of the test's."""

    def start(database, *words, graph="node", width=100, **more):
        places = {
            "GRAPH_RETRY_DB": database.place,
            "GRAPH_RETRY_GRAPH": f"tests.cli.served:{graph}",
        }
        return Terminal([*COMMAND, *words], tmp_path, environment(**places, **more), width)

    return start


@pytest.mark.slow
def test_a_person_answers_step_by_step(database, terminal, calls, tmp_path):
    """Mistyped, refused, edited in an editor, changed in the line: asked until it is finished."""
    (tmp_path / "editor.py").write_text(EDITOR)
    database.begin()
    person = terminal(database, "answer", "1", EDITOR=f"{sys.executable} {tmp_path}/editor.py")
    shown = person.wait_for("answer> ")
    assert "count failed (attempt 1): ValidationError" in shown
    assert "What is wrong with the output:" in shown
    assert "change params in $EDITOR" in shown

    person.type("whatever\n")
    person.wait_for(
        "Not understood: 'whatever' is not a decision: choose from approve, edit, reject, respond,"
    )
    person.wait_for("answer> ")
    person.type("edit n=many\n")
    person.wait_for('Not applied: `n` expects a number, not "many".')
    assert calls() == 1
    assert "attempt 1" not in person.wait_for("answer> ")

    person.type("edit\n")
    person.wait_for("Attempt 2 failed, too")
    shown = person.wait_for("answer> ")
    assert re.search(r"note +keep +from the editor", shown)
    assert calls() == 2

    person.type("edit n=5\n")
    person.wait_for("Finished:")
    person.wait_for('"n": 5')
    assert (person.close(), calls()) == (0, 3)


WRONG = EDITOR.replace('"n": 1', '"n": "many"') + "print('opened with', params)"


@pytest.mark.slow
def test_a_refused_edit_is_opened_again(sqlite, terminal, calls, tmp_path):
    """What somebody wrote in their editor is not lost because a field of it was wrong."""
    (tmp_path / "editor.py").write_text(WRONG)
    sqlite.begin()
    person = terminal(sqlite, "answer", "1", EDITOR=f"{sys.executable} {tmp_path}/editor.py")
    for opened in ("'note': 'keep'", "'n': 'many', 'note': 'from the editor'"):
        person.wait_for("answer> ")
        person.type("edit\n")
        person.wait_for(opened)
        person.wait_for('Not applied: `n` expects a number, not "many".')
        person.wait_for("Type edit to continue with your text.")
    person.wait_for("answer> ")
    person.type("\x03")
    assert (person.close(), calls()) == (130, 1)


@pytest.mark.parametrize(
    ("words", "whole"),
    [
        (["inbox"], ["thread", "function", "attempt", "count", "ValidationError:"]),
        (["show", "1"], ["attempt", "author", "caller", "(first)", "outcome", "ValidationError:"]),
    ],
)
@pytest.mark.slow
def test_a_narrow_terminal_breaks_no_words(sqlite, terminal, words, whole):
    """In 60 columns a table that does not fit is written as a list."""
    sqlite.begin()
    person = terminal(sqlite, *words, width=60)
    assert person.close() == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", person.seen)
    assert set(whole) <= set(plain.split())
    assert max(len(line.rstrip("\r")) for line in plain.split("\n")) <= 60


@pytest.mark.parametrize("graph", ["function", "asynchronous", "entry"])
@pytest.mark.slow
def test_every_kind_of_graph_is_answered(sqlite, terminal, calls, graph):
    """The function form, async nodes and entrypoints run on from the terminal."""
    sqlite.begin(graph)
    person = terminal(sqlite, "answer", "1", graph=graph)
    person.wait_for("answer> ")
    person.type("edit n=3\n")
    person.wait_for('"n": 3')
    assert (person.close(), calls()) == (0, 2)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("reject not today", "The call is stopped."),
        ('respond {"n": 4}', "Your output is used. It is valid."),
    ],
)
@pytest.mark.slow
def test_a_person_ends_it_without_a_call(sqlite, terminal, calls, line, told):
    """A rejection and a supplied output ask no model."""
    sqlite.begin()
    person = terminal(sqlite, "answer", "1")
    person.wait_for("answer> ")
    person.type(f"{line}\n")
    person.wait_for(told)
    assert (person.close(), calls()) == (0, 1)


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
@pytest.mark.slow
def test_leaving_is_no_answer(sqlite, terminal, calls, run, key):
    """Who leaves at the question finds it there again."""
    (review,) = sqlite.begin()
    person = terminal(sqlite, "answer", "1")
    person.wait_for("answer> ")
    person.type(key)
    person.wait_for("open reviews stay open")
    assert (person.close(), calls()) == (130, 1)
    assert json.loads(run("inbox", "--json", "--db", sqlite.place)[1])["review_id"] == review


@pytest.mark.parametrize(
    ("graph", "told"), [("held", '"n": 2'), ("held_private", "The output is not shown")]
)
@pytest.mark.slow
def test_who_leaves_during_a_run_is_told_that_the_answer_is_saved(
    sqlite, terminal, calls, run, tmp_path, monkeypatch, graph, told
):
    """The thread is continued without another answer, and its result is printed."""
    sqlite.begin(graph)
    hold = tmp_path / "hold"
    os.mkfifo(hold)
    words = ("answer", "1", "edit", "n=2", "--by", "ada")
    person = terminal(sqlite, *words, graph=graph, HOLD=str(hold))
    with hold.open("w"):  # Opened as soon as the call reads it.
        person.type("\x03")
        assert "stay open" not in person.wait_for("Thread '1' has its answer (human:ada answered")
        person.wait_for("`graph-retry continue 1` continues from there.")
    assert person.close() == 130
    hold.unlink()
    hold.touch()
    monkeypatch.setenv("HOLD", str(hold))
    where = ("--db", sqlite.place, "--graph", f"tests.cli.served:{graph}")
    code, out, _ = run("continue", "1", *where)
    assert (code, told in out, '"n": 2' in out, calls()) == (0, True, graph == "held", 3)


@pytest.mark.slow
def test_somebody_else_was_faster(sqlite, terminal, calls, run):
    """Who thinks too long is told who answered; nothing is called for them."""
    sqlite.begin()
    person = terminal(sqlite, "answer", "1")
    person.wait_for("answer> ")
    graph = ("--graph", "tests.cli.served:node")
    assert run("answer", "1", "--db", sqlite.place, *graph, "edit", "n=2", "--by", "ada")[0] == 0
    person.type("approve\n")
    person.wait_for("ada")
    assert (person.close(), calls()) == (4, 2)


@pytest.mark.slow
def test_several_reviews_are_asked_one_after_the_other(sqlite, terminal, calls):
    """A thread that waits for two answers is worked off in one sitting."""
    sqlite.begin("pair")
    person = terminal(sqlite, "answer", "1", graph="pair")
    for waiting in ("1 more on this thread", '"n": 2'):
        person.wait_for("answer> ")
        person.type("edit n=2\n")
        person.wait_for(waiting)
    assert (person.close(), calls()) == (0, 4)


@pytest.mark.slow
def test_the_inbox_is_walked(sqlite, terminal, calls, run):
    """`answer` alone asks about every thread; `skip` leaves one open, and `?` lists the words."""
    sqlite.begin("node", "a", "b", "c")
    person = terminal(sqlite, "answer")
    assert "thread c," in person.wait_for("answer> ")
    for word in ("?", "help edit"):
        person.type(f"{word}\n")
        assert "leave this one open" in person.wait_for("answer> ")
    person.type("e n=2\n")
    person.wait_for('"n": 2')
    shown = person.wait_for("answer> ")
    assert "thread b," in shown
    assert ("skip; ? explains them" in shown, "leave this one open" in shown) == (True, False)
    person.type("skip\n")
    assert "thread a," in person.wait_for("answer> ")
    person.type("rej no\n")
    person.wait_for("1 thread stays open.")
    assert (person.close(), calls()) == (0, 4)
    assert json.loads(run("inbox", "--json", "--db", sqlite.place)[1])["thread_id"] == "b"


@pytest.mark.slow
def test_a_person_names_a_thread_by_its_beginning(sqlite, terminal, calls):
    """Whoever sees which thread it is need not type all of its id."""
    sqlite.begin("node", "invoice-7")
    person = terminal(sqlite, "answer", "inv")
    assert "thread invoice-7," in person.wait_for("answer> ")
    person.type("e n=2\n")
    person.wait_for('"n": 2')
    assert (person.close(), calls()) == (0, 2)


@pytest.mark.slow
def test_a_bar_shows_how_far_many_answers_are(sqlite, terminal, tmp_path, run):
    """In a terminal only: a file of answers counts its threads."""
    sqlite.begin("node", "a", "b")
    lines = run("inbox", "--json", "--db", sqlite.place)[1].splitlines()
    decided = [{**json.loads(line), "decision": {"type": "reject"}} for line in lines]
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, decided)))
    person = terminal(sqlite, "answer", "--file", "answers.jsonl", "--apply")
    person.wait_for("2/2")
    assert person.close() == 0


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error_to_tell(sqlite):
    """`graph-retry inbox | true` ends without a word."""
    sqlite.begin()
    command = [*COMMAND, "inbox", "--db", sqlite.place]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment()}
    with subprocess.Popen(command, **pipes) as listing:
        listing.stdout.close()
        assert listing.stderr.read() == b""
    assert listing.returncode == 1


@pytest.mark.parametrize(
    ("words", "closed", "code", "told"),
    [
        (["answer", "1", "--graph", "tests.cli.served:node"], "<&-", 2, "give one answer"),
        (["inbox"], ">&-", 0, ""),
        (["inbox"], "2>&-", 0, ""),
    ],
)
@pytest.mark.slow
def test_a_closed_descriptor_is_like_the_null_device(sqlite, words, closed, code, told):
    """Nobody can be asked there, and what is written there is lost; the rest works."""
    sqlite.begin()
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, *words, "--db", sqlite.place]
    given = {"capture_output": True, "text": True, "env": environment()}
    done = subprocess.run(shell, check=False, **given)
    assert (done.returncode, told in done.stderr) == (code, True), done.stderr
    assert ("thread: 1" in done.stdout) == (closed == "2>&-")


@pytest.mark.parametrize("words", [["inbox"], ["show", "1"], ["answer", "1"]])
@pytest.mark.slow
def test_what_a_model_wrote_cannot_take_over_the_terminal(sqlite, terminal, words):
    """Nothing but colours reaches the terminal; markup and escapes appear as text."""
    sqlite.begin(n=-1)
    person = terminal(sqlite, *words)
    if words[0] == "answer":
        person.wait_for("answer> ")
        person.type("\x03")
    person.close()
    assert re.search(r"\x1b\[(\d+;)*\d*m", person.seen), "colours are on"
    plain = re.sub(r"\x1b\[(\d+;)*\d*m", "", person.seen).replace("\r\n", "\n")
    assert [char for char in plain if not (char.isprintable() or char == "\n")] == []
    assert "[bold]no[/bold] \\x1b[2J" in plain


@pytest.mark.slow
def test_no_color_is_heard(sqlite, terminal):
    """With NO_COLOR set there are tables and no colours."""
    sqlite.begin()
    person = terminal(sqlite, "inbox", NO_COLOR="1")
    person.wait_for("ValidationError")
    assert person.close() == 0
    assert not re.search(r"\x1b\[3\d", person.seen)


@pytest.mark.slow
def test_a_dumb_terminal_gets_plain_lines(sqlite, terminal):
    """Where nothing can be drawn, nothing is."""
    sqlite.begin()
    person = terminal(sqlite, "inbox", TERM="dumb")
    person.wait_for("thread: 1 | function: count")
    assert person.close() == 0
    assert "\x1b" not in person.seen


def test_the_command_is_installed_and_says_what_it_needs():
    """The entry point is there; without the extra one line tells how to get it."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"graph-retry": "graph_retry.desk.cli:main"}
    block = "import sys; sys.modules['typer'] = None; from graph_retry.desk.cli import main; main()"
    command = [sys.executable, "-c", block]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "graph-retry: the command needs the extra `cli`: install graph-retry[cli]"
    ]
