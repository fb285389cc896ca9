"""A tool call names its class, so that classes with equal fields are not mixed up."""

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from pydantic import BaseModel, ConfigDict, Field

from graph_retry import AnswerRefused, AttemptsExhausted, respond, resume, retry_llm_call
from graph_retry.output import build_validator


class Approve(BaseModel):
    """One decision."""

    reason: str


class Reject(BaseModel):
    """Another decision with the same field."""

    reason: str


@dataclass
class Defer:
    """The same as a dataclass."""

    reason: str


class Titled(BaseModel):
    """A class whose tool has another name."""

    model_config = ConfigDict(title="hold_back")
    reason: str


class Pay(BaseModel):
    """A class with a number of many digits."""

    amount: Decimal


class Refund(BaseModel):
    """The same."""

    amount: Decimal


class Step(BaseModel):
    """A class with the fields of a call itself."""

    name: str
    arguments: dict[str, Any]


class Case(BaseModel):
    """A model with a decision that its fields do not tell."""

    decision: Approve | Reject


class Number(BaseModel):
    """A class that a text fits only by a conversion."""

    x: int


class Text(BaseModel):
    """A class that a text fits as it is."""

    x: str


class Yes(BaseModel):
    """A decision that a field tells."""

    kind: Literal["yes"] = "yes"
    reason: str


class No(BaseModel):
    """The other one."""

    kind: Literal["no"] = "no"
    reason: str


class Tagged(BaseModel):
    """A model with such a decision."""

    decision: No | Yes


Decision = Annotated[Approve | Reject | Defer | Titled, Field(description="one of four")]
R = {"reason": "x"}
CHOSEN = {"Approve": Approve, "Reject": Reject, "Defer": Defer, "hold_back": Titled}
AS_TEXT = {
    "a call": '{{"name": "{name}", "arguments": {arguments}}}',
    "other keys": '{{"tool": "{name}", "parameters": {arguments}}}',
    "a call of OpenAI": '{{"type": "function", "function": {{"name": "{name}", '
    '"arguments": {quoted}}}}}',
    "a key": '{{"{name}": {arguments}}}',
    "in tags": '<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>',
    "elements": "<function={name}><parameter=reason>x</parameter></function>",
    "behind a name": "functions.{name}{arguments}",
}


def run(said: Any, output: Any) -> Any:
    """Make one call without a graph, and return its output."""
    return retry_llm_call(lambda _: said, {}, output=output, review=False, max_attempts=1)


def message(*calls: tuple[str, Any]) -> AIMessage:
    """Make a message with tool calls."""
    made = [{"name": name, "args": given, "id": str(at)} for at, (name, given) in enumerate(calls)]
    return AIMessage(content="", tool_calls=made)


@pytest.mark.parametrize("name", CHOSEN)
def test_the_name_of_a_call_chooses_the_class(name: str) -> None:
    """In a message, a list of calls, and each notation of text."""
    wanted = CHOSEN[name](reason="x")
    arguments = json.dumps(R)
    assert run(message((name, R)), Decision) == wanted
    assert run(message((name, R), ("Reject", R)), list[Decision]) == [wanted, Reject(reason="x")]
    for text in AS_TEXT.values():
        said = text.format(name=name, arguments=arguments, quoted=json.dumps(arguments))
        found = run(said, Decision)
        assert type(found) is type(wanted), text
        assert found == wanted, text


def test_an_instance_keeps_its_class() -> None:
    """State keeps a call that names the class if the fields alone would give another one."""
    checked = build_validator(Decision).check(Reject(reason="x"))
    assert checked.jsonable == {"name": "Reject", "arguments": R}
    assert build_validator(Decision).rebuild(checked.jsonable) == Reject(reason="x")
    several = build_validator(list[Decision]).check([Approve(reason="x"), Defer("y")])
    assert build_validator(list[Decision]).rebuild(several.jsonable) == several.value
    for made in (Approve(reason="x"), Reject(reason="x"), Defer("x"), Titled(reason="x")):
        assert type(run(made, Decision)) is type(made)
        assert run([Approve(reason="y"), made], list[Decision])[1] == made
        said = AIMessage(content="", additional_kwargs={"parsed": made})
        assert type(run(said, Decision)) is type(made)


