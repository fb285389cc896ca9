"""What a function holds in objects of libraries and in wrappers made in C."""

import functools
import re
from collections import Counter
from contextlib import contextmanager
from queue import Queue

import pytest
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import edit, retry_llm_call
from graph_retry._core.ground.held.captured import Captured
from graph_retry._core.ground.held.content import Content, TooLargeError
from tests.identity.cities import one_node
from tests.identity.test_functions_apart import PARAMS, tell
from tests.loops import answer, thread


@pytest.mark.parametrize(
    ("model", "named"), [("small", []), ("large", ["`model.responses`"])], ids=["same", "other"]
)
@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_an_exchanged_chat_model_is_told(mode, checkpointer, model, named, caplog):
    """It may do the same or another thing: the call continues, and a WARNING names `key=`."""
    models = iter([FakeListChatModel(responses=[each]) for each in ("small", model)])

    def node(_):
        model = next(models)
        text = retry_llm_call(lambda text: model.invoke(text).content, "Which?", name="ask")
        return {"output": [text, retry_llm_call(lambda params: tell("b", params), PARAMS)]}

    graph = one_node(node, checkpointer)
    mode.invoke(graph, {}, thread())
    answer(mode, graph, thread(), edit(style="B"))

    assert mode.call(graph, "get_state", thread()).values["output"] == ["small", "b B"]
    told = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert [re.findall(r"differ in (\S+?)\)", each)[0] for each in told] == named


def echo(text, _params):
    """Return the text."""
    return text


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_what_a_cache_holds_is_read(mode):
    """`functools.cache` and such are made in C, and have the function that they call."""
    results, order = {}, iter(["ab", "b"])

    def node(_):
        for text in next(order):
            function = functools.cache(functools.partial(echo, text))
            results[text] = retry_llm_call(function, "x", name="ask")
            if len(results) == 1:
                raise OSError("killed")
        return {"output": results}

    graph = one_node(node, InMemorySaver())
    with pytest.raises(OSError, match="killed"):
        mode.invoke(graph, {}, thread())

    assert mode.invoke(graph, None, thread())["output"] == {"a": "a", "b": "b"}


@pytest.mark.parametrize("texts", [{"a": "b" * 100}, dict.fromkeys(map(str, range(5_000)), "b")])
def test_a_storage_in_memory_is_not_read_by_each_call(texts):
    """What a client shows tells it from others; what a storage shows is all that was saved."""
    saver = InMemorySaver()
    saver.blobs.update(
        {("t", "", name, "1"): ("text", text.encode()) for name, text in texts.items()}
    )
    shown = Captured(lambda: saver, "").shown
    assert ("saver.blobs" in shown) == (len(texts) == 1)


@contextmanager
def counted():
    """Count the values that are digested."""
    counts, add = Counter(), Content.add
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Content, "add", lambda self, value: counts.update(values=1) or add(self, value)
        )
        yield counts


def test_what_is_read_of_a_storage_in_memory_does_not_grow_with_it():
    """Its keys are not sorted when there are more of them than are read."""
    saver, found = InMemorySaver(), []
    for number in (1_000, 20_000):
        saver.blobs.update({("t", "", each, "1"): ("text", b"") for each in range(number)})
        with counted() as counts:
            Captured(lambda: saver, "")
        found.append(counts["values"])
    assert found[0] == found[1] <= 21


class Kept:
    """An object with data, and a method that has no content."""

    def __init__(self):
        self.log, self.settings, self.queue = [*range(50)], {"a": {"b": [1]}}, Queue()
        self.queue.put("one")
        self.items, self.flag, self.method = iter([*range(9)]), False, "".join


CHANGES = {
    "nothing": (lambda _: None, {}),
    "a log grows": (lambda kept: kept.log.append(1), {"kept.log": "changed"}),
    "entries are taken": (lambda kept: kept.log.clear(), {"kept.log": "used"}),
    "an entry is taken": (lambda kept: kept.log.pop(), {"kept.log": "used"}),
    "deep in a dict": (
        lambda kept: kept.settings["a"]["b"].append(2),
        {"kept.settings": "changed", "kept.settings['a']": "changed"}
        | {"kept.settings['a']['b']": "changed"},
    ),
    "an exchanged value": (lambda kept: setattr(kept, "flag", True), {"kept.flag": "changed"}),
    "an exchanged object": (
        lambda kept: setattr(kept, "settings", {"a": {"b": [3]}}),
        {"kept.settings": "changed", "kept.settings['a']": "changed"}
        | {"kept.settings['a']['b']": "changed"},
    ),
    "a new attribute": (lambda kept: setattr(kept, "more", [Kept(), kept]), {}),
    "an iterator": (
        lambda kept: next(kept.items),
        {"kept.items": "changed", "kept.items:2": "changed"},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_call_changes_is_noted(change):
    """Each value that has another digest after the call, and each list from which entries went."""
    kept = Kept()
    act, expected = CHANGES[change]
    captured = Captured(lambda params: act(kept), "")
    act(kept)
    with counted() as counts:
        captured.note_changes()
    assert captured.unsteady == expected
    # The log, the largest value, is digested once, and its items only if it has changed.
    assert "log" in str(expected) or counts["values"] < 100


def test_a_function_that_holds_nothing_is_read_once(monkeypatch):
    """Nothing can change in it."""
    captured = Captured(echo, "")
    monkeypatch.setattr(Captured, "_function", None)
    captured.note_changes()
    assert captured.unsteady == {}


def test_what_is_read_of_long_texts_is_bounded():
    """They count by their length."""
    with pytest.raises(TooLargeError):
        Content("").add(["x" * 1_000_000] * 60)
    Content("").add(["x" * 1_000_000] * 5)
