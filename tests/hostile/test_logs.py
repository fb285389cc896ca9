"""What others wrote reaches a log escaped: it controls no terminal and forges no line."""

import logging
import re
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

import graph_retry
from graph_retry import AnswerRefused, approve, resume, retry_llm_call
from graph_retry._core.ground.logs import LOGGERS
from graph_retry.lossless._ground import escaped
from tests.loops import Model, State, one_call, thread

HOSTILE = {
    "clear screen": "\x1b[2J",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://evil.example\x07x",
    "one byte": "\x9b31m",
    "line": "x\nWARNING graph_retry: all is well",
    "return": "x\rOK",
    "bidi": "price\u202e05",
    "isolate": "\u2066x\u2069",
    "line separator": "a\u2028b",
    "hidden": "a\u200bb",
    "mark": "\ufeffa",
    "null": "a\x00b",
    "tag": "a\U000e0041b",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
@pytest.mark.parametrize("name", LOGGERS)
def test_an_argument_of_a_message_is_escaped(name, text, caplog):
    """Whatever is logged of others is printable, on one line, and still readable."""
    logging.getLogger(name).warning("`%s` of %s has %d", text, ValueError(text), 3)
    assert caplog.messages == [f"`{escaped(text)}` of {escaped(text)} has 3"]
    assert caplog.messages[0].isprintable()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_key_of_the_params_is_escaped_in_a_warning(text, caplog):
    """The warning of a new call names the fields that differ."""
    moments = iter(range(9))

    def ask(state: State) -> State:
        params = {"n": 0, f"at{text}": next(moments)}
        return {"output": retry_llm_call(Model(), params, output=dict[str, int], name="count")}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({}, thread())
    with pytest.raises(AnswerRefused):
        resume(graph, thread(), approve())
    told = [each for each in caplog.messages if "new call" in each]
    assert told
    assert all(each.isprintable() for each in caplog.messages)
    assert escaped(text)[:3] in told[0]


def test_a_name_is_escaped_and_a_trace_keeps_its_lines(caplog):
    """A message that ends with a trace has its lines; nothing else has."""
    caplog.set_level(logging.DEBUG, "graph_retry")

    def fails(params):
        raise ValueError("no\x1b[2J")

    graph = one_call("node", None, fails, InMemorySaver(), name="a\x1b[2Jb")
    graph.invoke({"params": {"n": 0}}, thread())
    assert "\x1b" not in caplog.text
    assert any("Traceback" in each and "\n" in each for each in caplog.messages)


def test_no_logger_is_without_the_door():
    """Each logger that the package makes is one of those that are guarded."""
    package = Path(graph_retry.__file__).parent
    made = {
        found
        for path in package.rglob("*.py")
        for found in re.findall(r"getLogger\((.*?)\)", path.read_text())
    }
    assert made == {*(f'"{name}"' for name in LOGGERS), "name"}