def test_fields_that_fit_two_classes_are_refused() -> None:
    """Pydantic would take the first class, so a person who meant the second is asked again."""
    said = build_validator(Decision).check(R).issues
    assert said[0]["message"].startswith(
        "this fits `Approve` and `hold_back` alike: name the class"
    )
    assert [one["path"] for one in build_validator(list[Decision]).check([R, R]).issues] == [
        "/0",
        "/1",
    ]
    assert build_validator(No | Yes).check({"kind": "yes", "reason": "x"}).ok
    assert build_validator(No | Yes).check({"reason": "x"}).issues
    assert type(build_validator(Number | Text).check({"x": "5"}).value) is Text, "pydantic's rule"
    assert build_validator(Approve | None).check(R).value == Approve(reason="x")
    assert build_validator(Approve | None).check(None).ok

    @entrypoint(checkpointer=InMemorySaver())
    def decide(_: str) -> Any:
        return retry_llm_call(lambda _: "?", {"n": 1}, output=Decision, key="d")

    thread: Any = {"configurable": {"thread_id": "1"}}
    decide.invoke("", thread)
    with pytest.raises(AnswerRefused, match="alike"):
        resume(decide, thread, respond(Reject(reason="x")))
    named = {"name": "Reject", "arguments": R}
    assert resume(decide, thread, respond(named)) == Reject(reason="x")


def test_an_instance_inside_another_is_never_exchanged() -> None:
    """Inside a model no call can name the class, so the first class would have been read."""
    kept = Case(decision=Approve(reason="x"))
    assert run(kept, Case) == kept
    with pytest.raises(TypeError, match="discriminator"):
        run(Case(decision=Reject(reason="x")), Case)
    tagged = Tagged(decision=Yes(reason="x"))
    assert run(tagged, Tagged) == tagged


def test_a_call_of_another_function_is_no_value_of_the_class() -> None:
    """The arguments would fit; the name says that they are something else."""
    for said in (message(("Approve", R), ("delete", R)), message(("Approve", R), ("Reject", R))):
        with pytest.raises(AttemptsExhausted, match="Approve"):
            run(said, list[Approve])
    assert run(message(("submit", R)), Approve) == Approve(reason="x"), "a tool's own name"
    assert run(message(("a", R), ("a", R)), list[Approve]) == [Approve(reason="x")] * 2


def test_mistakes_in_a_call_have_its_places() -> None:
    """An issue is told at the argument, for the class that was named."""
    checked = build_validator(Decision).check({"name": "Reject", "arguments": {"cause": "x"}})
    assert [one["path"] for one in checked.issues] == ["/arguments/reason"]
    broken = AIMessage(
        content="",
        invalid_tool_calls=[{"name": "Reject", "args": '{"reason": "x",}', "id": "1", "error": ""}],
    )
    assert run(broken, Decision) == Reject(reason="x")


def test_names_stay_where_the_type_has_a_place_for_them() -> None:
    """A list of dicts can hold them; calls of one function need none."""
    calls = [{"name": "a", "arguments": R}, {"name": "b", "arguments": R}]
    assert run(message(("a", R), ("b", R)), list[dict[str, Any]]) == calls
    assert run(message(("a", R), ("a", R)), list[dict[str, Any]]) == [R, R]


def test_digits_and_own_fields_are_kept() -> None:
    """A decimal number keeps its digits, and a class with the keys of a call is read as itself."""
    long = '{"name": "Refund", "arguments": {"amount": 0.12345678901234567890123}}'
    assert run(long, Pay | Refund) == Refund(amount=Decimal("0.12345678901234567890123"))
    step = {"name": "Approve", "arguments": R}
    assert build_validator(Step | Approve).check(step).value == Step(**step)
