"""Recorded calls made again, with other models: what a person would still be asked."""

import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

import graph_retry.data
from graph_retry import Completion, approve, edit, respond, resume
from graph_retry.data import PastCorrections, corrections_of, evaluate, plot_evaluations
from graph_retry.hooks import Budget, SharedBudget
from graph_retry.threads import attempts_of, every_ledger, export_ledgers
from tests.loops import Model, one_call, thread

USAGE = {"input_tokens": 6, "output_tokens": 4, "total_tokens": 10}


def old(params):
    """Fail for even numbers."""
    return '{"n": "x"}' if params["n"] % 2 == 0 else '{"n": 1}'


@pytest.fixture(scope="module")
def recorded():
    """Ten calls: five valid at once, five asked about; of these four answered."""
    graph = one_call("node", None, Model(old), InMemorySaver(), labels={"tenant": "acme"})
    for n in range(10):
        graph.invoke({"params": {"n": n, "prompt": "How many?"}}, thread(str(n)))
        if n in (0, 2, 4):
            resume(graph, thread(str(n)), respond({"n": n}))
        elif n == 6:
            resume(graph, thread(str(n)), edit(n=7))
    return graph


def better(params):
    """Be right for all but 2 and 9, of which one is wrong and one fails."""
    n = params["n"]
    return Completion({2: '{"n": 99}', 9: "none"}.get(n, f'{{"n": {n}}}'), USAGE)


