"""Many reviews at once: rows that differ, answers from a file, and waiting for new ones."""

import json
import sys

import pytest

from graph_retry.desk.cli.answering.bulk import answer_from
from graph_retry.desk.cli.exits import Stop
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.source import open_source
from graph_retry.desk.cli.watch import watch
from tests.cli.conftest import GRAPH


def where(database, graph="node"):
    """Name the database and its graph."""
    return ("--db", database.place, "--graph", GRAPH + graph)


def test_reviews_of_one_fan_out_differ(sqlite, run):
    """Each row has the id and the params in which it differs; one that is alone has neither."""
    ids = sqlite.begin("fan")
    rows = run("inbox", *where(sqlite, "fan"))[1].splitlines()
    assert len(rows) == 3
    for review, note in zip(ids, "abc", strict=True):
        (row,) = [row for row in rows if f"params: note={note} " in row]
        assert f"review: {review[:8]}" in row
    sqlite.begin("node", "alone")
    rows = run("inbox", "--db", sqlite.place)[1].splitlines()
    (alone,) = [row for row in rows if "thread: alone" in row]
    assert ("review:" in alone, "params:" in alone) == (False, False)


def test_a_review_is_named_by_the_beginning_of_its_id(sqlite, run, calls):
    """The id that a row shows is enough, and only this review is answered."""
    ids = sqlite.begin("fan")
    words = ("answer", "1", *where(sqlite, "fan"), "edit", "n=2", "--review", ids[1][:8])
    assert run(*words)[0] == 0
    assert calls() == 4
    rest = run("inbox", *where(sqlite, "fan"), "--json")[1].splitlines()
    assert {json.loads(line)["params"]["note"] for line in rest} == {"a", "c"}


def test_a_thread_is_shown_by_the_beginning_of_its_id(sqlite, run, calls):
    """If one waiting thread begins so; several are named, and an answer takes a whole id."""
    sqlite.begin("node", "invoice-7", "invoice-8", "order-1")
    assert "thread order-1," in run("show", "ord", *where(sqlite))[1]
    code, _, err = run("show", "inv", *where(sqlite))
    assert (code, "such as invoice-7, invoice-8." in err) == (3, True)
    code, _, err = run("answer", "ord", *where(sqlite), "edit", "n=2")
    assert (code, "such as order-1." in err, calls()) == (3, True, 3)


def test_a_whole_id_is_never_taken_for_a_beginning(sqlite, run, calls):
    """The thread that is named has ended; the one whose id goes on after it is left alone."""
    sqlite.begin("node", "1", "12")
    assert run("answer", "1", *where(sqlite), "edit", "n=2")[0] == 0
    code, _, err = run("answer", "1", *where(sqlite), "edit", "n=2")
    assert (code, calls(), "no review is open on thread '1'" in err) == (4, 3, True)


def lines_of(run, database, graph, decide):
    """Take the inbox as JSON Lines, and put a decision into each."""
    listed = [
        json.loads(line)
        for line in run("inbox", *where(database, graph), "--json")[1].split("\n")
        if line
    ]
    return [json.dumps({**each, "decision": decide(each)}) for each in listed]


def test_a_file_of_answers_is_shown_and_then_applied(database, run, calls, tmp_path):
    """The dry run calls nothing. One run answers a thread; a bad line stops no other thread."""
    database.begin("node", "a", "b", "c")
    fields = {"a": {"n": 2}, "b": {"m": 2}, "c": {"n": 3}}
    decide = lambda each: {"type": "edit", "params": fields[each["thread_id"]]}  # noqa: E731
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(lines_of(run, database, "node", decide)) + "\n\n")
    code, out, _ = run("answer", *where(database), "--file", file)
    assert (code, calls()) == (5, 3)
    assert out.count("decision: edit | result: open") == 2
    assert 'result: may be refused: /m: There is no field "m"' in out
    assert "Nothing was sent yet. With `--apply`, 3 reviews are answered." in out

    code, out, _ = run("answer", *where(database), "--file", file, "--apply", "--by", "ada")
    assert (code, calls()) == (5, 5)
    assert out.count("result: answered") == 2
    assert 'result: asked again: There is no field "m"' in out
    assert "edit by ada" in run("show", "a", *where(database))[1]

    code, out, _ = run("answer", *where(database), "--file", file, "--apply")
    assert (code, calls(), out.count("result: not open: ")) == (4, 5, 3)


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        ({"type": "edit", "params": {"n": "many"}}, '/n: `n` expects a number, not "many"'),
        ({"type": "edit", "params": {"n": "3"}}, ""),
        ({"type": "edit", "params": {"n": 2}, "attempt": 7}, "the whole value: "),
        ({"type": "respond", "output": {"a": "x"}}, "/a: "),
        ({"type": "respond", "output": '{"a": 1}'}, ""),
        ({"type": "reject", "message": "too dear"}, ""),
    ],
)
def test_a_dry_run_judges_by_what_the_question_says(sqlite, run, calls, tmp_path, decision, told):
    """Params, an output and an attempt are compared with the question's schemas; nothing runs."""
    sqlite.begin("node", "a")
    file = tmp_path / "answers.jsonl"
    file.write_text(lines_of(run, sqlite, "node", lambda _: decision)[0])
    code, out, _ = run("answer", *where(sqlite), "--file", file)
    result = f"result: may be refused: {told}" if told else "result: open"
    assert (code, calls()) == (5 if told else 0, 1)
    assert result in out


