"""From raw output to the value asked for, inside the graph: repair, validation, the record."""

import asyncio
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage, ToolCall
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from pydantic import BaseModel, BeforeValidator, Field

from graph_retry import (
    AttemptsExhausted,
    Completion,
    InterventionRequired,
    approve,
    aretry_llm_call,
    create_retry_node,
    respond,
    resume,
    retry_llm_call,
)
from tests.loops import Model, answer, one_call, reviews, thread


class Person(BaseModel):
    """What is asked for."""

    name: str
    age: int


ADA = {"name": "Ada", "age": 36}


def run(result, output=Person, **options):
    """Run one call that returns `result` through the node form, never asking anybody."""
    node = create_retry_node(lambda params: result, dict, output=output, review=False, **options)
    state = node.invoke({"params": {}})
    return state, state["attempts"][-1]


@pytest.mark.parametrize(
    ("text", "repair"),
    [
        ('{"name": "Ada", "age": 36}', None),
        ('{"name": "Ada", "age": 36,}', "trailing_comma"),
        ('```json\n{"name": "Ada", "age": 36}\n```', "code_fence"),
        ('Here you are: {"name": "Ada", "age": 36}. Bye!', "surroundings"),
        ("{'name': 'Ada', 'age': 36}", "single_quotes"),
    ],
)
def test_what_syntax_alone_can_mend_costs_no_retry(text, repair):
    """The ledger keeps the raw text once and says what was read into it."""
    state, record = run(text)
    assert (state["status"], state["output"]) == ("succeeded", ADA)
    assert record["raw"] == {"text": text}
    assert record["lossless"] is True
    assert (repair in {made["kind"] for made in record["repairs"]}) == (repair is not None)
    assert (record["repaired"] is None) == (repair is None)


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ("no JSON here", "invalid_syntax"),
        ('{"name": "Ada", "age": 3', "truncated"),
        (Completion('{"name": "Ada", "age": 36', finish_reason="length"), "truncated"),
        ("I'm sorry, but I can't help with that.", "invalid_syntax"),
        (AIMessage("", additional_kwargs={"refusal": "I will not"}), "refusal"),
        (Completion("{}", finish_reason="content_filter"), "refusal"),
        ('{"name": "Ada"}', "invalid_schema"),
        ('{"name": "Ada", "age": "old"}', "invalid_schema"),
        (object(), "invalid_schema"),
    ],
)
def test_what_cannot_be_trusted_is_refused_with_its_kind(result, kind):
    """Cut off, refused, missing or wrong: the record says which, and nothing is output."""
    state, record = run(result)
    assert state["status"] == "exhausted"
    assert state.get("output") is None
    assert record["failure"]["kind"] == kind
    assert record["failure"]["message"]


def test_the_missing_end_is_supplied_only_if_the_model_said_it_was_done():
    """One missing bracket is read when the finish reason is `stop`, never when it is `length`."""
    text = '{"name": "Ada", "age": 36'
    assert run(Completion(text, finish_reason="stop"))[0]["output"] == ADA
    assert run(Completion(text, finish_reason="length"))[0]["status"] == "exhausted"
    assert run(text)[0]["status"] == "exhausted"


class Wrapped(BaseModel):
    """A model some calls return already parsed."""

    name: str
    age: int


CALL = ToolCall(name="person", args=ADA, id="1")


@pytest.mark.parametrize(
    "result",
    [
        ADA,
        Wrapped(**ADA),
        AIMessage("", tool_calls=[CALL]),
        AIMessage("text aside", additional_kwargs={"parsed": ADA}),
        AIMessage("x", additional_kwargs={"parsed": Wrapped(**ADA)}),
    ],
)
def test_structured_results_skip_repair(result):
    """A dict, a model, a tool call or a parsed value is validated as it is."""
    state, record = run(result)
    assert state["output"] == ADA
    assert record["raw"] == {"value": ADA}
    assert record["lossless"] is None


def test_repair_only_is_one_attempt_and_no_review():
    """Without retries and reviews a failure is final and carries its history."""
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(lambda params: "nothing", {}, output=Person, review=False)
    assert len(caught.value.attempts) == 1


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"repair": "none"}, "exhausted"),
        ({"repair": "minimal"}, "exhausted"),
        ({"repair": "standard"}, "succeeded"),
        ({"repair": lambda text: text.replace(",}", "}")}, "succeeded"),
        ({"repair": ("none", lambda text: text.replace(",}", "}"))}, "succeeded"),
    ],
)
def test_the_caller_decides_how_far_repair_goes(options, status):
    """Levels and a function of the caller's own decide about a trailing comma."""
    assert run('{"name": "Ada", "age": 36,}', **options)[0]["status"] == status


