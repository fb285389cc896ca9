"""Retry nodes that the code of one node invokes: each has its own state, review and result."""

from contextlib import suppress
from random import random

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, Field

from graph_retry import AnswerRefused, create_retry_node, edit
from tests.identity.cities import one_node
from tests.loops import Model, answer, reviews, thread


class Text(BaseModel):
    """Params of which a default fills in a part, anew each time."""

    text: str
    seed: float = Field(default_factory=random)


def told_by(role):
    """Return a model that fails until its text is mended, and says its role."""

    def tell(params):
        if params.text == "broken":
            raise ValueError("broken")
        return f"{role} of {params.text}"

    return Model(tell)


@pytest.mark.parametrize("hands_config_on", [False, True])
@pytest.mark.parametrize("order", ["same", "other", "other later"])
def test_two_retry_nodes_with_equal_params(mode, hands_config_on, order):
    """Each keeps its own result and is asked about once, also where a new version reorders them."""
    models = {role: told_by(role) for role in ("draft", "critique")}
    nodes = {
        role: create_retry_node(mode.colour(model), Text, name=role)
        for role, model in models.items()
    }

    def node_of(roles):
        def given(config):
            return ({"params": {"text": "broken"}}, *([config] if hands_config_on else []))

        def node(state, config: RunnableConfig):
            return {"output": {role: nodes[role].invoke(*given(config)) for role in roles}}

        async def anode(state, config: RunnableConfig):
            return {"output": {role: await nodes[role].ainvoke(*given(config)) for role in roles}}

        return anode if mode.is_async else node

    saver = InMemorySaver()
    graph = one_node(node_of(["draft", "critique"]), saver)
    mode.invoke(graph, {}, thread())
    reordered = one_node(node_of(["critique", "draft"]), saver)

    asked = []
    for turn in range(4):
        if order == ("other later" if turn else "other"):
            graph = reordered
        for review in reviews(mode, graph, thread())[:1]:
            asked.append(review.function_name)
            mended = {review.review_id: edit(text=f"a {review.function_name}")}
            # In another order, the other node asks before this one is reached.
            with suppress(AnswerRefused):
                answer(mode, graph, thread(), answers=mended)

    told = mode.call(graph, "get_state", thread()).values["output"]
    assert {role: state["output"] for role, state in told.items()} == {
        "draft": "draft of a draft",
        "critique": "critique of a critique",
    }
    assert sorted(asked) == ["critique", "draft"]
    assert [len(model.calls) for model in models.values()] == [2, 2]


@pytest.mark.parametrize("hands_config_on", [False, True])
def test_calls_of_one_retry_node_in_another_order(mode, hands_config_on):
    """Each is known by its params, whether or not the function hands its config on."""

    def tell(params):
        if params["n"] == 1 and not params.get("ok"):
            raise ValueError("broken")
        return f"result of {params['n']}"

    model = Model(tell)
    retry, orders = create_retry_node(mode.colour(model), dict), [[1, 2], [2, 1], [2, 1]]

    def given(n, config):
        return ({"params": {"n": n}}, *([config] if hands_config_on else []))

    def node(state, config: RunnableConfig):
        return {"output": {n: retry.invoke(*given(n, config))["output"] for n in orders.pop(0)}}

    async def anode(state, config: RunnableConfig):
        made = {n: await retry.ainvoke(*given(n, config)) for n in orders.pop(0)}
        return {"output": {n: state["output"] for n, state in made.items()}}

    graph = one_node(anode if mode.is_async else node, InMemorySaver())
    mode.invoke(graph, {}, thread())
    ended = answer(mode, graph, thread(), edit(ok=True))
    assert ended["output"] == {1: "result of 1", 2: "result of 2"}
    assert len(model.calls) == 3
