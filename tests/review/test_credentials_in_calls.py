"""Credentials in a call: its params are warned of, and what its helpers raise is masked."""

import logging

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import retry_llm_call
from graph_retry._core.ground import logs
from graph_retry._core.loop.run import first_checks
from tests.loops import Model, one_call, reviews, thread

SENT = "sk-Ab3dEf6hIj9kLm2nOp5qRs8t"

LIKE_CREDENTIALS = {
    "prompt": "how many tokens has this?",
    "note": f"call it with {SENT}",
    "tools": [{"password": "correct horse"}, f"Bearer {SENT}"],
    "seed": "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z",
    "max_tokens": 100,
    "eos_token": "</s>",
    "token_count": "3",
    "password_hint": "",
    "db_password": "",
    "schema": {"properties": {"password": {"type": "string"}}, "required": ["password"]},
}


def test_a_field_that_looks_like_a_credential_is_warned_of_once(form, caplog):
    """By its look or inside a list; the log names the field, and never says what is in it."""
    logs.warn_once.cache_clear()
    graph = one_call(form, None, Model(lambda params: "no"), InMemorySaver())
    for name in "ab":
        graph.invoke({"params": LIKE_CREDENTIALS}, thread(name))
    records = [record for record in caplog.records if record.name == "graph_retry.params"]
    assert [record.levelno for record in records] == [logging.WARNING] * 4
    fields = [record.args[0] for record in records]
    assert fields == ["/note", "/tools/0/password", "/tools/1", "/seed"]
    assert not any(secret in caplog.text for secret in ("horse", SENT))


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"api_key": "sk-test"}, "/api_key"),
        ({"prompt": "x", "headers": {"Authorization": "anything"}}, "/headers/Authorization"),
        ({"clientSecret": "x"}, "/clientSecret"),
        ({"options": {"db": {"password": "correct horse"}}}, "/options/db/password"),
        ({"bearer_token": "abc"}, "/bearer_token"),
        ({"value_of_it": SENT}, "/value_of_it"),
        ({"x": "hf_" + "abcdefghij" * 3 + "klmn"}, "/x"),
    ],
)
def test_a_field_that_holds_a_credential_is_refused_before_the_call(form, mode, params, path):
    """The error names the field and the way out, and does not quote the value."""
    model = Model(lambda params: '{"n": 1}')
    graph = one_call(form, mode, model, InMemorySaver())
    with pytest.raises(ValueError, match="holds a credential") as refused:
        mode.invoke(graph, {"params": params}, thread())
    text = str(refused.value)
    assert f"the param '{path}' of `count`" in text
    assert "Keep the credential in the function" in text
    assert not any(each in text for each in ("sk-test", "anything", "horse", SENT))
    assert model.calls == []
    for said in (path, path.rpartition("/")[2]):
        graph = one_call(form, mode, model, InMemorySaver(), not_secret=[said])
        assert mode.invoke(graph, {"params": params}, thread())["output"] == {"n": 1}


@pytest.mark.parametrize("kind", [ValueError, LookupError])
def test_what_a_validator_or_a_reviewer_raises_is_masked(form, mode, kind):
    """Both may ask a service, and quote its address and key."""
    graph = one_call(
        form, mode, Model(), InMemorySaver(), output=refuse(kind), reviewer=refuse(kind)
    )
    mode.invoke(graph, {"params": {"n": 1}}, thread())
    (review,) = reviews(mode, graph, thread())
    shown = "401 for https://h/v1?key=sk-Ab3d[key]"
    assert all(shown in review.value[name] for name in ("error", "note"))
    assert shown in review.issues[0]["message"]
    assert SENT not in repr(vars(review))


def refuse(kind):
    """Return a function that raises what its service said."""

    def ask_service(_):
        raise kind(f"401 for https://h/v1?key={SENT}")

    return ask_service


def test_names_are_looked_at_in_params_of_any_size(monkeypatch):
    """Of long values only the beginning is read, or a long conversation would take seconds."""
    logs.warn_once.cache_clear()
    read = []
    monkeypatch.setattr(first_checks, "without_named_keys", lambda text: read.append(text) or text)
    params = {"messages": ["word " * 4_000] * 100, "api_key": "x"}
    with pytest.raises(ValueError, match="'/api_key' of `count` holds a credential"):
        retry_llm_call(lambda params: "1", params, output=int, name="count")
    assert sum(map(len, read)) == 200_000
