"""The checks of plug-ins hold for ours and for another's, and tell of each broken promise."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from graph_retry import AnswerRefused, Decision, resume
from graph_retry._core.output.formats.format import format_named
from graph_retry.desk.web import create_app
from graph_retry.hooks import (
    Budget,
    BudgetRule,
    SharedBudget,
    escalate,
    feedback,
    raise_limit,
    shorten_history,
)
from graph_retry.reviews import Review
from graph_retry.testing import (
    check_budget,
    check_format,
    check_hook,
    check_inbox,
    check_observer,
    check_page,
)
from graph_retry.threads import Inbox, list_reviews


async def larger(_error: object, _attempt: int, params: dict[str, Any]) -> dict[str, Any]:
    """Propose another model, as a hook of somebody else."""
    return {**params, "model": "large"}


PARAMS = {"model": "small", "prompt": "how many?", "max_tokens": 10, "messages": ["Hi"]}


@pytest.mark.parametrize(
    ("hook", "needed", "models"),
    [
        (escalate({1: {"model": "large"}}), {"model"}, ["large"]),
        (larger, {"model"}, ["large"]),
        (feedback(), {"prompt", "model"}, ["small"]),
        (raise_limit(most=100), {"max_tokens"}, []),
        (shorten_history(), {"messages"}, []),
    ],
)
def test_a_hook_keeps_its_promises(hook: Any, needed: set[str], models: list[str]) -> None:
    """A ready one and another's, which is async; some propose nothing for this failure."""
    params = {name: value for name, value in PARAMS.items() if name in needed}
    proposed = check_hook(hook, params)
    assert [each["model"] for each in proposed] == models
    assert params not in proposed


def in_place(_error: object, _attempt: int, params: dict[str, Any]) -> dict[str, Any]:
    """Change the params that were given."""
    params["model"] = "large"
    return params


def unsavable(_error: object, _attempt: int, params: dict[str, Any]) -> dict[str, Any]:
    """Propose what cannot be saved."""
    return {**params, "model": object()}


@pytest.mark.parametrize("hook", [in_place, unsavable])
def test_a_broken_hook_is_told(hook: Any) -> None:
    """What would end a call in production ends a test."""
    with pytest.raises(AssertionError, match="a hook must propose new params"):
        check_hook(hook, {"model": "small"})


class Calls(BudgetRule):
    """Another's rule: at most some attempts."""

    def exceeded(self, attempts: Any, before: Any = None) -> str | None:
        return "enough" if self.spent_on(attempts, before) >= 2 else None

    def spent_on(self, attempts: Any, before: Any = None) -> Any:
        return (before or 0) + len(attempts)


class Forgetful(Calls):
    """A rule that forgets what was spent before."""

    def spent_on(self, attempts: Any, before: Any = None) -> Any:
        return len(attempts)


@pytest.mark.parametrize("rule", [Budget(tokens=5, rounds=1), SharedBudget(seconds=9.0), Calls()])
def test_a_budget_keeps_its_promises(rule: BudgetRule) -> None:
    """Ours and another's."""
    check_budget(rule)


def test_a_broken_budget_is_told() -> None:
    """Records may be in older checkpoints, so that only their sum is left."""
    with pytest.raises(AssertionError, match="add the cost to an earlier sum"):
        check_budget(Forgetful())


def test_an_observer_is_told_every_kind_of_event() -> None:
    """One that keeps them; the check goes through all kinds."""
    kinds = list[str]()
    check_observer(lambda event: kinds.append(event.kind))
    events = importlib.import_module("graph_retry._core.loop.run.events")
    assert set(kinds) == set(events.EventKind.__args__)


@pytest.mark.parametrize(
    ("observer", "told"),
    [
        (lambda event: event.details["status"], "take `attempt_started` without an error"),
        (lambda event: event.details.clear(), "leave the event `review_asked` as it is"),
    ],
)
def test_a_broken_observer_is_told(observer: Any, told: str) -> None:
    """In a call its error would only be logged."""
    with pytest.raises(AssertionError, match=told):
        check_observer(observer)


def on_our_page(review: Review) -> str:
    """Return the HTML of a review on the page of this package."""
    graph: Any = review
    app = create_app(graph.graph, authorize=lambda _: "ada")
    with TestClient(app) as browser:
        return browser.get(f"/r/{review.key}").text


def on_own_page(review: Review) -> str:
    """Return the HTML of a review on the page of the example."""
    shown: str = importlib.import_module("examples.own_page").form_of(review)
    return shown


@pytest.mark.parametrize("show", [on_our_page, on_own_page])
def test_a_page_offers_each_decision_and_escapes(show: Callable[[Review], str]) -> None:
    """Ours, and one in eighty lines."""
    check_page(show)


@pytest.mark.parametrize(
    ("show", "told"),
    [
        (lambda review: f"approve edit reject respond comment {review.params}", "escape the texts"),
        (lambda _: "approve reject", "offer `edit`"),
    ],
)
def test_a_broken_page_is_told(show: Any, told: str) -> None:
    """A text of a model as HTML, or a decision that cannot be chosen."""
    with pytest.raises(AssertionError, match=told):
        check_page(show)


def listed(graph: Any) -> list[str]:
    """List what waits."""
    return [review.review_id for review in list_reviews(graph)]


def sent(graph: Any, config: Any, name: str, decision: Decision) -> None:
    """Answer by the name of the review."""
    resume(graph, config, answers={name: decision})


def by_inbox(graph: Any, config: Any, name: str, decision: Decision) -> None:
    """Answer by the class that pages use."""
    del config
    inbox = Inbox(graph)
    for review in inbox.reviews():
        if review.review_id == name:
            inbox.answer(review, {name: decision})


@pytest.mark.parametrize("answer", [sent, by_inbox])
def test_an_inbox_loses_no_answer(answer: Any) -> None:
    """Two ways to answer."""
    check_inbox(listed, answer)


def blindly(graph: Any, config: Any, name: str, decision: Decision) -> None:
    """Answer whatever is open now."""
    del name
    resume(graph, config, decision)


def never(graph: Any, config: Any, name: str, decision: Decision) -> None:
    """Lose an answer."""
    del graph, config, name, decision
    raise AnswerRefused("not today")


@pytest.mark.parametrize(
    ("ids", "answer", "told"),
    [
        (listed, blindly, "name the answered review"),
        (listed, never, "send an answer"),
        (lambda _: [], sent, "list what waits"),
        (lambda graph: [one.review_id for one in Inbox(graph).reviews()], sent, "hide a deferred"),
    ],
)
def test_a_broken_inbox_is_told(ids: Any, answer: Any, told: str) -> None:
    """An answer that is late is for nobody else's question."""
    with pytest.raises(AssertionError, match=told):
        check_inbox(ids, answer)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("yaml", "a: 1\nb: [x, y]", {"a": 1, "b": ["x", "y"]}),
        ("jsonl", '{"a": 1}\n{"a": 2}', [{"a": 1}, {"a": 2}]),
        ("xml", "<a>one</a>", {"a": "one"}),
    ],
)
def test_a_format_reads_what_it_tells_a_model_to_write(name: Any, text: str, value: Any) -> None:
    """The ready formats; the docstring of the check has another's."""
    written: Any = format_named(name)
    check_format(written, text, value)
