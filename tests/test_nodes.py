"""The graphs of `nodes/`: through their instructive failures to success, without a key."""

import ast
import base64
import importlib
import json
import struct
import sys
import types
import zlib
from contextlib import suppress
from pathlib import Path

import pytest
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver

import graph_retry
from graph_retry import AnswerRefused, approve, edit, reject, respond
from graph_retry.data import replay
from graph_retry.output import SchemaOfParams
from nodes.image import sniffed
from nodes.serving import NoModelError, chat_model
from tests.loops import thread

ROOT = Path(__file__).parent.parent
SERVED = json.loads((ROOT / "langgraph.json").read_text())["graphs"]
SWEEPER = SERVED.pop("sweeper")  # it calls no model; tests/server runs it
SCRIPTS = {
    "extract": "ask_script",
    "chat": "ask_script",
    "image": "draw",
    "review_agent": "sort_by_script",
}
INVOICE = "Vendor: Ada & Co\nTotal: USD 7.25\nDue: 1 May 2030"
READ = {"vendor": "Ada & Co", "total": 7.25, "due_date": "2030-05-01"}
TICKET = {"category": "billing", "customer": "C-1234", "summary": "Refund me."}

# graph, message, answers, why each attempt failed, whose each attempt is, output (or its type)
FAILED_TWICE = "ValidationError ValidationError"
OVERLOADED = "RateLimitError OverloadedError -"
HEARD = "You wrote: hello (0 messages came before.)"
NUMBERED = "Refund me. C-1234"
SORTED = {**TICKET, "summary": NUMBERED}
BY_HUMAN, BY_AGENT = "caller human human", "caller agent:triage"
OTHER_MODEL = edit(model="imagen-4.0-ultra", output_mime_type="image/png")
NOT_YET = edit(model="large", system="")
LARGE = edit(document=INVOICE, model="large")
KIND, CALLER = edit(system="You are kind."), edit(request=NUMBERED)
EXHAUSTED = "ResourceExhaustedError ValidationError -"
PART = respond({"vendor": "Ada"})
TALKS = [
    ("extract", INVOICE, [approve()] * 2, "ValidationError QuotaExceededError -", BY_HUMAN, READ),
    ("extract", "hello", [LARGE, approve()], "InvalidJSON ValidationError -", BY_HUMAN, READ),
    ("extract", "hello", [PART, respond(READ)], "InvalidJSON", "caller", READ),
    ("chat", "hello", [approve(), edit(model="small")], OVERLOADED, BY_HUMAN, HEARD),
    ("chat", "hello", [NOT_YET, KIND], "RateLimitError ValidationError -", BY_HUMAN, HEARD),
    ("image", "a boat", [approve()] * 2, EXHAUSTED, BY_HUMAN, "image/svg+xml"),
    ("image", "a boat", [approve(), OTHER_MODEL], EXHAUSTED, BY_HUMAN, "image/png"),
    ("review_agent", "Refund me.", [CALLER], f"{FAILED_TWICE} -", f"{BY_AGENT} human", SORTED),
    ("review_agent", "Refund me.", [respond(TICKET)], FAILED_TWICE, BY_AGENT, TICKET),
    ("review_agent", NUMBERED, [], "ValidationError -", BY_AGENT, SORTED),
]


OF_PARAMS = SchemaOfParams("output_schema")


def opened(name):
    """Return a served graph on a saver of its own."""
    graph = importlib.import_module(f"nodes.{name}").graph
    return graph.copy({"checkpointer": InMemorySaver()})


def said(text):
    """Return what a chat client sends."""
    return {"messages": [{"role": "user", "content": text}]}


@pytest.fixture
def calls(monkeypatch):
    """Count the calls of every scripted model."""
    made = []
    for name, function in SCRIPTS.items():
        module = importlib.import_module(f"nodes.{name}")
        script = getattr(module, function)

        def counted(*args, script=script):
            made.append(args[0])
            return script(*args)

        monkeypatch.setattr(module, function, counted)
    return made


