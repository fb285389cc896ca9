"""Messages and other items of a new list are read by what they say of themselves."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from graph_retry._core.review.effects import Accepted
from tests.review.questions import judge, question
from tests.review.test_edits import edited, problem_of


class Dialogue(BaseModel):
    """A list whose item classes differ by `type` alone, which all of them have by default."""

    messages: list[SystemMessage | HumanMessage | AIMessage] = []


TURNS = [SystemMessage("Be brief."), HumanMessage("Who?")]
SPELLINGS: list[tuple[list[Any], list[BaseMessage]]] = [
    ([{"role": "user", "content": "x"}], [HumanMessage("x")]),
    ([{"type": "human", "content": "x"}], [HumanMessage("x")]),
    ([{"type": "user", "content": "x"}], [HumanMessage("x")]),
    ([{"role": "USER", "type": "human", "content": "x"}], [HumanMessage("x")]),
    (
        [{"role": "assistant", "content": "x"}, {"role": "system", "content": "y"}],
        [AIMessage("x"), SystemMessage("y")],
    ),
    (
        [HumanMessage("x"), SystemMessage("Be brief.")],
        [HumanMessage("x"), SystemMessage("Be brief.")],
    ),
]
MESSAGES: list[Any] = [
    {"messages": TURNS},
    Dialogue(messages=TURNS),  # type: ignore[arg-type]
    Dialogue(),
]


@pytest.mark.parametrize("params", MESSAGES, ids=["untyped", "typed", "typed, empty"])
@pytest.mark.parametrize(("sent", "meant"), SPELLINGS, ids=range(len(SPELLINGS)))
def test_a_message_is_of_whom_it_says(
    params: Any, sent: list[Any], meant: list[BaseMessage]
) -> None:
    """A new list is read by its own items, whatever stood in their positions before."""
    asked = question(params)
    verdict = judge({"type": "edit", "params": {"messages": sent}}, asked)
    assert isinstance(verdict, Accepted), verdict
    decoded: Any = asked.codec.decode(verdict.params or {}, verdict.types)
    after = decoded["messages"] if isinstance(decoded, dict) else decoded.messages
    assert [(type(item), item.content) for item in after] == [
        (type(item), item.content) for item in meant
    ]
    assert all("role" not in item.model_dump() for item in after)


@pytest.mark.parametrize("params", MESSAGES, ids=["untyped", "typed", "typed, empty"])
@pytest.mark.parametrize(
    "message",
    [
        {"content": "x"},
        {"role": "developer", "content": "x"},
        {"role": "user", "type": "system", "content": "x"},
    ],
)
def test_a_role_is_never_made_up(params: Any, message: dict[str, Any]) -> None:
    """A message that does not say whose it is, is asked again."""
    problem = problem_of(question(params), {"type": "edit", "params": {"messages": [message]}})
    assert "a message needs a `role` (user, assistant, system or tool)" in problem


def test_messages_that_are_plain_dicts_stay_as_they_are() -> None:
    """Params of the providers' own form keep their `role`."""
    turn = {"role": "user", "content": "x"}
    asked = question({"messages": [{"role": "system", "content": "Be brief."}]})
    assert edited(asked, {"messages": [turn]}) == {"messages": [turn]}


class Text(BaseModel):
    text: str


class Picture(BaseModel):
    url: str
    caption: str = ""


class Parts(BaseModel):
    parts: list[Text | Picture]


def test_the_items_of_a_union_are_read_by_their_own_content() -> None:
    """An item that takes another's position does not become of its class."""
    asked = question(Parts(parts=[Text(text="a"), Picture(url="u")]))
    verdict = judge({"type": "edit", "params": {"parts": [{"url": "u"}, {"text": "b"}]}}, asked)
    assert isinstance(verdict, Accepted)
    after = asked.codec.decode(verdict.params or {}, verdict.types)
    assert after == Parts(parts=[Picture(url="u"), Text(text="b")])
