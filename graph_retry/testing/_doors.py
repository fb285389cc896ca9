"""Check plug-ins: each `check_…` raises an `AssertionError` if the plug-in breaks a rule.

`waiting_thread` makes a thread that waits for a person, to try a plug-in on.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from graph_retry import (
    AttemptsExhausted,
    Decision,
    GraphRetryError,
    approve,
    aretry_llm_call,
    edit,
    pending_reviews,
    respond,
    resume,
    retry_llm_call,
)
from graph_retry.hooks import Alternatives, BudgetRule
from graph_retry.ledger import params_in
from graph_retry.observers import Event
from graph_retry.output import Format
from graph_retry.plugins import as_repr, checked, error_text
from graph_retry.reviews import DECISIONS, AnyReview, offered
from graph_retry.threads import attempts_of, defer

_HOSTILE = '<script>alert("1")</script> & `code` [link](javascript:1)'
_ALL: Any = [*DECISIONS]


@checked
def waiting_thread(
    given: Any = "many", output: Any = int, **options: Any
) -> tuple[Any, RunnableConfig]:
    """Make a thread that waits for a person, to test a page, a reviewer or an answer.

    The graph makes one call with the name `count`. Its params are `given`, and it returns them
    unchanged. Choose params that do not fit `output`, so that the call fails.

    Args:
        given: The params.
        output: The output type.
        options: Further options of the call, such as `labels`.

    Returns:
        The graph, and the config of its thread.

    Example:
        >>> from graph_retry import pending_reviews
        >>> graph, config = waiting_thread()
        >>> [(review.function_name, review.params) for review in pending_reviews(graph, config)]
        [('count', {'value': 'many'})]
    """

    def count(params: Any) -> Any:
        return params

    @entrypoint(checkpointer=InMemorySaver())
    def graph(params: Any) -> Any:
        return retry_llm_call(count, params, output=output, **options)

    config = RunnableConfig(configurable={"thread_id": "1"})
    made = cast("Any", graph)
    made.invoke(given, config)
    return made, config


def _must(holds: object, who: str, what: str) -> None:
    if not holds:
        raise AssertionError(f"{who} must {what}")


@checked
def check_hook(
    hook: Callable[..., Any], params: Any, answer: Any = "no", output: Any = int
) -> list[Any]:
    """Check a hook of `on_retry` on a failed attempt, in a sync and in an async run.

    Args:
        hook: The hook.
        params: The params of the attempt.
        answer: The model's answer. It must not fit `output`.
        output: The output type.

    Returns:
        The params that the hook proposes, as JSON; empty if it proposes nothing.

    Raises:
        AssertionError: If the hook changes the params in place, proposes params that cannot be
            saved, or proposes different params in sync and async runs.

    Example:
        >>> check_hook(lambda error, attempt, params: {**params, "n": 2}, {"n": 1})
        [{'n': 2}]
    """
    asked, options = list[Any](), {"output": output, "auto_retries": 1, "review": False}

    def ask(given: Any) -> Any:
        asked.append(given)
        return answer

    told: Any = options
    runs: list[Callable[[], Any]] = [
        lambda: asyncio.run(aretry_llm_call(ask, params, hook, **told))
    ]
    if not inspect.iscoroutinefunction(hook):
        runs.append(lambda: retry_llm_call(ask, params, hook, **told))
    proposed = list[list[Any]]()
    for run in runs:
        try:
            run()
        except AttemptsExhausted as ended:
            proposed.append([params_in(ended.attempts, n) for n in range(2, len(asked) + 1)])
        except (TypeError, ValueError) as error:
            why = error_text(error)
            raise AssertionError(f"a hook must propose new params: {why}") from error
        asked.clear()
    _must(
        proposed[0] == proposed[-1], "a hook", "propose the same params in sync and in async runs"
    )
    return proposed[0]


@checked
def check_budget(rule: BudgetRule) -> None:
    """Check a rule of the option `budget` on two attempts of a call.

    Raises:
        AssertionError: If the rule breaks a promise of `BudgetRule`.

    Example:
        >>> from graph_retry.hooks import Budget
        >>> check_budget(Budget(tokens=1_000))
    """
    graph, config = waiting_thread()
    resume(graph, config, edit(value="more"))
    first, second = attempts_of(graph, config)[0].attempts
    before = rule.spent_on([first])
    _must(json.loads(json.dumps(before)) == before, "a budget", "return a JSON value (`spent_on`)")
    both = rule.spent_on([second], before)
    _must(
        both == rule.spent_on([first, second]),
        "a budget",
        "add the cost to an earlier sum (`spent_on`)",
    )
    rule.count(first, second)
    known = [rule.exceeded([first, second]), rule.exceeded([second], before)]
    rule.count(first)
    _must(known[0] == known[1] == rule.exceeded([first, second]), "a budget", "count once each")
    said: list[Any] = [*known, rule.used_up([first]), rule.refused(), rule.unknown(first)]
    _must(
        all(isinstance(each, str | None) for each in said),
        "a budget",
        "return each reason as a text, or None",
    )


@checked
def check_observer(observer: Callable[[Event], Any]) -> None:
    """Check an observer on every kind of event.

    Raises:
        AssertionError: If the observer raises an error or changes an event.

    Example:
        >>> check_observer(lambda event: None)
    """
    wrong = list[str]()

    def watched(event: Event) -> None:
        before = deepcopy(event)
        try:
            observer(event)
        except Exception as error:  # noqa: BLE001 - the loop would only log it
            wrong.append(f"take `{event.kind}` without an error ({as_repr(error)})")
        if event != before:
            wrong.append(f"leave the event `{event.kind}` as it is")

    graph, config = waiting_thread(observers=[watched], allowed_decisions=_ALL)
    resume(graph, config, defer("2100-01-01"))
    with suppress(GraphRetryError):
        resume(graph, config, respond("many"))
    resume(graph, config, respond(3))
    retry_llm_call(lambda _: iter(["[1, ", "2]"]), "x", output=list[int], observers=[watched])
    _must(not wrong, "an observer", "; ".join(dict.fromkeys(wrong)))


@checked
def check_page(show: Callable[[AnyReview], str]) -> None:
    """Check a function that shows a review, such as a page or a message, on every kind of review.

    Args:
        show: A function that returns the text or HTML for a review. It must contain the word of
            each offered decision, and must escape all texts of a model.

    Raises:
        AssertionError: If a decision is missing, or a model's text is not escaped.

    Example:
        >>> check_page(lambda review: " ".join(review.allowed_decisions))
    """

    def suggested(_error: object, _attempt: int, _params: object) -> str:
        return "less"

    def chosen(_error: object, _attempt: int, _params: object) -> Alternatives[str]:
        return Alternatives(["less", "more"])

    def hidden(_text: str) -> str:
        return "***"

    kinds: list[dict[str, Any]] = [
        {"given": _HOSTILE, "labels": {"of": _HOSTILE}, "subject": _HOSTILE},
        {"given": "3", "review": "always"},
        {"given": {"prompt": _HOSTILE, "limit": 1}, "redact": hidden},
        {"on_retry": suggested, "allowed_decisions": _ALL},
        {"on_retry": chosen},
        {"given": [1, 2], "output": dict[str, int]},
    ]
    for options in kinds:
        for review in pending_reviews(*waiting_thread(**options)):
            text = show(review)
            for way in offered(review):
                _must(way.word in text, "a page", f"offer `{way.word}` ({review.headline})")
            _must("<script>alert" not in text, "a page", "escape the texts of models and params")


@checked
def check_inbox(
    listed: Callable[[Any], Iterable[str]],
    answer: Callable[[Any, RunnableConfig, str, Decision], Any],
) -> None:
    """Check functions that list reviews and send answers, such as the server of a page or a chat.

    Args:
        listed: A function `(graph)` that returns the ids of all open reviews that are not deferred.
        answer: A function `(graph, config, review id, decision)` that sends a decision. It may
            raise a `GraphRetryError` if the decision is not applied.

    Raises:
        AssertionError: If a review is hidden, an answer is lost, or a late answer is applied.

    Example:
        >>> from graph_retry.threads import list_reviews
        >>> check_inbox(
        ...     lambda graph: [review.review_id for review in list_reviews(graph)],
        ...     lambda graph, config, name, answer: resume(graph, config, answers={name: answer}),
        ... )
    """
    graph, config = waiting_thread(allowed_decisions=_ALL)

    def opened() -> str:
        return "".join(review.review_id for review in pending_reviews(graph, config))

    def send(name: str, decision: Decision) -> None:
        with suppress(GraphRetryError):
            answer(graph, config, name, decision)

    first = opened()
    _must(list(listed(graph)) == [first], "an inbox", "list what waits")
    send(first, respond("many"))
    second = opened()
    _must(
        second not in ("", first),
        "an inbox",
        "send an answer, and show the question again if it is refused",
    )
    _must(list(listed(graph)) == [second], "an inbox", "list a question that is asked again")
    send(first, respond(7))
    _must(
        opened() == second, "an inbox", "name the answered review, so that a late answer is refused"
    )
    send(second, defer("2100-01-01"))
    third = opened()
    _must(third not in ("", second) and not [*listed(graph)], "an inbox", "hide a deferred review")
    send(third, respond(3))
    _must(graph.get_state(config).values == 3 and not opened(), "an inbox", "apply an answer")
    send(third, approve())
    _must(len(attempts_of(graph, config)[0].attempts) == 1, "an inbox", "apply an answer once")


@checked
def check_format(
    written: Format, text: str, value: Any, schema: dict[str, Any] | None = None
) -> None:
    r"""Check your own format for the option `format` on one answer.

    Args:
        written: The format.
        text: An answer in this format.
        value: The JSON value of the answer.
        schema: The JSON Schema of the output.

    Raises:
        AssertionError: If the format cannot read the answer alone or in a code fence, if `describe`
            returns no text, or if the format accepts an empty text.

    Example:
        >>> class Counted:
        ...     name = "count"
        ...     def parse(self, text, schema):
        ...         return {"count": int(text)}
        ...     def repair(self, text):
        ...         return text.rpartition("\n```")[0].rpartition("\n")[2] or text, []
        ...     def describe(self):
        ...         return "Write a number and nothing else."
        >>> check_format(Counted(), "3", {"count": 3})
    """
    _must(written.parse(text, schema) == value, "a format", "read its own text (`parse`)")
    inside, _ = written.repair(f"Here you are:\n```{written.name}\n{text}\n```")
    _must(written.parse(inside, schema) == value, "a format", "find a fenced answer (`repair`)")
    _must(written.describe().strip(), "a format", "tell a model how to write it (`describe`)")
    try:
        written.parse("", schema)
    except Exception:  # noqa: BLE001 - a format may refuse a text by any error
        return
    _must(holds=False, who="a format", what="refuse an empty text by an error (`parse`)")
