"""Five megabytes in params or output: shown in bounds, stored once."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry import AttemptsExhausted, edit, pending_reviews, reject, resume, retry_llm_call
from graph_retry.errors import AttemptFailed
from graph_retry.hooks import feedback
from tests.loops import one_call, thread

BIG = 5_000_000
RAWS = {
    "prose": "r" * BIG,
    "valid": json.dumps({"n": "r" * BIG}),
    "repaired": '{"n": "' + "r" * BIG + '",}',
}


def test_the_payload_of_large_params_is_four_times_as_large(tmp_path: Any) -> None:
    """Params are shown in full in each place a client reads; nothing else grows with them."""
    params = {"n": 0, "prompt": "p" * BIG}
    with SqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:
        graph = one_call("node", None, lambda given: '{"n": "bad"}', saver)
        graph.invoke({"params": params}, thread())
        (review,) = pending_reviews(graph, thread())
    assert review.params == params
    assert len(json.dumps(review.value)) <= 4 * len(json.dumps(params)) + 20_000


def test_a_schema_of_very_many_params_is_left_out() -> None:
    """The form's schema would outgrow the params it describes."""
    from graph_retry._core.review.clients.payload import build_payload
    from tests.review.questions import question

    params = {f"k{number}": number for number in range(20_000)}
    payload = build_payload(question(params))
    assert len(json.dumps(payload)) <= 4 * len(json.dumps(params)) + 20_000


@pytest.mark.parametrize("raw", RAWS.values(), ids=RAWS.keys())
@pytest.mark.slow
def test_a_large_output_is_shown_in_part_and_kept_once(raw: str, tmp_path: Any) -> None:
    """The review holds an excerpt; a record holds the text once, and once more if it was mended."""
    path = str(tmp_path / "db")
    answers = {0: raw, 1: '{"n": 1}'}
    with SqliteSaver.from_conn_string(path) as saver:
        graph = one_call("node", None, lambda given: answers[given["n"]], saver)
        shown = [*graph.stream({"params": {"n": 0}}, thread(), stream_mode="custom")]
        (review,) = pending_reviews(graph, thread())
        done = resume(graph, thread(), edit(n=1))
    assert len(json.dumps(review.value)) < 20_000
    assert len(json.dumps(shown)) < 2_000
    kept = json.dumps(done["attempts"])
    assert BIG <= kept.count("r") <= (2 if raw == RAWS["repaired"] else 1) * BIG + 10_000
    with closing(sqlite3.connect(path)) as database:
        writes = database.execute("SELECT value FROM writes").fetchall()
        states = database.execute("SELECT checkpoint FROM checkpoints").fetchall()
    # A blob holds each text once: a state or a step's writes never repeat it.
    most = max(blob.count(b"r" * 1_000) for (blob,) in [*writes, *states])
    assert 5_000 <= most <= (2 if raw == RAWS["repaired"] else 1) * 5_010


def test_errors_and_prompts_quote_a_large_output_in_part() -> None:
    """What a caller catches and what a model is told stay short."""
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(lambda _: RAWS["valid"], {}, output=dict[str, int], review=False)
    assert len(str(caught.value)) < 5_000

    error = AttemptFailed("no", kind="invalid_syntax", raw_output=RAWS["prose"])
    assert len(feedback("full")(error, 1, "Who?")) < 25_000
    message = ValueError("m" * BIG)
    with pytest.raises(AttemptsExhausted) as raised:
        retry_llm_call(lambda _: (_ for _ in ()).throw(message), {}, review=False)
    assert len(str(raised.value)) < 5_000


def test_a_long_reason_is_asked_to_be_shorter(checkpointer: Any, mode: Any) -> None:
    """What a person writes goes into every record that follows."""
    from tests.loops import refused, reviews

    graph = one_call("node", mode, lambda given: "no", checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    refused(mode, graph, thread(), reject("m" * BIG))
    (review,) = reviews(mode, graph, thread())
    assert "10,000" in (review.problem or "")
