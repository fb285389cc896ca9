"""What a function holds in objects of libraries and in wrappers made in C."""

import functools
import re

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


def test_what_is_read_of_long_texts_is_bounded():
    """They count by their length."""
    with pytest.raises(TooLargeError):
        Content("").add(["x" * 1_000_000] * 60)
    Content("").add(["x" * 1_000_000] * 5)
