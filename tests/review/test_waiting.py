"""Decisions that leave a review open change its record, and decide nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from graph_retry import AnswerRefused, comment, edit, pending_reviews, resume, retry_llm_call
from graph_retry._core.review import deadline
from graph_retry._core.review.decisions import DECISION_TYPES
from graph_retry.threads import assign, attempts_of, defer, list_reviews

CONFIG: Any = {"configurable": {"thread_id": "1"}}
SOON = (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="milliseconds")


def waiting(calls: list[Any], **options: Any) -> Any:
    """Return a graph whose call waits on thread 1."""

    def ask(params: dict[str, str]) -> str:
        calls.append(params)
        return params["answer"]

    @entrypoint(checkpointer=InMemorySaver())
    def graph(_: str) -> int:
        options.setdefault("allowed_decisions", DECISION_TYPES)
        return retry_llm_call(ask, {"answer": "no"}, output=int, **options)

    graph.invoke("", CONFIG)
    return graph


def test_a_deferred_review_leaves_the_inbox_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes back by itself, and nothing was called; the ledger has who deferred it."""
    calls: list[Any] = []
    graph = waiting(calls)
    (first,) = list_reviews(graph)
    resume(graph, CONFIG, {**defer(SOON), "by": "ada"})
    assert list_reviews(graph) == []
    assert list_reviews(graph, limit=1) == []
    (review,) = pending_reviews(graph, CONFIG)
    assert review.deferred_until == SOON
    assert review.review_id != first.review_id
    assert len(calls) == 1
    monkeypatch.setattr(deadline, "now", lambda: SOON)
    assert [one.review_id for one in list_reviews(graph)] == [review.review_id]
    with pytest.raises(AnswerRefused):
        resume(graph, CONFIG, {"type": "edit", "params": 5})
    (again,) = pending_reviews(graph, CONFIG)
    assert again.deferred_until == SOON
    ledger: list[Any] = again.history
    assert ledger[-1]["decision"] is None
    assert resume(graph, CONFIG, edit(answer="7")) == 7


@pytest.mark.parametrize("until", ["tomorrow", "2020-01-01", 5])
def test_a_review_is_deferred_to_a_time_to_come(until: Any) -> None:
    """Anything else is asked again."""
    graph = waiting([])
    with pytest.raises(AnswerRefused, match="`until` expects a future time"):
        resume(graph, CONFIG, {"type": "defer", "until": until})


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: defer("tomorrow"), "`until`: give a time in ISO 8601, such as"),
        (lambda: assign(""), "`to`: give a text that is not empty; not ''"),
        (lambda: comment(""), "`message`: give a text that is not empty; not ''"),
    ],
)
def test_a_decision_that_no_review_takes_is_refused_when_it_is_made(make: Any, told: str) -> None:
    """Not only at the answer, which may be much later and in another process."""
    with pytest.raises(ValueError, match=told):
        make()


def test_only_a_person_leaves_a_review_open() -> None:
    """A reviewer agent that defers is passed over, and the person is told."""
    graph = waiting([], reviewer=lambda review: defer(SOON))
    (review,) = pending_reviews(graph, CONFIG)
    assert review.note is not None
    assert "only a person may" in review.note


def test_an_assigned_review_has_its_label_and_stays_open() -> None:
    """The inbox filters by it, and no model is called; the last decision knows of it."""
    calls: list[Any] = []
    graph = waiting(calls, labels={"tenant": "acme"})
    resume(graph, CONFIG, assign("ada"))
    (review,) = list_reviews(graph, labels={"assignee": "ada"})
    assert review.labels == {"tenant": "acme", "assignee": "ada"}
    assert list_reviews(graph, labels={"assignee": "bob"}) == []
    assert len(calls) == 1
    assert review.answer(edit(answer="7")) == 7
    (ledger,) = attempts_of(graph, CONFIG)
    decision: Any = ledger.attempts[0]["decision"]
    assert decision["type"] == "edit"
    assert [one["type"] for one in decision["before"]] == ["assign"]
