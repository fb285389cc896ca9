"""Nothing secret leaves: not from params, not from outputs, not from errors (canaries)."""

import json
import logging

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from graph_retry import (
    CallCancelled,
    Completion,
    create_retry_node,
    edit,
    pending_reviews,
    reject,
    respond,
)
from graph_retry._core.ground.redact import redacted
from tests.loops import Model, answer, one_call, reviews, thread

CANARY = "canary-7f3a"


def redact(text):
    """Take the canary out of a text."""
    return text.replace(CANARY, "[name]")


class Mail(BaseModel):
    """Params with something private, at three depths."""

    to: str = f"{CANARY}@example.org"
    tone: str = "plain"
    people: list[str] = ["bob", CANARY]
    meta: dict[str, str] = {"from": CANARY, "lang": "en"}


def build(form, mode, model, told, **options):
    """Compile a graph that tells everything it can tell."""
    return one_call(
        form,
        mode,
        model,
        InMemorySaver(),
        redact=redact,
        notify=lambda review: told.append(review.value),
        on_attempt=lambda record: told.append({**record, "params_patch": None}),
        **options,
    )


@pytest.mark.parametrize(
    "fail",
    [
        lambda _: f'{{"n": "{CANARY}"}}',
        lambda _: f"I think {CANARY} is it",
        lambda _: {"n": CANARY},
        lambda _: (_ for _ in ()).throw(ValueError(f"no such user: {CANARY}")),
        lambda _: Completion("no", finish_reason=f"stopped for {CANARY}"),
    ],
    ids=["value", "text", "object", "error", "finish reason"],
)
def test_a_canary_is_in_nothing_that_is_shown_or_told(form, mode, fail):
    """Payload, notice, records, ledger, error and log: none of them holds it."""
    told = []
    graph = build(form, mode, Model(fail), told)
    params = json.loads(Mail().model_dump_json())
    mode.invoke(graph, {"params": params}, thread())
    (review,) = reviews(mode, graph, thread())
    ledger = [{**attempt, "params_patch": None} for attempt in review.history]
    assert CANARY not in json.dumps([review.value, ledger, told], default=str)
    assert "[name]" in json.dumps(ledger)
    assert review.params["to"] == "[name]@example.org"
    if form == "function":
        with pytest.raises(CallCancelled) as caught:
            answer(mode, graph, thread(), reject("no"))
        assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"tone": "warm"},
        {"tone": "warm", "to": "[name]@example.org"},
        {"tone": "warm", "people": ["bob", "[name]"], "meta": {"from": "[name]", "lang": "en"}},
    ],
)
def test_an_edit_keeps_what_stands_behind_a_redacted_value(mode, changes):
    """Forms send every field back as it was shown: the original goes to the model."""
    model = Model(lambda params: '{"n": 1}' if params.tone == "warm" else CANARY)
    node = create_retry_node(model, Mail, output=dict[str, int], redact=redact, name="count")
    graph = as_graph(node)
    mode.invoke(graph, {"params": {}}, thread())
    state = answer(mode, graph, thread(), edit(**changes))
    assert state["output"] == {"n": 1}
    assert model.calls[-1] == Mail(tone="warm")


def test_a_part_of_a_redacted_value_can_be_changed():
    """Beside the untouched secret: one entry of a list, one key of an object."""
    model = Model(lambda params: '{"n": 1}' if len(model.calls) > 1 else "no")
    node = create_retry_node(model, Mail, output=dict[str, int], redact=redact)
    graph = as_graph(node)
    graph.invoke({"params": {}}, thread())
    pending_reviews(graph, thread())[0].answer(
        edit(people=["eve", "[name]"], meta={"from": "[name]", "lang": "de"})
    )
    assert model.calls[-1].people == ["eve", CANARY]
    assert model.calls[-1].meta == {"from": CANARY, "lang": "de"}


