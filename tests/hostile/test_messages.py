"""What others wrote reaches the text of an error escaped, and its data as it came."""

import copy
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import (
    AttemptFailed,
    approve,
    edit,
    errors,
    pending_reviews,
    reject,
    respond,
    resume,
    retry_llm_call,
)
from graph_retry._core.ground.functions.arguments import WrongArgumentError
from graph_retry._core.ground.functions.awaiting import MistakeInCodeError
from graph_retry.lossless._ground import EscapedText, escaped
from tests.hostile.test_logs import HOSTILE
from tests.loops import one_call, thread


def failing(text):
    """Make a function that raises a text of others."""

    def call(params: dict[str, Any]) -> str:
        raise RuntimeError(text)

    return call


def outside(text, params=None, call=lambda params: "none", **options):
    """Call without a person; `text` is in the params or the options."""
    retry_llm_call(call, params or {"n": 0}, output=int, review=False, **options)


def answered(text, decision, *, at="1", **options):
    """Answer a review of a call whose params have the text as a key."""
    graph = one_call("node", None, lambda params: "none", InMemorySaver(), **options)
    graph.invoke({"params": {"n": 0, text: 1}}, thread())
    assert pending_reviews(graph, thread())
    resume(graph, thread(at), decision)


WAYS = {
    "a key that cannot be saved": lambda text: outside(text, {text: object()}),
    "a key of keys": lambda text: outside(text, {text: {1: 2}}),
    "a key with a secret": lambda text: outside(text, {text: {"api_key": "a1b2c3d4e5f6"}}),
    "a locked field": lambda text: outside(text, locked=[text]),
    "an option": lambda text: outside(text, **{text: 1}),
    "a value of an option": lambda text: outside(text, format=text),
    "a name": lambda text: outside(text, name=f"a{text}"),
    "an error of a provider": lambda text: outside(text, call=failing(text)),
    "a text of a model": lambda text: outside(text, call=lambda _: f'"{text}"'),
    "a keyword of a schema": lambda text: retry_llm_call(len, {}, output={text: 1}),
    "a type": lambda text: retry_llm_call(len, {}, output={"type": text}),
    "a field of an edit": lambda text: answered(text, edit(**{f"{text}x": 1})),
    "a locked edit": lambda text: answered(text, edit(**{text: 2}), locked=[text]),
    "a word": lambda text: answered(text, text),
    "a type of a decision": lambda text: answered(text, {"type": text}),
    "a key of a decision": lambda text: answered(text, {"type": "approve", text: 1}),
    "an output": lambda text: answered(text, respond({text: text})),
    "a reason": lambda text: answered(text, reject(text), on_cancel="raise"),
    "a review": lambda text: answered(text, {"type": "approve", "review_id": f"a{text}"}),
    "a thread": lambda text: answered(text, approve(), at=f"a{text}"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("name", ["clear screen", "bidi", "return", "hidden"])
def test_a_text_of_others_is_escaped_in_an_error(way, name):
    """The text of the error controls no terminal, whichever way the other text takes to it."""
    with pytest.raises(Exception) as raised:  # noqa: PT011 - each way has its own class
        way(HOSTILE[name])
    assert raised.type.__module__.startswith(("graph_retry", "builtins"))
    assert str(raised.value).replace("\n", "").isprintable()


def test_the_data_of_an_error_stays_as_it_came():
    """A hook reads what the provider said; a log shows it escaped; both survive a copy."""
    text = "".join(HOSTILE.values())
    error = copy.deepcopy(AttemptFailed(text))
    assert error.message == text
    assert str(error) == escaped(text, lines=True)


def test_a_text_of_a_language_is_not_escaped():
    """The joiners of Persian and emojis, and the spaces of French and Japanese, stay."""
    text = "می\u200cخواهم 👩\u200d👩\u200d👧 10\u202f000\u00a0€ 東\u3000京"
    assert str(AttemptFailed(text)) == text


def test_no_error_is_without_the_door():
    """Each public error, and each error of a wrong argument, escapes its text."""
    known = {getattr(errors, name) for name in errors.__all__}
    for kind in (*known, WrongArgumentError, MistakeInCodeError):
        assert issubclass(kind, EscapedText)
        assert kind.__str__ is EscapedText.__str__