def test_params_edited_in_state_at_a_review_are_a_persons_answer():
    """The call waited for a person, who edited the state instead of answering."""
    graph = one_call("node", None, Model(old), InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    (task,) = graph.get_state(thread(), subgraphs=True).tasks
    graph.update_state(task.state.config, {"params": {"n": 1}})
    assert graph.invoke(None, thread())["output"] == {"n": 1}
    done = evaluate(graph, better, output=dict[str, int])
    assert done.figures()["asked before"] == 1


def test_no_call_is_shown_its_own_correction():
    """Else a model that repeats what it reads would always agree with the person."""
    graph = one_call("node", None, Model(lambda _: "old"), InMemorySaver())
    for n, colour in enumerate(("red", "green", "blue")):
        params = {"prompt": f"How many {colour} apples are in the big basket?"}
        graph.invoke({"params": params}, thread(str(n)))
        resume(graph, thread(str(n)), respond({"n": n}))
    past, seen = PastCorrections(rows=corrections_of(graph)), dict[str, str]()

    def parrot(params):
        asked = params["prompt"].splitlines()[-1]
        seen[asked] = params["prompt"]
        return '{"n": 5}'

    done = evaluate(graph, parrot, output=dict[str, int], lessons=past)
    assert done.figures()["differ"] == len(seen) == 3
    assert [text.count(asked) for asked, text in seen.items()] == [1, 1, 1]
    assert [text.count("apples") for text in seen.values()] == [3, 3, 3]


def test_what_would_have_been_asked_is_counted(mode, recorded):
    """Each recorded call is made once; agreement is with what a person supplied."""
    model = Model(better)
    done = mode.call(
        *(graph_retry.data, "evaluate", recorded, mode.colour(model)), output=dict[str, int]
    )
    assert sorted(params["n"] for params in model.calls) == list(range(10))
    figures = done.figures()
    assert figures.pop("seconds") >= 0
    assert figures == {
        "calls": 10,
        "valid at once": 9,
        "after automation": 0,
        "would have asked": 1,
        "asked before": 5,
        "reviews avoided": 2,  # of 2 the output is valid, and not what the person had supplied
        "valid, unconfirmed": 2,  # of 6 and 8 no person had supplied an output
        "new failures": 1,
        "agree": 2,
        "differ": 1,
        "tokens": 100,
        "cost": None,
    }


def test_the_threads_stay_as_they_were(mode, recorded):
    """An evaluation writes nothing, even where it runs inside a node of the same graph."""
    saver = recorded.checkpointer

    def saved():
        return sorted(
            (each.config["configurable"]["checkpoint_id"], len(each.pending_writes or ()))
            for each in saver.list(None)
        )

    before = saved()

    @entrypoint(checkpointer=InMemorySaver())
    def inside(_):
        return evaluate(recorded, better, output=dict[str, int]).figures()["calls"]

    assert inside.invoke("go", thread()) == 10
    assert attempts_of(inside, thread()) == []
    assert saved() == before


def test_automation_and_changed_params_are_evaluated(recorded):
    """Hooks, options and `change` are those of now; recorded params are what they start from."""

    def again(error, attempt, params):
        return {**params, "n": params["n"] + 1}

    options = {"output": dict[str, int], "auto_retries": 1}
    done = evaluate(recorded, old, again, **options)
    assert (done.figures()["valid at once"], done.figures()["after automation"]) == (5, 5)
    changed = evaluate(recorded, old, change=lambda params: {**params, "n": 1}, **options)
    assert changed.figures()["valid at once"] == 10


def test_outputs_are_compared_as_asked(recorded):
    """By field, by a function, or whole; a recorded value is read by today's type."""
    threads = ["0", "2", "4"]
    by_field = evaluate(
        recorded,
        lambda params: json.dumps({"n": params["n"], "more": 1}),
        output=dict[str, int],
        threads=threads,
        compare="fields",
    )
    assert [one["agreement"] for one in by_field.results] == [0.5] * 3
    near = evaluate(
        recorded,
        lambda params: f'{{"n": {params["n"]}.0}}',
        output=dict[str, float],
        threads=threads,
    )
    assert [one["agreement"] for one in near.results] == [1.0] * 3
    with pytest.raises(ValueError, match="`compare` returned 'yes'"):
        evaluate(recorded, better, threads=threads, compare=lambda *_: "yes")


def test_a_spent_limit_begins_no_further_call(recorded):
    """What is left is counted, and the price of each attempt summed up."""
    model = Model(better)
    limit = Budget(cost=0.25, price=lambda attempt: attempt["usage"]["total_tokens"] / 100)
    done = evaluate(recorded, model, output=dict[str, int], limit=limit, concurrency=1)
    assert (len(model.calls), done.left, done.figures()["cost"]) == (3, 7, pytest.approx(0.3))


def test_a_price_is_any_number(recorded, tmp_path):
    """A `Decimal` counts as in the budget of a call; another value is named."""
    options = {"output": dict[str, int], "threads": ["1", "3"], "path": tmp_path / "kept.jsonl"}
    limit = Budget(cost=5, price=lambda attempt: Decimal("0.1"))
    assert evaluate(recorded, better, limit=limit, **options).figures()["cost"] == 0.2
    limit = Budget(cost=5, price=lambda attempt: "0.1")
    with pytest.raises(TypeError, match="`price` returned"):
        evaluate(recorded, better, limit=limit, output=int)


CHILD = """
import os, signal, sys
from pathlib import Path
from graph_retry.data import evaluate

def model(params):
    with Path(sys.argv[3]).open("a") as file:
        file.write(f"{params['n']}\\n")
    if len(Path(sys.argv[3]).read_text().split()) == 5 and sys.argv[4] == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    return '{"n": 1}'

done = evaluate(sys.argv[1], model, output=dict[str, int], path=sys.argv[2], concurrency=1)
print(len(done.results))
"""


@pytest.mark.slow
def test_a_crash_repeats_only_the_call_in_flight(recorded, tmp_path):
    """A killed evaluation goes on from its file, a line that was cut off included."""
    export_ledgers(every_ledger(recorded), tmp_path / "ledgers.jsonl")
    calls, kept = tmp_path / "calls", tmp_path / "results.jsonl"
    command = [sys.executable, "-c", CHILD, str(tmp_path / "ledgers.jsonl"), str(kept), str(calls)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    first = subprocess.run([*command, "dies"], check=False, env=environment)
    assert first.returncode == -signal.SIGKILL
    assert len(kept.read_text().splitlines()) == 1 + 4
    kept.write_text(kept.read_text() + '{"id": "cut o')
    second = subprocess.run(
        [*command, "lives"], env=environment, capture_output=True, text=True, check=True
    )
    assert second.stdout == "10\n"
    made = calls.read_text().split()
    assert (len(made), len(set(made))) == (11, 10)
    with pytest.raises(
        ValueError, match=r"`path` .*, which holds the evaluation of 'model': for 'better'"
    ):
        evaluate(recorded, better, output=dict[str, int], path=kept)


def test_results_of_another_function_are_told(recorded, tmp_path, caplog):
    """Under one `name=`, the file cannot know whether the function was renamed."""
    options = {"output": dict[str, int], "name": "one", "path": tmp_path / "results.jsonl"}
    evaluate(recorded, better, **options)
    evaluate(recorded, better, **options)
    assert not caplog.text
    evaluate(recorded, old, **options)
    assert "`path` has results of the function `better`" in caplog.text


def test_what_is_redacted_is_in_no_result(tmp_path):
    """The option `redact` applies to the results, and not to the comparison."""
    model = Model(lambda _: '{"n": "kanarienvogel"}')
    graph = one_call("node", None, model, InMemorySaver(), labels={"for": "kanarienvogel"})
    graph.invoke({"params": {"n": 1}}, thread("kanarienvogel"))
    resume(graph, thread("kanarienvogel"), respond({"n": 1}))
    (one,) = evaluate(
        graph,
        lambda _: '{"n": 1, "of": "kanarienvogel"}',
        compare=lambda value, expected: "kanarienvogel" in str(value),
        redact=lambda text: text.replace("kanarienvogel", "***"),
        path=tmp_path / "results.jsonl",
    ).results
    assert (one["thread"], one["agreement"]) == ("***", 1.0)
    assert "kanarienvogel" not in (tmp_path / "results.jsonl").read_text()


def test_calls_of_several_names_are_chosen_from():
    """What one function would answer is not asked of another call."""
    saver = InMemorySaver()
    for number, name in enumerate(("read", "sum")):
        graph = one_call("node", None, Model(old), saver, name=name)
        graph.invoke({"params": {"n": 1}}, thread(str(number)))
    with pytest.raises(ValueError, match=r"several names \(`read`, `sum`\)"):
        evaluate(saver, better, output=dict[str, int])
    figures = evaluate(saver, better, calls=["sum"], output=dict[str, int]).figures()
    assert figures["calls"] == 1


def test_a_name_that_no_call_has_is_refused(recorded, caplog):
    """All zeros would look like a result; results that were paid for are returned."""
    with pytest.raises(ValueError, match=r"`cuont`.* Did you mean `count`\?"):
        evaluate(recorded, better, calls=["cuont"])
    assert not caplog.text
    evaluated = evaluate(recorded, better, calls=["count", "cuont"], output=dict[str, int])
    assert len(evaluated.results) == 10
    assert "Did you mean `count`?" in caplog.text


def test_a_forgotten_output_is_refused_before_any_call(recorded):
    """A text never equals the value that was read from an equal text."""
    model = Model(better)
    with pytest.raises(ValueError, match="the recorded calls of `count` had an `output=`"):
        evaluate(recorded, model)
    assert not model.calls
    assert len(evaluate(recorded, better, compare=lambda new, old: 1.0).results) == 10


@pytest.mark.parametrize("text", ['{"id": "acme"}', '{"id": "acme"}\n', "{\n", "[1]\n", "\xff\n"])
def test_a_file_of_something_else_stays_as_it_is(recorded, tmp_path, text):
    """It is refused before any call, in one sentence."""
    path, model = tmp_path / "rows.jsonl", Model(better)
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"rows\.jsonl, which `evaluate` did not write: give"):
        evaluate(recorded, model, path=path)
    assert (path.read_text(encoding="latin-1"), model.calls) == (text, [])


def test_a_review_of_valid_outputs_counts_as_one(recorded):
    """`review="always"` would ask about each; that nobody can be asked here changes nothing."""
    done = evaluate(recorded, better, output=dict[str, int], review="always")
    assert done.figures()["would have asked"] == 10


def test_concurrency_is_bounded_and_used(recorded):
    """As many calls run at the same time as are allowed, sync functions, too."""
    import threading

    together = threading.Barrier(5, timeout=60)
    now, most, lock = [0], [0], threading.Lock()

    def model(params):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        together.wait()
        with lock:
            now[0] -= 1
        return '{"n": 1}'

    evaluate(recorded, model, output=dict[str, int], concurrency=5)
    assert most == [5]


def test_a_table_and_a_plot_show_the_figures(recorded):
    """A row for each group, a bar for each evaluation; progress is told after each call."""
    seen = []
    done = evaluate(
        recorded,
        better,
        output=dict[str, int],
        progress=lambda evaluation: seen.append(len(evaluation.results)),
    )
    assert seen == list(range(1, 11))
    lines = done.table(by="tenant").splitlines()
    assert lines[2].startswith("| better | 10 | 9 | 0 | 1 |")
    assert lines[3].startswith("| tenant: acme | 10 | 9 |")
    axes = plot_evaluations([done])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["better"]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend[0] == "valid at once"


def test_wrong_options_are_told_before_a_call():
    """An option that cannot be meant is named."""
    for options, says in (
        ({"compare": "near"}, "`compare`: give 'equal'"),
        ({"concurrency": 0}, "`concurrency`: give a whole number from 1; not 0"),
        ({"limit": SharedBudget(failures=1)}, "`limit` takes only `tokens`, `cost` or `seconds`"),
        ({"limit": Budget(rounds=1)}, "`limit` takes only `tokens`, `cost` or `seconds`"),
    ):
        with pytest.raises(ValueError, match=says):
            evaluate([], better, **options)
    with pytest.raises(TypeError, match="`limit`: give a `Budget`; not 3"):
        evaluate([], better, limit=3)
    with pytest.raises(TypeError, match="unknown argument `comparing`"):
        evaluate([], better, comparing="equal")


def test_what_a_person_approved_is_expected():
    """An approved output counts as one a person vouched for."""
    graph = one_call("node", None, Model(old), InMemorySaver(), review="always")
    graph.invoke({"params": {"n": 1}}, thread())
    resume(graph, thread(), approve())
    (one,) = evaluate(graph, lambda params: '{"n": 2}', output=dict[str, int]).results
    assert (one["expected"], one["agreement"]) == ({"n": 1}, 0.0)
