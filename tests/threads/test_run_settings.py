"""What a run is given beside its thread reaches the run that an answer starts, too."""

import time
from dataclasses import dataclass

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import START, StateGraph
from langgraph.runtime import get_runtime

import graph_retry.threads
from graph_retry import aretry_llm_call, create_retry_node, edit, retry_llm_call
from graph_retry._core.review.deadline import is_expired
from tests.loops import Model, State, answer, one_call, reviews, thread


@dataclass
class Context:
    """What LangGraph gives to the nodes of one run, and saves nowhere."""

    tenant: str


class Recorder(BaseCallbackHandler):
    """A callback handler that remembers the tags of the outermost runs."""

    def __init__(self):
        self.tags = []

    def on_chain_start(self, serialized, inputs, *, parent_run_id=None, tags=None, **more):
        if parent_run_id is None:
            self.tags += tags or []


def told_call(told):
    """Make a model that fails below 1 and notes the tenant and the user it is called for."""

    def call(params):
        user = get_config()["configurable"].get("user_id")
        told.append((get_runtime(Context).context.tenant, user))
        return Model(goal=1)(params)

    return call


def told_graph(form, mode, saver, told, **options):
    """Compile one call whose model needs a context."""
    llm_call = mode.colour(told_call(told))
    options |= {"output": dict[str, int], "name": "count"}
    if form == "node":
        node = create_retry_node(llm_call, dict, **options)
    elif mode.is_async:

        async def node(state: State) -> State:
            return {"output": await aretry_llm_call(llm_call, state["params"], **options)}
    else:

        def node(state: State) -> State:
            return {"output": retry_llm_call(llm_call, state["params"], **options)}

    builder = StateGraph(State, context_schema=Context).add_node("ask", node)
    return builder.add_edge(START, "ask").compile(checkpointer=saver)


def config_of(user="ada", **more):
    """Return the config of thread 1 for a user."""
    return {"configurable": {"thread_id": "1", "user_id": user}, **more}


def by_resume(mode, graph, context):
    answer(mode, graph, config_of(), edit(n=1), context=context)


def by_the_review(mode, graph, context):
    (review,) = reviews(mode, graph, config_of())
    mode.call(review, "answer", edit(n=1), context=context)


def by_the_inbox(mode, graph, context):
    given = {"configurable": {"user_id": "ada"}}
    (review,) = mode.call(graph_retry.threads, "list_reviews", graph, config=given)
    mode.call(review, "answer", edit(n=1), context=context)


def by_rewind_of_a_paused_call(mode, graph, context):
    change = {"attempt": 1, "params": {"n": 1}, "context": context}
    mode.call(graph_retry.threads, "rewind", graph, config_of(), **change)


def by_rewind_of_a_finished_call(mode, graph, context):
    by_resume(mode, graph, context)
    change = {"attempt": 2, "params": {"n": 2}, "context": context}
    mode.call(graph_retry.threads, "rewind", graph, config_of(), **change)


def by_expiry(mode, graph, context):
    (review,) = reviews(mode, graph, config_of())
    while not is_expired(review.expires_at):
        time.sleep(0.001)
    more = {"config": {"configurable": {"user_id": "ada"}}, "context": context}
    mode.call(graph_retry.threads, "expire_reviews", graph, **more)


WAYS = {
    by_resume: {},
    by_the_review: {},
    by_the_inbox: {},
    by_rewind_of_a_paused_call: {},
    by_rewind_of_a_finished_call: {},
    by_expiry: {"expires_after": 0.001, "default_decision": edit(n=1)},
}


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_brings_context_and_config_along(form, mode, checkpointer, way):
    """Whoever answers gives the run what `invoke` gave to the first one."""
    told = []
    graph = told_graph(form, mode, checkpointer, told, **WAYS[way])
    mode.invoke(graph, {"params": {"n": 0}}, config_of(), context=Context("north"))
    way(mode, graph, {"tenant": "south"})
    calls = 3 if way is by_rewind_of_a_finished_call else 2
    assert told == [("north", "ada"), *[("south", "ada")] * (calls - 1)]
    assert mode.call(graph, "get_state", thread()).values["output"]["n"] == calls - 1


def test_callbacks_and_tags_of_the_config_are_kept(mode):
    """A review's own config carries them from the list to the run."""
    recorder = Recorder()
    graph = one_call("node", mode, Model(goal=1), InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    given = {"callbacks": [recorder], "tags": ["swept"], "metadata": {"team": "a"}}
    (review,) = mode.call(graph_retry.threads, "list_reviews", graph, config=given)
    assert review.config == {**given, "configurable": {"thread_id": "1"}}
    mode.call(review, "answer", edit(n=1))
    assert recorder.tags == ["swept"]


REFUSED = [
    (thread(), ValueError, "`config` has `thread_id`"),
    ({"configurable": {"checkpoint_ns": ""}}, ValueError, "`config` has `checkpoint_ns`"),
    ("1", TypeError, "`config`: give a config"),
]


@pytest.mark.parametrize(("config", "error", "says"), REFUSED)
@pytest.mark.parametrize(
    "verb", [graph_retry.threads.list_reviews, graph_retry.threads.expire_reviews]
)
def test_a_config_for_many_threads_names_none(verb, config, error, says):
    """Taken for one thread's it would be given to the runs of all."""
    with pytest.raises(error, match=says):
        verb(InMemorySaver(), config=config)