@pytest.fixture
def real_models(monkeypatch):
    """Stand in for LangChain: what each model answers; one that is not named has no key."""
    texts = {}

    def init_chat_model(name, temperature):
        return FakeListChatModel(responses=[texts[name]])

    module = types.ModuleType("langchain.chat_models")
    module.init_chat_model = init_chat_model
    monkeypatch.setitem(sys.modules, "langchain", types.ModuleType("langchain"))
    monkeypatch.setitem(sys.modules, "langchain.chat_models", module)
    return texts


@pytest.mark.parametrize(("name", "text", "answers", "failures", "authors", "output"), TALKS)
def test_reviews_lead_to_success(mode, calls, name, text, answers, failures, authors, output):
    """Each graph fails as told, takes the answers, and tells the result; no call is repeated."""
    graph, config = opened(name), thread()
    state = mode.invoke(graph, said(text), config)
    for answer in answers:
        assert len(mode.call(graph_retry, "pending_reviews", graph, config)) == 1
        with suppress(AnswerRefused):  # what is asked again is a row of its own
            state = mode.call(graph_retry, "resume", graph, config, answer)
    assert state["status"] == "succeeded"
    attempts = state["attempts"]
    assert [each["failure"] and each["failure"]["type"] for each in attempts] == [
        None if each == "-" else each for each in failures.split()
    ]
    assert [each["author"] for each in attempts] == authors.split()
    assert len(calls) == len(attempts)
    last = state["messages"][-1]
    if name == "image":
        assert state["output"]["mime_type"] == output
        assert sniffed(base64.b64decode(state["output"]["data"])) == output
        picture = {"type": "image", "mime_type": output, "base64": state["output"]["data"]}
        assert last.content[1] == picture
    else:
        assert state["output"] == output
        assert last.text == (output if name == "chat" else json.dumps(output))
    assert json.loads(json.dumps(state["attempts"])) == state["attempts"]


@pytest.mark.parametrize("name", SERVED)
def test_a_rejection_is_told_in_the_chat_and_the_next_message_starts_anew(name, calls):
    """A chat goes on after a cancelled call, with a ledger of its own."""
    graph, config = opened(name), thread()
    graph.invoke(said("first"), config)
    before = len(calls)
    state = graph_retry.resume(graph, config, reject("not today"))
    assert state["messages"][-1].text.endswith("cancelled: not today")
    graph.invoke(said("second"), config)
    (review,) = graph_retry.pending_reviews(graph, config)
    assert "second" in json.dumps(review.params)
    assert (review.attempt, len(calls)) == (before, 2 * before)


def test_a_chat_knows_what_was_said_before(calls):
    """The whole conversation is in the params, so that a person can change it."""
    graph, config = opened("chat"), thread()
    given = {**said("one"), "params": {"model": "large"}}
    graph.invoke(given, config)
    state = graph.invoke(said("two"), config)
    assert state["output"] == "You wrote: two (2 messages came before.)"
    assert [turn["role"] for turn in calls[-1].history] == ["user", "assistant"]


def test_another_schema_is_extracted_and_can_be_changed_in_a_review(mode, calls):
    """Each attempt is held against the schema in its params, and so is a person's output."""
    schema = {"properties": {"colour": {"type": "string"}, "size": {"type": "integer"}}}
    graph, config = opened("extract"), thread()
    given = {"params": {"output_schema": schema, "document": "Colour: red\nSize: 42 cm"}}
    mode.invoke(graph, given, config)

    def refused(decision):
        with pytest.raises(AnswerRefused) as told:
            mode.call(graph_retry, "resume", graph, config, decision)
        return told.value.message

    def answered(decision):
        state = mode.call(graph_retry, "resume", graph, config, decision)
        return state, mode.call(graph_retry, "pending_reviews", graph, config)

    assert "/size" in refused(respond({"size": "42 cm"}))
    assert "output_schema" in refused(edit(output_schema={"type": "picture"}))
    loose = {"properties": {"size": {"type": "string", "maxLength": 3}}}
    _, (review,) = answered(edit(model="large", prompt="Read.", output_schema=json.dumps(loose)))
    assert [issue["path"] for issue in review.issues] == ["/size"]
    output = review.value["response_schema"]["$defs"]["output"]
    assert output["properties"] == loose["properties"]
    assert "/size" in refused(respond({"size": "42 cm"}))
    state, _ = answered(respond({"size": "42"}))
    assert (state["output"], len(calls)) == ({"size": "42"}, 2)
    again = [
        each.attempt["status"] for each in replay(state["attempts"], output=OF_PARAMS, check=True)
    ]
    assert again == ["failed", "failed"]


