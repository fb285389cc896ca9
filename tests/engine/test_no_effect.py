"""Options that would do nothing are refused, where they are written."""

import re

import pytest
from langgraph.graph import StateGraph
from pydantic import BaseModel

from graph_retry import create_retry_node, retry_llm_call
from graph_retry.agents import RetryMiddleware
from graph_retry.hooks import Budget, SharedBudget
from graph_retry.nodes import review_nodes


class Page(BaseModel):
    """A type, in place of a JSON Schema."""


def asked(params):
    """Be a model that must not be asked."""
    pytest.fail("the model was asked")


MISTAKES = {
    "strict without a type": (
        lambda: retry_llm_call(asked, {}, strict=True),
        "`strict` needs `output`, without which it has no effect: give the type of the answer",
    ),
    "a format that nothing reads": (
        lambda: create_retry_node(asked, dict, format="yaml"),
        "`format` needs `output`",
    ),
    "a repair of nothing": (
        lambda: retry_llm_call(asked, {}, repair="aggressive"),
        "`repair` needs `output`",
    ),
    "formats without a schema": (
        lambda: retry_llm_call(asked, {}, check_formats=True),
        "`check_formats` needs `output`",
    ),
    "formats of a type": (
        lambda: retry_llm_call(asked, {}, output=Page, check_formats=True),
        "`check_formats` has no effect, because `output` is the type `Page`",
    ),
    "strict nodes without a type": (
        lambda: review_nodes(StateGraph(dict).add_node("ask", asked), strict=True),
        "`strict` needs `output`",
    ),
    "a budget without a limit": (
        lambda: retry_llm_call(asked, {}, budget=Budget()),
        "`budget` is a `Budget` without a limit",
    ),
    "a shared budget without a limit": (
        lambda: RetryMiddleware(budget=SharedBudget(per="user_id")),
        "`budget` is a `SharedBudget` without a limit",
    ),
    "tools that nothing repeats": (
        lambda: RetryMiddleware(repeatable=["search"]),
        "`repeatable` needs `transient`, without which it has no effect",
    ),
    "an approval of no tool": (
        lambda: RetryMiddleware(approve={}),
        "`approve`: give a dict of tools with True or a function",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_option_without_an_effect_is_refused(mistake):
    """Otherwise its author believes that it works."""
    make, words = MISTAKES[mistake]
    with pytest.raises(ValueError, match=re.escape(words)):
        make()


def test_options_that_have_an_effect_are_taken():
    """Options that are switched off, feedback in a format, and a limit in a class of the user."""

    class Own(Budget):
        def exceeded(self, attempts, before=None):
            return None

    assert retry_llm_call(str, "a", repair="none", strict=False, budget=Own()) == "a"
    assert retry_llm_call(str, "a", feedback="full", format="yaml") == "a"
    RetryMiddleware(repeatable=[], format="yaml", strict=True)
    builder = StateGraph(dict).add_node("read", asked).add_edge("__start__", "read")
    review_nodes(builder, nodes={"read": {"output": {"page": Page}}}, check_formats=True)