def test_the_answers_of_a_fan_out_are_applied_in_one_run(sqlite, run, calls, tmp_path):
    """Three questions of a thread take three calls; what is not offered here is told before."""
    sqlite.begin("fan")
    decide = lambda each: {"type": "edit", "params": {"n": 2}}  # noqa: E731
    lines = lines_of(run, sqlite, "fan", decide)
    file = tmp_path / "answers.jsonl"
    file.write_text(lines[0], encoding="utf-8-sig")  # as editors on Windows write it
    assert run("answer", *where(sqlite, "fan"), "--file", file)[0] == 0
    file.write_text(lines_of(run, sqlite, "fan", lambda _: {"type": "accept"})[0])
    code, out, _ = run("answer", *where(sqlite, "fan"), "--file", file)
    assert (code, "result: not offered: choose from approve, edit" in out) == (4, True)
    file.write_text("\n".join(lines))
    code, out, _ = run("answer", *where(sqlite, "fan"), "--file", file, "--apply")
    assert (code, calls(), out.count("result: answered")) == (0, 6, 3)


def test_each_answer_of_a_thread_has_its_own_result(sqlite, run, calls, tmp_path):
    """One is applied and two are asked again, each line with its own reason."""
    sqlite.begin("fan")
    wrong = {"a": {"n": 2}, "b": {"m": 2}, "c": {"n": "many"}}
    decide = lambda each: {"type": "edit", "params": wrong[each["params"]["note"]]}  # noqa: E731
    lines = lines_of(run, sqlite, "fan", decide)
    file = tmp_path / "answers.jsonl"
    file.write_text("\n".join(sorted(lines, key=lambda line: json.loads(line)["params"]["note"])))
    code, out, _ = run("answer", *where(sqlite, "fan"), "--file", file, "--apply")
    results = [row.partition("result: ")[2] for row in out.splitlines() if "result: " in row]
    assert (code, calls(), results[0]) == (5, 4, "answered")
    assert results[1].startswith('asked again: There is no field "m"')
    assert results[2].startswith("asked again: `n` expects")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "line 1 of"),
        ("[]", "`thread_id` is missing.* one JSON object on each line"),
        ('{"thread_id": "1", "review_id": "r"}', "`decision` is missing"),
        ('{"thread_id": "1", "review_id": "r", "decision": "maybe"}', '"maybe" is neither'),
        ('{"thread_id": "1", "review_id": "r", "decision": "approve"}', "needs a `type`: approve"),
        ('{"thread_id": "1", "review_id": "r", "decision": {"type": "frobnicate"}}',
            'type "frobnicate" is not a decision. Answer '),
        ('{"thread_id": "1", "review_id": "r", "decision": {"type": "assign"}}',
            "To assign, send"),
        ('{"thread_id": "1", "review_id": "r", "decision": {"type": "approve"}}\n' * 2,
            "line 2 of .* line 1 answers the same review"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_applies_nothing(sqlite, calls, tmp_path, text, told):
    """It is named by its number, before any thread is touched."""
    sqlite.begin()
    file = tmp_path / "answers.jsonl"
    file.write_text(text)
    place = open_source(None, sqlite.place, f"{GRAPH}node")
    with place as source, pytest.raises(Stop, match=told):
        answer_from(source, Screen(), file, None, apply=True)
    assert calls() == 1


class Enough(Exception):
    """Ends a watch."""


def watched(database, doings, **options):
    """Watch while things happen between two looks; returns what was warned of."""
    warned, steps = [], iter(doings)

    def pause(_):
        step = next(steps, None)
        if step is None:
            raise Enough
        step()

    with open_source(None, database.place, None) as source:
        options = {"bell": False, "command": None, **options}
        with pytest.raises(Enough):
            watch(source, Screen(), {}, every=1, warn=warned.append, pause=pause, **options)
    return warned


def test_each_review_is_told_once(sqlite, capsys, tmp_path):
    """The command gets its JSON on standard input, once; the bell rings once for all new ones."""
    sqlite.begin("node", "a", "b")
    file = tmp_path / "heard"
    listen = f"import sys; open({str(file)!r}, 'a').write(sys.stdin.read())"
    more = lambda: sqlite.begin("node", "c")  # noqa: E731
    command = f'{sys.executable} -c "{listen}"'
    assert watched(sqlite, [lambda: None, more], bell=True, command=command) == []
    heard = [json.loads(line)["thread_id"] for line in file.read_text().splitlines()]
    assert (sorted(heard[:2]), heard[2:]) == (["a", "b"], ["c"])
    told = capsys.readouterr()
    assert (told.out.count("thread: a "), told.out.count("thread: c "), told.err) == (1, 1, "\a\a")


def test_a_command_that_fails_is_told(sqlite):
    """The watch goes on; a command that cannot be run ends it."""
    sqlite.begin()
    (told,) = watched(sqlite, [], command="false")
    assert told == "false ended with exit code 1."
    with pytest.raises(Stop, match="`--run` is '/none'"):
        watched(sqlite, [], command="/none")