def test_what_is_no_json_schema_is_refused_before_a_call(calls):
    """The field is named."""
    with pytest.raises(ValueError, match=r"(?s)output_schema.*is not valid"):
        opened("extract").invoke({"params": {"output_schema": {"type": "invoice"}}}, thread())
    assert calls == []


SVG = {"mime_type": "image/svg+xml", "data": base64.b64encode(b"<svg></svg>").decode()}


@pytest.mark.parametrize(
    ("name", "answer", "output"),
    [
        ("extract", json.dumps(READ), READ),
        ("chat", "Hello, Ada.", "Hello, Ada."),
        ("image", "Here: <svg></svg> Enjoy!", SVG),
        ("review_agent", json.dumps(TICKET), TICKET),
    ],
)
def test_a_real_model_is_asked_through_langchain(mode, calls, real_models, name, answer, output):
    """A name with a provider in it reaches `init_chat_model`, and no script is run."""
    real_models["openai:any"] = answer
    params = {"model": "openai:any"}
    if name == "image":
        params["output_mime_type"] = "image/svg+xml"
    state = mode.invoke(opened(name), {**said("hello"), "params": params}, thread())
    assert (state["output"], calls) == (output, [])


def test_a_real_agent_reviews(mode, calls, real_models):
    """The params name the agent; it is asked before a person."""
    real_models["openai:agent"] = json.dumps({"type": "respond", "output": TICKET})
    given = {"params": {"reviewer": "openai:agent"}}
    state = mode.invoke(opened("review_agent"), given, thread())
    assert (state["output"], len(calls)) == (TICKET, 1)


@pytest.mark.parametrize("name", SERVED)
def test_a_model_that_cannot_be_had_becomes_a_review(monkeypatch, calls, name):
    """The question says what to install; a person changes the model and goes on."""
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    graph, config = opened(name), thread()
    graph.invoke({**said("hello"), "params": {"model": "openai:any"}}, config)
    (review,) = graph_retry.pending_reviews(graph, config)
    assert review.failure["type"] == "NoModelError"
    assert "pip install langchain langchain-openai" in review.error
    assert calls == []


def test_a_missing_key_is_told(real_models):
    """What the provider's package says is passed on, with the way out."""
    with pytest.raises(NoModelError, match=r"(?s)'openai:any' cannot be used.*OPENAI_API_KEY"):
        chat_model("openai:any")


def test_a_drawn_png_is_one():
    """Its chunks add up: 32 by 32 pixels of three bytes."""
    data = importlib.import_module("nodes.image").draw_png(bytes(range(6)))
    place, found = 8, {}
    while place < len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        framed = data[place + 4 : place + 8 + size]
        assert struct.unpack(">I", data[place + 8 + size : place + 12 + size]) == (
            zlib.crc32(framed),
        )
        found[framed[:4]], place = framed[4:], place + 12 + size
    assert struct.unpack(">II", found[b"IHDR"][:8]) == (32, 32)
    assert len(zlib.decompress(found[b"IDAT"])) == 32 * (1 + 3 * 32)


def test_the_sweeper_explains_itself():
    """What the file's docstring says is what Studio shows, and its form has nothing to fill in."""
    docstring = ast.get_docstring(ast.parse((ROOT / "nodes" / "sweeper.py").read_text()))
    assert SWEEPER["description"] == " ".join(docstring.split())
    sweeper = importlib.import_module("nodes.sweeper")
    assert sweeper.graph.get_input_jsonschema()["properties"] == {}


@pytest.mark.parametrize("name", SERVED)
def test_a_served_graph_explains_itself(name):
    """What the file's docstring says is what Studio shows, and every field tells its use."""
    assert set(SERVED) == set(SCRIPTS)
    text = (ROOT / "nodes" / f"{name}.py").read_text()
    docstring = ast.get_docstring(ast.parse(text))
    assert SERVED[name]["description"] == " ".join(docstring.split())
    params = importlib.import_module(f"nodes.{name}").Input.__annotations__["params"]
    assert [key for key, each in params.model_fields.items() if not each.description] == []