def as_graph(node):
    """Put a node alone into a graph."""
    from langgraph.graph import START, StateGraph

    from tests.loops import State

    builder = StateGraph(State).add_node("ask", node).add_edge(START, "ask")
    return builder.compile(checkpointer=InMemorySaver())


def test_the_output_itself_is_not_redacted(form, mode):
    """What the caller asked for is the caller's, whether a model or a person gave it."""
    told = []
    model = Model(lambda params: json.dumps({"n": CANARY}))
    graph = build(form, mode, model, told, output=dict[str, str])
    assert mode.invoke(graph, {"params": {}}, thread("a"))["output"] == {"n": CANARY}
    assert CANARY not in json.dumps(told, default=str)
    graph = build(form, mode, Model(lambda _: "no"), told, output=dict[str, str])
    mode.invoke(graph, {"params": {}}, thread("b"))
    done = answer(mode, graph, thread("b"), respond({"n": CANARY}))
    assert done["output"] == {"n": CANARY}


def test_what_the_call_captures_is_nowhere(form, mode, caplog):
    """A captured client and key are in no payload, no ledger, no event, no log."""
    key = "sk-canary-Ab3dEf6hIj9kLm2nOp5q"

    class Client:
        def __repr__(self):
            return f"Client({key})"

    client = Client()

    def call(params):
        assert client
        raise PermissionError(f"Incorrect API key provided: {key}. See https://host?key={key}")

    caplog.set_level(logging.DEBUG)
    graph = one_call(form, mode, Model(call), InMemorySaver())
    stream = mode.call(graph, "stream", {"params": {}}, thread(), stream_mode=["custom", "updates"])
    (review,) = reviews(mode, graph, thread())
    everything = json.dumps([stream, review.value, review.history], default=str)
    assert key not in everything + caplog.text
    assert "[key]" in review.error


@pytest.mark.parametrize(
    ("private", "text", "shown"),
    [
        ("Müller", r'{"name": "M\u00fcller", "n": "\u00e9\n"}', '{"name": "***", "n": "é\\n"}'),
        ("Müller", r'{"body": "{\"name\": \"M\\u00fcller\"}"}', r'{"body": "{\"name\": \"***\"}"}'),
        ("Müller", r"b'M\xc3\xbcller' and 'M\xfcller'", "b'***' and '***'"),
        ("🦊", r'"\ud83e\udd8a \u00fc"', '"*** ü"'),
        ("Ada L", "GET https://h/v1?q=Ada%20L", "GET https://h/v1?q=***"),
        ("a@x.org", "GET https://h/v1?q=a%40x.org&n=100%25", "GET https://h/v1?q=***&n=100%"),
        ('O"Neil', r'{"name": "O\"Neil"}', '{"name": "***"}'),
        ("1 Rose St\nTown", r'{"at": "1 Rose St\nTown"}', '{"at": "***"}'),
        (
            "Ada",
            r'{"name": "Ada", "of": "M\u00fcller\n"}',
            r'{"name": "***", "of": "M\u00fcller\n"}',
        ),
        ("1234", r"from \u1234 to 1234", "from ሴ to ***"),
    ],
)
def test_an_escape_hides_nothing_from_the_redactor(private, text, shown):
    """JSON, addresses and Python spell characters otherwise; where that hides nothing it stays."""
    assert redacted({"text": text}, lambda told: told.replace(private, "***")) == {"text": shown}


@pytest.mark.parametrize("piece", ["\\", "\\u", "\\u0041", "%41", "%", "\\x", "\\\\\\n", "\\u00"])
def test_escapes_are_read_in_linear_time(piece):
    """Quadratic time would be minutes here."""
    text = piece * (100_000 // len(piece))
    assert redacted(text, lambda told: told.replace("Ada", "***")) == text


def test_many_keys_are_numbered_in_linear_time():
    """Quadratic time would be minutes here."""
    shown = redacted(dict.fromkeys(map(str, range(50_000))), lambda told: "key", names=("7",))
    assert [*shown][5:9] == ["key #6", "key #7", "7", "key #8"]
    assert [*shown][-1] == "key #49999"
