"""The options are listed for users, for type checkers and for validation: all say the same."""

import dataclasses
import inspect
import re
from pathlib import Path

import pytest
from langgraph.types import RetryPolicy

from graph_retry import RetryOptions, create_retry_node, retry_llm_call
from graph_retry._core.loop.run.settings import Settings
from graph_retry.hooks._budget import Budget
from graph_retry.options import settle

NAMES = [*RetryOptions.__annotations__]
PAGE = (Path(__file__).parent.parent.parent / "docs" / "options.md").read_text()


def documented():
    """Return what the docstring of `RetryOptions` says of each option."""
    # Python 3.13 takes the indentation out of docstrings, older ones keep it.
    text = inspect.cleandoc(RetryOptions.__doc__ or "")
    entries = re.findall(r"^(\w+): (.*?)(?=^\w+: |\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: " ".join(told.split()) for name, told in entries}


def test_each_option_is_documented_in_the_order_of_its_type():
    """`help(RetryOptions)` tells all of them, once."""
    assert [*documented()] == NAMES


def test_settings_have_a_field_for_each_option_and_no_other():
    """What the type checker allows is what is validated; our own feedback is given beside it."""
    names = {field.name for field in dataclasses.fields(Settings)} - {"own_feedback"}
    assert sorted(names) == sorted(NAMES)


def test_the_table_of_the_page_lists_each_option_once():
    """A stranger finds every option there."""
    table = PAGE.partition("| option | default | meaning |")[2].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(listed) == sorted(NAMES)


SIMPLE = (bool, int, str, float)


def test_documented_defaults_are_the_defaults():
    """`(default …)` in a docstring is what `settle` fills in."""
    settings = settle("ask", "node", {})
    checked = []
    for name, told in documented().items():
        default = getattr(settings, name)
        stated = re.search(r"\(default (None|True|False|\d+)\b", told)
        if stated is not None:
            assert stated[1] == str(default), name
            checked.append(name)
        elif isinstance(default, bool) or default is None:
            assert name == "key", f"the default of `{name}` is not told"
    assert len(checked) > 10


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("max_attempts", 0, "`max_attempts`: give a whole number from 1; not 0."),
        ("auto_retries", -1, "`auto_retries`: give a whole number from 0; not -1."),
        ("timeout", 0, "`timeout`: give a number of seconds above 0 (at most"),
        (
            "review",
            "yes",
            "`review`: give True or False, 'always', or a function that takes only an `Attempt`",
        ),
        (
            "repair",
            "much",
            "`repair`: give 'none', 'minimal', 'standard' or 'aggressive', a function",
        ),
        (
            "allowed_decisions",
            [],
            "`allowed_decisions`: give a list that is not empty, each item 'approve', ",
        ),
        ("allowed_decisions", ["approv"], "not 'approv'. Did you mean `approve`?"),
        ("budget", Budget, "`budget`: give a `SharedBudget`, your own `BudgetRule`"),
        ("budget", 1000, "such as `Budget(tokens=10_000)`; not 1000."),
        ("reviewer", "gpt", "`reviewer`: give a function `(review)`, a `Runnable` or a list"),
        (
            "allowed_decisions",
            "edit",
            "`allowed_decisions`: give a list that is not empty, each item 'approve', ",
        ),
        ("locked", "prompt", "`locked`: give a list of texts; not 'prompt'."),
        ("labels", ["acme"], "`labels`: give a dict of texts by name; not ['acme']."),
        ("labels", {"tenant": 7}, "`labels['tenant']`: give a text; not 7."),
        ("transient", 3, "`transient`: give a `RetryPolicy`; not 3."),
        ("transient", RetryPolicy(retry_on=KeyError), "`transient` has `retry_on`"),
        ("default_decision", {"type": "approve"}, "`default_decision` needs `expires_after`"),
    ],
)
def test_a_value_that_is_not_allowed_is_named(option, value, words):
    """The error says which option, what is allowed and what came."""
    for make in (lambda **o: create_retry_node(print, dict, **o), retry):
        with pytest.raises(ValueError, match=re.escape(words)):
            make(**{option: value})


def retry(**options):
    """Make a call whose options are refused before its model is asked."""
    return retry_llm_call(lambda params: pytest.fail("the model was asked"), {}, **options)
