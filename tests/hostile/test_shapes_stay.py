"""Prompts of any shape are sent whole: blocks, pictures, tool calls, tuples, objects, no text."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import approve, comment, pending_reviews, resume
from graph_retry.hooks import Lessons
from graph_retry.threads import rewind
from tests.hostile.test_text_stays import LESSON, PIECES, Sent
from tests.loops import one_call, thread
from tests.parts import draws

PRIVATE = "priv4te"
TEXT = st.lists(PIECES | st.just(PRIVATE), max_size=5).map("".join)
PICTURE = "data:image/png;base64,iVBORw0KGgo="


def block(kind: str, **parts: Any) -> st.SearchStrategy[Any]:
    """Draw a block of content."""
    drawn = {name: part if isinstance(part, st.SearchStrategy) else st.just(part)
             for name, part in parts.items()}  # fmt: skip
    return st.fixed_dictionaries({"type": st.just(kind), **drawn})


BLOCK = st.one_of(
    block("text", text=TEXT),
    block("text", text=TEXT, cache_control={"type": "ephemeral"}),
    block("image_url", image_url={"url": PICTURE}),
    block("image", source={"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}),
    block("tool_use", id="t1", name="look", input=st.fixed_dictionaries({"q": TEXT})),
    block("tool_result", tool_use_id="t1", content=st.lists(block("text", text=TEXT), max_size=2)),
    block("document", source=st.fixed_dictionaries({"type": st.just("text"), "data": TEXT})),
)
CONTENT = TEXT | st.lists(BLOCK, max_size=3)
CALLS = TEXT.map(
    lambda text: [{"id": "t1", "type": "function",
                   "function": {"name": "look", "arguments": json.dumps({"q": text})}}]
)  # fmt: skip
DICTS = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system"]), "content": CONTENT}
    ),
    st.fixed_dictionaries({"role": st.just("assistant"), "content": TEXT, "tool_calls": CALLS}),
    st.fixed_dictionaries(
        {"role": st.just("tool"), "tool_call_id": st.just("t1"), "content": CONTENT}
    ),
)
TUPLES = st.tuples(st.sampled_from(["user", "ai", "system", "human"]), CONTENT)
OBJECTS = st.one_of(
    st.builds(
        lambda kind, said: kind(said), st.sampled_from([HumanMessage, SystemMessage]), CONTENT
    ),
    st.builds(
        lambda said, text: AIMessage(said, tool_calls=[
            {"name": "look", "args": {"q": text}, "id": "t1"}
        ]), TEXT, TEXT,
    ),
    st.builds(lambda said: ToolMessage(said, tool_call_id="t1"), CONTENT),
)  # fmt: skip
MESSAGES = st.one_of(
    *(st.lists(kind, min_size=1, max_size=4) for kind in (DICTS, TUPLES, OBJECTS, DICTS | OBJECTS))
)
STEPS = st.lists(
    st.just(("approve", "")) | st.just(("rewind", "")) | st.tuples(st.just("comment"), TEXT),
    min_size=1,
    max_size=3,
)


def texts(value: Any) -> list[str]:
    """Return all texts of a prompt in their order, also those of arguments and pictures."""
    if isinstance(value, BaseMessage):
        return texts([value.content, getattr(value, "tool_calls", [])])
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts(part)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


def holds(sent: Any, owed: Any) -> bool:
    """Return whether all texts of a prompt stand in another one, whole and in their order."""
    left = iter(texts(sent))
    return all(any(text in each for each in left) for text in texts(owed))


@pytest.mark.drawn
@given(MESSAGES, STEPS, st.booleans(), st.booleans())
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=draws(15, 400), deadline=None)
def test_a_prompt_of_any_shape_is_sent_whole(messages, steps, learns, redacts):
    """Feedback, comments, lessons and going back take nothing away; private texts are sent."""
    model, options = Sent(), {"lessons": Lessons(known=[LESSON])} if learns else {}
    if redacts:
        options["redact"] = lambda text: text.replace(PRIVATE, "***")
    graph = one_call(
        "node", None, model, InMemorySaver(), feedback="errors_only", auto_retries=1,
        max_attempts=30, **options,
    )  # fmt: skip
    graph.invoke({"params": {"messages": messages}}, thread())
    for kind, text in steps:
        (review,) = pending_reviews(graph, thread())
        if redacts:
            assert PRIVATE not in json.dumps([review.value, review.to_json()], default=str)
        said = comment(text) if kind == "comment" and text.strip() else approve()
        if kind == "rewind":
            rewind(graph, thread(), attempt=1 + review.attempt // 2, decision=said)
        else:
            resume(graph, thread(), said)
    assert len(model.prompts) >= 2 + len(steps)
    for sent in model.prompts:
        assert holds(sent, messages)
