"""Every argument of every public function and class is checked by its declared type."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any, NotRequired, get_args, get_origin

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import StateGraph

import graph_retry
import graph_retry.plugins
from graph_retry._core.ground.functions.arguments import hints_of
from graph_retry._core.ground.functions.kinds import misfit
from graph_retry._core.threads.answers.answering import pending_reviews
from graph_retry.observers import Email, Links, Slack, Teams
from graph_retry.threads import export_ledgers, resumption, rewind

RECEIVED = frozenset(
    (
        *("Checked", "Evaluation", "Event", "Exported", "Ledger", "ParsedOutput", "PendingReview"),
        *(
            "Precedent",
            "Replayed",
            "Review",
            "AttemptContext",
            "Validator",
            "Completion",
            "Offered",
            *("DecisionKind", "Reading", "Rejudged", "RunningTask", "Standing"),
        ),
    )
)
"""Classes whose objects a program receives, and the one that holds what a model's server sent."""
PARTS = frozenset(
    (
        *("Prompt", "fenced", "framed", "issue", "issue_line", "tame"),
        *("attempts_in", "author_role", "output_of", "params_in", "parts_of_messages", "tokens_of"),
        *("Call", "JsonParams", "check_inside", "read_result", "settle", "syntax_issue", "verdict"),
        *("Added", "ParamsCodec", "fields_of", "require_fields", "with_fields"),
        *("alternatives", "branch_of", "element"),
        *graph_retry.plugins.__all__,
    )
)
"""What plug-ins are made of: it runs many times within a call, so type checkers check its use."""


def public() -> dict[str, Any]:
    """Return the functions and classes that a program calls, by module and name."""
    modules = [
        graph_retry,
        *(
            importlib.import_module(f"graph_retry.{found.name}")
            for found in pkgutil.iter_modules(graph_retry.__path__)
            if not found.name.startswith("_")
        ),
    ]
    listed = {}
    for module in modules:
        for name in getattr(module, "__all__", ()):
            made = getattr(module, name)
            is_error = isinstance(made, type) and issubclass(made, Exception)
            is_ours = getattr(made, "__module__", "").startswith("graph_retry")
            is_function = inspect.isfunction(made) or isinstance(made, type)
            if is_function and is_ours and not is_error and name not in RECEIVED | PARTS:
                listed[f"{module.__name__.removeprefix('graph_retry.')}.{name}"] = made
    return listed


class Nothing:
    """A value that fits no declared type."""

    def __repr__(self) -> str:
        return "nothing"


def arguments() -> list[tuple[str, str, Any]]:
    """List each argument that has a type, with the function or class that takes it."""
    found = []
    for where, made in public().items():
        if isinstance(made, type) and is_plain(made):
            continue
        own = dataclasses.is_dataclass(made) or not isinstance(made, type)
        hints = dict(hints_of(made if own else made.__init__))
        for parameter in inspect.signature(made).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                (options,) = get_args(hints.get(parameter.name)) or (None,)
                names = hints_of(options) if options else {}
            else:
                is_named = parameter.kind is not parameter.POSITIONAL_ONLY
                is_one = parameter.kind is not parameter.VAR_POSITIONAL
                names = (
                    {parameter.name: hints.get(parameter.name, Any)} if is_one and is_named else {}
                )
            found += [
                (where, name, made)
                for name, kind in names.items()
                if misfit(Nothing(), without_marks(kind), name) is not None
            ]
    return found


def without_marks(kind: Any) -> Any:
    """Return the type of an option that need not be given."""
    return get_args(kind)[0] if get_origin(kind) is NotRequired else kind


def is_plain(made: type) -> bool:
    """Return whether a class has no arguments of its own: a `TypedDict` or a protocol."""
    return made.__init__ is object.__init__ or issubclass(made, dict) or hasattr(made, "__total__")


GIVEN = {
    "graph": entrypoint(checkpointer=InMemorySaver())(len),
    "source": InMemorySaver(),
    "config": {"configurable": {"thread_id": "1"}},
    "path": "nowhere.jsonl",
    "llm_call": str.upper,
    "params": "x",
    "params_type": str,
    "attempts": [],
    "step": "x",
    "text": "{}",
    "node": len,
    "builder": StateGraph(dict).add_node("ask", len),
}
"""Right values of arguments that have no default, where a function checks its arguments itself."""


@pytest.mark.parametrize(("where", "name", "made"), arguments())
async def test_a_value_of_no_declared_type_is_refused(where, name, made):
    """The error names the argument, and the function has done nothing."""
    needed = {
        parameter.name: GIVEN[parameter.name]
        for parameter in inspect.signature(made).parameters.values()
        if parameter.name in GIVEN and parameter.default is parameter.empty
    }
    with pytest.raises((TypeError, ValueError), match=f"`{name}"):
        await begin(made, {**needed, name: Nothing()})


async def begin(made: Any, given: dict[str, Any]) -> None:
    """Call a function or class, and go as far as its first result."""
    result = made(**given)
    if inspect.isawaitable(result):
        await result
    elif isinstance(result, Iterator):
        next(result)
    elif isinstance(result, AsyncIterator):
        await anext(result)


def entered(graph: Any, config: Any, **given: Any) -> None:
    """Begin a block that answers."""
    with resumption(graph, config, **given):
        pass


LINKS = Links("https://example.org", secret="a long random text of your own")


@pytest.mark.parametrize(
    "call",
    [
        LINKS.url_for,
        Slack(LINKS, "https://slack.example/x"),
        Teams(LINKS, "https://teams.example/x"),
        Email(LINKS, "mail.example.org", "a@example.org", "b@example.org"),
    ],
)
def test_only_a_review_can_be_linked_and_sent(call):
    """Nothing is sent."""
    with pytest.raises(TypeError, match=r"`review`: give a review, such as .*; not 'x'"):
        call("x")


@pytest.mark.parametrize(
    "answers", [graph_retry.edit(n=1), {"action": "cancel"}, "approve", [graph_retry.approve()]]
)
@pytest.mark.parametrize("how", [graph_retry.resume, entered])
def test_a_decision_in_place_of_answers_is_refused_with_the_right_argument(how, answers):
    """The review ids are missing."""
    words = "`answers`: give a dict {review_id: decision} or None; not "
    with pytest.raises(TypeError, match=re.escape(words)) as caught:
        how(GIVEN["graph"], GIVEN["config"], answers=answers)
    assert str(caught.value).endswith("Give a single decision as `decision=`.")


@pytest.mark.parametrize(
    ("call", "order"),
    [
        (lambda graph, config: graph_retry.resume(config, graph), "resume(graph, config)"),
        (lambda graph, config: pending_reviews(config, graph), "pending_reviews(graph, config)"),
        (lambda graph, config: rewind(config, graph, None), "rewind(graph, config, ledger)"),
        (lambda graph, config: export_ledgers("all.jsonl", []), "export_ledgers(ledgers, path)"),
    ],
)
def test_arguments_in_the_wrong_order_are_told_their_order(call, order):
    """The error names the arguments that came by position, in the order in which they belong."""

    @entrypoint(checkpointer=InMemorySaver())
    def graph(given: Any) -> Any:
        return given

    with pytest.raises(TypeError, match=re.escape(f" The order is `{order}`.")):
        call(graph, {"configurable": {"thread_id": "1"}})
