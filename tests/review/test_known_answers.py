"""What an answer means is known, or it is asked again: no answer is guessed, and none is lost."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.types import Command

from graph_retry import (
    AnswerRefused,
    approve,
    comment,
    edit,
    pending_reviews,
    resume,
    retry_llm_call,
)
from graph_retry._core.review.effects import Accepted
from graph_retry._core.review.review_record import Refused
from tests.review.questions import TITLE, judge, question

CONFIG: Any = {"configurable": {"thread_id": "1"}}


def boxed(text: str) -> Any:
    """Return what Agent Inbox sends for a text in its response box."""
    return [{"type": "response", "args": text}]


def asked() -> Any:
    """Ask about params that a comment can be put into."""
    return question(with_comment=lambda message: ({"told": message}, {}))


@pytest.mark.parametrize(
    ("typed", "decision"),
    [
        ("reject: not an invoice", {"type": "reject", "message": "not an invoice"}),
        ("Reject.", {"type": "reject", "message": None}),
        ("stop", {"type": "reject", "message": None}),
        ("No.", {"type": "reject", "message": None}),
        ("cancelled", {"type": "reject", "message": None}),
        ("Retry!", {"type": "approve"}),
        ("comment: be brief", {"type": "comment", "message": "be brief"}),
        ('edit: {"top_k": 9}', {"type": "edit", "params": {"top_k": 9}}),
        (
            'respond: {"name": "Ada", "age": 36}',
            {"type": "respond", "output": {"name": "Ada", "age": 36}},
        ),
    ],
)
def test_a_word_of_the_table_decides_in_every_channel(typed: str, decision: Any) -> None:
    """Alone or before a colon it is the decision, in the response box and as a plain text."""
    for answer in (typed, boxed(typed)):
        verdict = judge(answer, asked())
        assert isinstance(verdict, Accepted), verdict
        assert verdict.decision == decision


@pytest.mark.parametrize(
    "typed",
    [
        '{"type": "reject"',
        "{'type': 'reject'}",
        '[{"type": "reject"]',
        '`{"type": "rejcet"}`',
        '{"no": "decision"}',
    ],
)
def test_broken_json_in_the_response_box_is_asked_again(typed: str) -> None:
    """It was meant to decide, so it is no comment that pays for a call."""
    assert isinstance(judge(boxed(typed), asked()), Refused)


def test_other_words_in_the_response_box_are_a_comment() -> None:
    """Where no word of the table comes first, a person tells the model something."""
    verdict = judge(boxed("not the total: the net sum [page 2]"), asked())
    assert isinstance(verdict, Accepted)
    assert verdict.decision["type"] == "comment"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"type": "edit", "output": 1}, 'To respond, send {"type": "respond", "output": …}.'),
        (comment("hi"), "no prompt or messages"),
        ({"type": "accept"}, "no output could be read"),
        ({"type": "reject"}, "`allowed_decisions` does not allow it"),
    ],
)
def test_a_refusal_says_why(answer: Any, why: str) -> None:
    """What is not allowed is not allowed for a reason, and a misplaced key has a right place."""
    verdict = judge(answer, question(allowed=("approve", "edit", "comment", "accept", "respond")))
    assert isinstance(verdict, Refused)
    assert why in verdict.problem
    assert "revisedParams" not in verdict.problem


@pytest.mark.parametrize(
    ("params", "answer", "why"),
    [
        ("a", edit(prompt="b"), "edit(value=…)"),
        ("a", edit(value=5), "expects a text"),
        ({"model": "small"}, edit(modle="large"), "Did you mean `model`?"),
        (
            {"model": "small"},
            edit(model="large", by="ada"),
            'write it beside `params`, as in {**edit(…), "by": …}. To add such a field, send both.',
        ),
    ],
)
def test_an_edit_of_untyped_params_is_known_or_refused(params: Any, answer: Any, why: str) -> None:
    """A bare text stays text, and a misspelt key is no new field."""
    verdict = judge(answer, question(params))
    assert isinstance(verdict, Refused)
    assert why in verdict.problem


def test_a_field_with_a_name_like_another_can_be_added() -> None:
    """Whoever sends both means both."""
    verdict = judge(edit(modle="x", model="small"), question({"model": "small"}))
    assert isinstance(verdict, Accepted)
    assert verdict.params == {"model": "small", "modle": "x"}


@pytest.mark.parametrize(
    ("params", "answer"),
    [
        ({"channel": "mail"}, edit(channel="post")),
        ({"model": "small"}, {**edit(channel="post"), "channel": "python"}),
    ],
)
def test_a_field_with_the_name_of_a_key_can_be_edited_and_added(params: Any, answer: Any) -> None:
    """If the params have it, or if the decision has this key as well."""
    verdict = judge(answer, question(params))
    assert isinstance(verdict, Accepted)
    assert verdict.params == {**params, "channel": "post"}


def test_edit_of_a_text_says_how_a_bare_value_is_edited() -> None:
    """`edit("b")` is no edit yet."""
    with pytest.raises(TypeError, match=r"edit\(value=…\)"):
        edit("b")  # type: ignore[arg-type]


def test_locked_fields_exist() -> None:
    """A misspelt `locked` would protect nothing, so the model is not called."""
    calls: list[Any] = []

    @entrypoint(checkpointer=InMemorySaver())
    def ask(_: str) -> Any:
        return retry_llm_call(calls.append, {"prompt": "a"}, locked=["promt"])

    with pytest.raises(ValueError, match="`locked` names `promt`"):
        ask.invoke("", CONFIG)
    assert not calls


def ask_for_pages(made: list[str]) -> Any:
    """Return a graph whose one node asks about two pages by calls of one name."""

    def read(params: dict[str, str]) -> str:
        made.append(params["page"])
        return "no" if params["page"] in ("1", "2") else "7"

    @entrypoint(checkpointer=InMemorySaver())
    def pages(_: str) -> list[int]:
        return [retry_llm_call(read, {"page": n}, output=int, name="page") for n in ("1", "2")]

    return pages


@pytest.mark.parametrize(
    "late",
    [
        lambda title: {
            "decisions": [{"type": "edit", "edited_action": {"name": title, "args": {"page": "8"}}}]
        },
        lambda title: [{"type": "accept", "args": {"action": title, "args": {"page": "1"}}}],
        lambda title: boxed(f'{{"type": "reject", "review_id": "{title[-7:-1]}"}}'),
    ],
    ids=["Agent Chat UI: Submit", "Agent Inbox: Accept", "Agent Inbox: the id of the title"],
)
def test_a_late_click_is_for_the_call_whose_question_was_clicked(late: Any) -> None:
    """Calls of one name have titles of their own: no click on page one is applied to page two."""
    made: list[str] = []
    pages = ask_for_pages(made)
    pages.invoke("", CONFIG)
    (first,) = pending_reviews(pages, CONFIG)
    title = first.value["action_request"]["action"]
    resume(pages, CONFIG, edit(page="7"))
    (asked_now,) = pending_reviews(pages, CONFIG)
    before = list(made)
    pages.invoke(Command(resume=late(title)), CONFIG)
    (second,) = pending_reviews(pages, CONFIG)
    assert second.problem is not None
    assert "stale" in second.problem
    assert asked_now.review_id not in second.problem  # An answer to this id would be stale as well.
    assert made == before


def test_the_id_of_a_title_names_its_question() -> None:
    """A person who can only read the title names the question by it, also after a refusal."""
    made: list[str] = []
    pages = ask_for_pages(made)
    pages.invoke("", CONFIG)
    pages.invoke(Command(resume="perhaps"), CONFIG)
    (first,) = pending_reviews(pages, CONFIG)
    short = first.value["action_request"]["action"][-7:-1]
    typed = f'{{"type": "edit", "params": {{"page": "7"}}, "review_id": "{short}"}}'
    pages.invoke(Command(resume=boxed(typed)), CONFIG)
    (second,) = pending_reviews(pages, CONFIG)
    assert (made, second.problem) == (["1", "7", "2"], None)


def test_a_refused_form_is_shown_again_as_typed_behind_the_reason() -> None:
    """Fields that could be read stay, and an approval of what is shown then takes them."""
    made: list[Any] = []

    def ask(params: dict[str, Any]) -> str:
        made.append(params)
        return "no" if len(made) == 1 else "7"

    @entrypoint(checkpointer=InMemorySaver())
    def count(_: str) -> Any:
        return retry_llm_call(ask, {"model": "small", "top": 5, "heat": 0.5}, output=int)

    count.invoke("", CONFIG)
    (review,) = pending_reviews(count, CONFIG)
    title = review.value["action_request"]["action"]
    fields = {"model": "large", "top": "many", "heat": "0.1"}
    with pytest.raises(AnswerRefused):
        resume(count, CONFIG, [{"type": "edit", "args": {"action": title, "args": fields}}])
    (again,) = pending_reviews(count, CONFIG)
    shown = again.value["action_request"]
    assert shown["args"] == {"model": "large", "top": 5, "heat": 0.1}
    assert shown["action"].startswith("Not applied: 'top' expects a number")
    assert again.note is not None
    assert "as typed" in again.note
    resume(count, CONFIG, approve())
    assert made[1:] == [{"model": "large", "top": 5, "heat": 0.1}]


def test_a_refused_edit_of_a_program_leaves_nothing_behind() -> None:
    """Only forms lose what was typed; a program sends its edit again as a whole."""
    verdict = judge(edit(temperature=0.2, top_k="x"), question())
    assert isinstance(verdict, Refused)
    assert verdict.kept == {}


def test_titles_without_their_id_name_the_attempt() -> None:
    """Answers written by hand, and those recorded before titles had ids, are understood."""
    answer = {"type": "approve", "action": TITLE.removesuffix(" [r2]")}
    assert isinstance(judge(answer, question()), Accepted)