def test_a_guess_is_taken_only_on_request_and_flagged():
    """Level `aggressive` may guess; the ledger says so."""
    text = '{"name": "Ada", "age": 36, "tags": ["a", '
    assert run(text)[0]["status"] == "exhausted"
    state, record = run(text, repair="aggressive")
    assert state["status"] == "succeeded"
    assert record["lossless"] is False
    assert "guessed" in {made["grade"] for made in record["repairs"]}


EXACT = "12345678901234567.89"
Divided = Annotated[Decimal, BeforeValidator(lambda number: number / 1)]


@pytest.mark.parametrize(
    ("text", "output", "value"),
    [
        (f'{{"a": {EXACT}}}', dict[str, Decimal], {"a": EXACT}),
        ("[12345678901234567.89, 12345678901234567.91]", list[Decimal], [EXACT, EXACT[:-2] + "91"]),
        (f"```json\n[{EXACT}]\n```", list[Decimal], [EXACT]),
        (f'{{"a": {EXACT}}}', dict[str, Decimal | str], {"a": EXACT}),
        ("12345678901234567.0", int, 12345678901234567),
        ("12345678901234567e0", int, 12345678901234567),
    ],
)
def test_a_field_that_holds_all_digits_of_a_number_gets_them(text, output, value):
    """JSON numbers are no floats: a `Decimal` or `int` has each digit that the model wrote."""
    state, record = run(text, output)
    assert state["output"] == value
    assert record["lossless"] is True
    assert "rounded" not in {made["kind"] for made in record["repairs"]}


class Bill(BaseModel):
    """What a person corrects beside a number of many digits."""

    amount: Decimal
    lines: list[Decimal] = []
    payer: str


LINES = "99999999999999.999"
UNPAID = f'{{"amount": {EXACT}, "lines": [1.5, {LINES}], "payer": 3}}'
SHOWN = {"amount": float(EXACT), "lines": [1.5, float(LINES)]}


@pytest.mark.parametrize(
    "decision",
    [
        respond(changes={"payer": "Bob"}),
        respond({**SHOWN, "payer": "Bob"}),
        respond({**SHOWN, "amount": EXACT, "payer": "Bob"}),
    ],
    ids=["changes", "as shown", "written out"],
)
def test_a_person_who_corrects_a_field_rounds_no_other_field(decision):
    """A number that is repeated as it was shown keeps the digits that the model wrote."""
    graph = one_call("function", None, lambda _: UNPAID, InMemorySaver(), output=Bill)
    graph.invoke({"params": {}}, thread())
    exact = {"amount": Decimal(EXACT), "lines": [Decimal("1.5"), Decimal(LINES)], "payer": "Bob"}
    assert resume(graph, thread(), decision)["output"] == Bill(**exact)


@pytest.mark.parametrize("written", ["{}", '"{}"'])
def test_a_time_that_lost_digits_is_reviewed_with_or_without_quotes(written):
    """Python's times end at microseconds, and a text without quotes is no JSON."""
    text = written.format("2024-01-02T03:04:05.123456789Z")
    made = datetime(2024, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)
    options = {"output": datetime, "review": "always"}
    graph = one_call("function", None, lambda _: text, InMemorySaver(), **options)
    graph.invoke({"params": {}}, thread())
    assert resume(graph, thread(), approve())["output"] == made


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("jsonl", f'{{"amount": {EXACT}, "payer": "Bob"}}\n'),
        ("jsonl", f'[\n{{"amount": {EXACT}, "payer": "Bob"}}\n]'),
        ("yaml", f"- amount: {EXACT}\n  payer: Bob\n"),
        (None, f'[{{"amount": {EXACT}, "payer": "Bob"}}]'),
    ],
)
def test_every_format_gives_all_digits(written, text):
    """The record holds the digits as the output does, and says that nothing was lost."""
    state, record = run(text, list[Bill], format=written)
    assert state["output"] == [{"amount": EXACT, "lines": [], "payer": "Bob"}]
    assert record["parsed"] == {"value": [{"amount": EXACT, "payer": "Bob"}]}
    assert record["lossless"] is True


def test_a_list_in_xml_gives_all_digits():
    """The content of a tag is JSON."""
    text = f"<amount>1</amount><lines>[{LINES}]</lines><payer>Bob</payer>"
    state, record = run(text, Bill, format="xml")
    assert state["output"] == {"amount": "1", "lines": [LINES], "payer": "Bob"}
    assert record["lossless"] is True


@pytest.mark.parametrize(
    ("text", "output"),
    [
        (EXACT, float),
        (f'{{"a": {EXACT}}}', dict[str, Any]),
        (f"[{EXACT}, {EXACT}]", tuple[Decimal, float]),
        (f"[{EXACT},]", list[Decimal]),
        (EXACT, Divided),
    ],
)
def test_an_output_that_lost_digits_is_not_called_lossless(text, output):
    """A rounded number stays in `repairs`, and the record does not say that nothing was lost."""
    record = run(text, output)[1]
    assert record["lossless"] is False
    assert "rounded" in {made["kind"] for made in record["repairs"]}


