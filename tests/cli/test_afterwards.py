"""What the console command tells after an answer: refused, failed again, waiting elsewhere."""

from tests.cli.conftest import GRAPH, answer


def test_an_answer_that_is_asked_again_names_the_question(sqlite, run, calls):
    """A command with `--review` is mended and repeated: under the old id it is told the new one."""
    (review,) = sqlite.begin()
    code, out, _ = run(*answer(sqlite, "edit", "m=2", "--review", review))
    again = out.split()[-1].rstrip(".")
    assert (code, out.splitlines()[-1]) == (5, f"It is asked again as review {again}.")
    code, _, err = run(*answer(sqlite, "edit", "n=2", "--review", review))
    assert (code, f"it is asked again as review '{again}'" in err) == (4, True)
    assert run(*answer(sqlite, "edit", "n=2", "--review", again))[0] == 0
    assert calls() == 2


def test_a_call_that_failed_again_out_of_sight_is_not_finished(sqlite, run, calls):
    """Under a plain `asyncio.gather` the thread shows the other call's question first."""
    sqlite.begin("gathered")
    code, out, _ = run(*answer(sqlite, "approve", graph="gathered"))
    assert (code, calls(), "Finished" in out) == (0, 3, False)
    assert "Attempt 2 failed, too: ValidationError" in out
    assert "Its review opens when the other reviews of this thread are answered." in out
    for _ in range(2):
        code, out, _ = run(*answer(sqlite, "edit", "n=2", graph="gathered"))
        assert (code, out.splitlines()[0]) == (0, "Finished:")
    assert run("inbox", "--db", sqlite.place)[1] == "Nothing waits.\n"


def test_a_thread_of_another_graph_is_told_to_wait_there(sqlite, run, calls):
    """To continue it with the graph that was named by mistake would run the wrong one."""
    sqlite.begin("node")
    told = "waits in node `ask`, which is not in this graph (its nodes are `gathered`)"
    _, _, err = run(*answer(sqlite, "approve", graph="gathered"))
    _, out, _ = run("show", "1", "--db", sqlite.place, "--graph", f"{GRAPH}gathered")
    for said in (err, out):
        assert (told in said, "give the graph that asked" in said) == (True, True)
        assert "continue" not in said
    assert calls() == 1


def test_an_interrupt_of_another_kind_is_told_for_what_it_is(sqlite, run, calls):
    """It is neither a thread that was cut off nor its end; `continue` comes to it again."""
    sqlite.begin("mail")
    code, out, _ = run(*answer(sqlite, "edit", "n=2", graph="mail"))
    other = 'The thread waits for another interrupt ("send_mail"), to be answered'
    assert (code, out.splitlines()[-1].startswith(other)) == (0, True)
    where = ("--db", sqlite.place, "--graph", f"{GRAPH}mail")
    assert other in run("show", "1", *where)[1]
    assert run("continue", "1", *where)[1].startswith(other)
    code, _, err = run(*answer(sqlite, "approve", graph="mail"))
    assert (code, other in err, "cut off" in err) == (4, True, False)
    assert calls() == 2


def test_a_rejection_is_told_as_the_end_of_the_run(sqlite, run):
    """The thread has steps left, but nobody cut it off, and running it on ends in the same way."""
    sqlite.begin("function")
    run(*answer(sqlite, "reject", "not an invoice", graph="function"))
    where = ("--db", sqlite.place, "--graph", f"{GRAPH}function")
    told = run("show", "1", *where)[1]
    assert "its last run ended with CallCancelled" in told
    assert "cut off" not in told
