"""One private value, sent through every door: `redact` takes it out of all that is given out."""

import json
import logging

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import AnswerRefused, CallCancelled, edit, reject
from graph_retry._core.threads import history, inbox
from graph_retry.data import plot_summary, plot_timeline, replay, summarize
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.show import as_json, inbox_rows, show_ledger, show_review
from graph_retry.ledger import Ledger
from graph_retry.threads import export_ledgers, import_ledgers
from tests.loops import Model, answer, one_call, reviews, thread

CANARY = "canary-7f3a"
PARAMS = {
    "to": f"{CANARY}@example.org",
    "model": CANARY,
    CANARY: 1,
    "meta": {f"from {CANARY}": CANARY, "lang": "en"},
    "schema": {"description": CANARY},
    "logins": {f"{CANARY}\n": {"password": "x"}},
    "n": 0,
}


def redact(text):
    """Take the canary out of a text."""
    return text.replace(CANARY, "[name]")


def reply(params):
    """Put the canary into a value, a key, then an error."""
    if params["n"] == 0:
        return json.dumps({CANARY: CANARY, "n": {CANARY: CANARY}})
    raise ValueError(f"no such user: {CANARY}")


def test_the_canary_leaves_through_no_door(form, mode, spans, caplog, capsys, tmp_path):
    """Only the model gets it, in its params; what anybody else is given does not have it."""
    caplog.set_level(logging.DEBUG, "graph_retry")
    doors = {"notify": [], "reviewers": [], "on_attempt": [], "hooks": []}

    def tell(review):
        doors["notify"].append(vars(review))
        raise OSError(f"no mail to {CANARY}")

    def hook(error, attempt, params):
        doors["hooks"].append([str(error), error.attempts, error.issues, error.raw_output])

    model = Model(reply)
    graph = one_call(
        form,
        mode,
        model,
        InMemorySaver(),
        hook,
        redact=redact,
        not_secret=["password"],
        notify=tell,
        on_attempt=doors["on_attempt"].append,
        reviewer=lambda review: doors["reviewers"].append(vars(review)),
        on_cancel="raise",
    )
    mode.invoke(graph, {"params": PARAMS}, thread())
    shown = look(mode, graph, doors, "first")
    assert shown.params == {
        "to": "[name]@example.org",
        "model": "[name]",
        "[name]": 1,
        "n": 0,
        "meta": {"from [name]": "[name]", "lang": "en"},
        "schema": {"description": "[name]"},
        "logins": {"[name]\n": {"password": "x"}},
    }
    again = {"n": 1, "[name]": 1, "meta": {"from [name]": "[name]", "lang": "de"}}
    answer(mode, graph, thread(), {**edit(**again), "message": f"tell {CANARY}"})
    assert model.calls[1] == PARAMS | {"n": 1, "meta": {f"from {CANARY}": CANARY, "lang": "de"}}

    look(mode, graph, doors, "second")
    with pytest.raises(AnswerRefused) as refused:
        answer(mode, graph, thread(), "what?" + CANARY)
    doors["refused"] = str(refused.value)
    look(mode, graph, doors, "asked again")
    with pytest.raises(CallCancelled) as caught:
        answer(mode, graph, thread(), reject(f"{CANARY} said no"))
    doors["error"] = [str(caught.value), caught.value.reason, caught.value.attempts]
    (ledger,) = mode.call(history, "attempts_of", graph, thread())
    read_back(ledger, doors, tmp_path / "ledgers.jsonl")
    doors["spans"] = [span.to_json() for span in spans()]
    doors["logs"] = caplog.text
    doors["terminal"] = capsys.readouterr().out

    assert all(doors.values()), "each door was used"
    leaks = {door for door, what in doors.items() if CANARY in json.dumps(what, default=str)}
    assert not leaks
    assert json.dumps(doors, default=str).count("[name]") > 50
    assert ledger.params_diff(2) == [
        {"path": "/meta/lang", "before": "en", "after": "de"},
        {"path": "/n", "before": 0, "after": 1},
    ]


def look(mode, graph, doors, when):
    """Look at the open review in every way there is."""
    (review,) = reviews(mode, graph, thread())
    (listed,) = mode.call(inbox, "list_reviews", graph)
    (bare,) = mode.call(inbox, "list_reviews", graph.checkpointer)
    snapshot = mode.call(graph, "get_state", thread())
    doors[when] = [vars(review), vars(listed), vars(bare)]
    doors[f"{when}: interrupt"] = [repr(each) for each in snapshot.interrupts]
    screen = Screen()
    show_review(screen, review)
    screen.say(as_json(review))
    rows = inbox_rows([listed])
    screen.table(("row",) * len(rows[0]), rows)
    for ledger in mode.call(history, "attempts_of", graph.checkpointer, thread()):
        show_ledger(screen, ledger)
        doors[f"{when}: ledger"] = vars(ledger)
    return review


def read_back(ledger, doors, path):
    """Export the ledger, read it back, replay it, sum it up and draw it."""
    export_ledgers([ledger], path)
    doors["export"] = path.read_text()
    (imported,) = import_ledgers(path)
    doors["import"] = [vars(imported), vars(Ledger(imported.attempts))]
    doors["metrics"] = str(summarize(imported.attempts))
    again = replay(imported.attempts, output=dict[str, int])
    doors["replay"] = [vars(attempt) for attempt in again]
    for draw, what in ((plot_timeline, [imported]), (plot_summary, imported.attempts)):
        drawn = draw(what)
        figure = getattr(drawn, "figure", drawn)
        texts = [text.get_text() for text in figure.findobj(mpl.text.Text)]
        doors[draw.__name__] = texts
        plt.close(figure)