def test_a_conversion_is_reported_and_strict_refuses_it():
    """`"36"` becomes 36 with a note in the ledger, or an issue with `strict=True`."""
    text = '{"name": "Ada", "age": "36"}'
    state, record = run(text)
    assert state["output"] == ADA
    assert [made["grade"] for made in record["repairs"]] == ["coerced"]
    _, refused = run(text, strict=True)
    assert [issue["path"] for issue in refused["issues"]] == ["/age"]


@pytest.mark.parametrize(
    ("output", "text", "value"),
    [
        (Literal["yes", "no"], " yes\n", "yes"),
        (Literal["yes", "no"], '"no"', "no"),
        (str, "any text {", "any text {"),
        (int, "42", 42),
        (list[Person], '[{"name": "Ada", "age": 36}]', [Person(**ADA)]),
        ({"type": "object", "required": ["age"]}, '{"age": 1}', {"age": 1}),
        (lambda value: value["age"] > 0, '{"age": 1}', {"age": 1}),
    ],
)
def test_any_kind_of_output_can_be_asked_for(mode, output, text, value):
    """Types, JSON Schemas and functions; the function form gives the typed value."""
    graph = one_call("function", mode, Model(lambda params: text), InMemorySaver(), output=output)
    assert mode.invoke(graph, {"params": {}}, thread())["output"] == value


def test_issues_and_raw_output_reach_the_review(form, mode):
    """A person sees by field what was wrong, and what the model wrote."""
    model = Model(lambda params: '{"name": "Ada", "age": "old"}')
    graph = one_call(form, mode, model, InMemorySaver(), output=Person)
    mode.invoke(graph, {"params": {}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert [issue["path"] for issue in review.issues] == ["/age"]
    assert "old" in review.value["raw_output"]
    state = answer(mode, graph, thread(), respond(ADA))
    assert state["output"] in (ADA, Person(**ADA))


def names_a_page(text: str) -> list[str]:
    """Refuse a text without a page in brackets."""
    return [] if "[" in text else ["name the page in brackets"]


@pytest.mark.parametrize("made", [lambda text: text, AIMessage, Completion])
def test_a_function_of_a_text_judges_prose(made):
    """No JSON is looked for where the function's parameter is a `str`."""
    state, attempt = run(made("It is blue, see [1]."), output=names_a_page)
    assert (state["output"], attempt["repairs"]) == ("It is blue, see [1].", [])
    _, attempt = run(made("It is blue."), output=names_a_page)
    assert [issue["message"] for issue in attempt["issues"]] == ["name the page in brackets"]


class Total(BaseModel):
    """An output whose field has another name in JSON."""

    total: int = Field(alias="Total")


@pytest.mark.parametrize(
    ("output", "given"),
    [(Total, Total(Total=3)), (list[Total], [Total(Total=3)]), (date, date(2030, 5, 1))],
)
def test_an_output_given_as_an_object_is_read_back_by_its_type(output, given, caplog):
    """A person's program gives an instance; state has its JSON, under aliases."""

    @entrypoint(checkpointer=InMemorySaver())
    def work(_: str) -> Any:
        return retry_llm_call(lambda params: "?", {"p": 1}, output=output) == given

    work.invoke("x", thread())
    assert resume(work, thread(), respond(given)) is True
    assert "unregistered" not in caplog.text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('Sure!\n{"n": 1,\n "m": x#@!12}', "at line 3, column 7: x#@!12}"),
        ('{"n": 1, "m": [1, 2, ...]}', "at line 1, column 22: ...]}"),
        ("There is none.", "There is none."),
    ],
)
def test_a_text_that_cannot_be_read_is_told_with_its_place(text, place):
    """The issue has the line and column, and the same failure elsewhere is still the same."""
    with pytest.raises(InterventionRequired) as raised:
        retry_llm_call(lambda params: text, {}, output=dict)
    (attempt,) = raised.value.attempts
    assert attempt["issues"][0]["received"] == place
    assert "line" not in attempt["failure"]["message"]


@pytest.mark.parametrize("text", ["{'a': '" + "x" * 5_000 + "'}", '{"a": "' + "x" * 5_000 + '"}'])
async def test_an_event_loop_goes_on_while_a_long_text_is_read(text):
    """While the reader is in a long text, a callback of the loop runs, so that nobody waits."""
    loop, ran = asyncio.get_running_loop(), threading.Event()

    def read(text):
        loop.call_soon_threadsafe(ran.set)
        assert ran.wait(30)
        return text

    value = await aretry_llm_call(
        lambda _: text, {}, output=dict[str, str], review=False, repair=("standard", read)
    )
    assert (len(value["a"]), ran.is_set()) == (5_000, True)
