"""What the package relies on in the config of a running task, and LangGraph does not document.

A failure names what a version of LangGraph has changed; `make compat` runs these on the lowest and
the newest.
"""

import asyncio

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.func import entrypoint, task
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, RetryPolicy, Send, interrupt

from graph_retry._core.langgraph import run_config
from tests.loops import thread


class Look:
    """A graph of one node that notes what its config tells, and pauses once if that is wanted."""

    def __init__(self, *, asks=False, retries=False, stream_mode="values"):
        self.told = []
        policy = RetryPolicy(max_attempts=2, initial_interval=0) if retries else None
        builder = StateGraph(dict).add_node("look", self._look, retry_policy=policy)
        graph = builder.set_entry_point("look").compile(checkpointer=InMemorySaver())
        self.asks, self.fails = asks, retries
        graph.invoke({}, thread(), stream_mode=stream_mode)
        if asks:
            graph.invoke(Command(resume="yes"), thread())

    def _look(self, _):
        configurable = get_config()["configurable"]
        self.told.append(
            {
                "configurable": configurable,
                "has_answer": run_config.has_answer(),
                "may_be_resumed": run_config.may_be_resumed(configurable),
                "node_attempt": run_config.node_attempt(configurable),
                "began_at": run_config.began_at(configurable),
            }
        )
        if self.fails:
            self.fails = False
            raise ConnectionError
        if self.asks:
            interrupt("?")
        return {}


def test_the_saver_is_in_the_configurable():
    """The loop inherits it, and reads calls from it."""
    assert isinstance(run_config.saver_in(Look().told[0]["configurable"]), InMemorySaver)


def test_the_scratchpad_has_the_answers_and_the_counter_of_subgraphs():
    """Without them a call cannot choose its namespace, nor tell whether an answer waits."""
    scratchpad = run_config.scratchpad_in(Look().told[0]["configurable"])
    assert scratchpad is not None
    assert isinstance(scratchpad.resume, list)
    assert scratchpad.subgraph_counter() == 0
    assert scratchpad.get_null_resume() is None


def test_an_answer_is_in_the_scratchpad_before_it_is_asked_for():
    """`has_answer` tells whether an `interrupt` would return at once."""
    assert [told["has_answer"] for told in Look(asks=True).told] == [False, True]


def test_answers_by_id_are_known_before_they_are_asked_for():
    """Also an answer to a question that is not asked in this run."""
    told = []

    def ask(_):
        told.append((dict(run_config.answers_by_id()), run_config.has_answer()))
        interrupt("?")
        return {}

    builder = StateGraph(dict).add_node("ask", ask).set_entry_point("ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    (asked,) = graph.invoke({}, thread())["__interrupt__"]
    graph.invoke(Command(resume={"0" * 32: "no"}), thread())
    graph.invoke(Command(resume={asked.id: "yes"}), thread())
    assert told == [({}, False), ({"0" * 32: "no"}, True), ({asked.id: "yes"}, True)]


def test_a_task_says_whether_it_runs_a_graph_or_a_function_that_invokes_it():
    """Both get the same config: only the runnable of the task tells them apart."""
    told = []

    class Inner(CompiledStateGraph):
        def stream(self, input, config=None, **options):
            told.append(run_config.is_run_by_task(config["configurable"], self))
            return super().stream(input, config, **options)

    def by_hand(_, config: RunnableConfig):
        return inner.invoke({}, config)

    plain = StateGraph(dict).add_node("look", lambda _: {}).set_entry_point("look").compile()
    inner = Inner(**vars(plain))
    for node in (inner, inner | (lambda state: state), by_hand):
        builder = StateGraph(dict).add_node("node", node).set_entry_point("node")
        builder.compile(checkpointer=InMemorySaver()).invoke({}, thread())
    assert told == [True, True, False]
    assert run_config.is_run_by_task({}, inner) is False


def test_a_plain_answer_is_taken_once():
    """`get_null_resume(True)` takes it out of the run, so that no later `interrupt` gets it."""
    taken = []

    def look(_):
        scratchpad = run_config.scratchpad_in(get_config()["configurable"])
        if scratchpad.get_null_resume() is not None:
            taken.extend([scratchpad.get_null_resume(True), scratchpad.get_null_resume(True)])
        interrupt("?")

    graph = StateGraph(dict).add_node("look", look).set_entry_point("look")
    graph = graph.compile(checkpointer=InMemorySaver())
    graph.invoke({}, thread())
    assert graph.invoke(Command(resume="yes"), thread())["__interrupt__"]
    assert taken == ["yes", None]


def test_a_run_that_goes_on_says_so():
    """The key that tells ends in `resuming`; where it is not there, a call is looked up as well."""
    _, second = Look(asks=True).told
    assert [value for key, value in second["configurable"].items() if key.endswith("resuming")] == [
        True
    ]
    assert second["may_be_resumed"] is True


def test_a_retry_policy_counts_its_attempts_and_keeps_the_scratchpad():
    """Calls are numbered anew in each attempt, under one scratchpad."""
    first, second = Look(retries=True).told
    assert [first["node_attempt"], second["node_attempt"]] == [1, 2]
    one, other = (run_config.scratchpad_in(each["configurable"]) for each in (first, second))
    assert one.get_null_resume == other.get_null_resume


def test_a_task_knows_when_it_began():
    """An answer was given no later; a retry keeps the time of the first attempt."""
    first, second = Look(retries=True).told
    assert first["began_at"] is not None
    assert first["began_at"] == second["began_at"]


@pytest.mark.parametrize(("durability", "later"), [(None, True), ("async", True), ("sync", False)])
def test_a_task_knows_whether_checkpoints_are_saved_later(durability, later):
    """Any durability but LangGraph's own is handed down under a key that ends in `durability`."""
    told = []
    graph = StateGraph(dict).add_node("look", lambda _: told.append(get_config()) or {})
    graph = graph.set_entry_point("look").compile(checkpointer=InMemorySaver())
    graph.invoke({}, thread(), durability=durability)
    assert [run_config.saves_later(each["configurable"]) for each in told] == [later]


def test_a_task_knows_the_checkpoints_that_it_began_from():
    """The map has a checkpoint for the outermost graph, and for each graph inside it."""
    saver, told = InMemorySaver(), []
    inner = StateGraph(dict).add_node("look", lambda _: told.append(get_config()) or {})
    inner = inner.set_entry_point("look").compile()
    graph = StateGraph(dict).add_node("outer", inner).set_entry_point("outer")
    graph.compile(checkpointer=saver).invoke({}, thread())
    (configurable,) = [each["configurable"] for each in told]
    for namespace, checkpoint_id in configurable["checkpoint_map"].items():
        place = {"thread_id": "1", "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
        assert saver.get_tuple({"configurable": place}).checkpoint["id"] == checkpoint_id
    assert "" in configurable["checkpoint_map"]


def test_the_channels_around_a_task_are_in_a_partial():
    """A lost output is told by the state keys of the graph around."""
    keys = run_config.state_keys_around(Look().told[0]["configurable"])
    assert keys is not None
    assert "__root__" in keys


def test_a_stream_has_modes_and_can_be_copied_without_values():
    """The loop streams no `values` into the graph around it, and changes nothing there."""
    seen = []

    def look(_):
        configurable = get_config()["configurable"]
        key = run_config.key_of(configurable, *run_config.STREAM)
        inner = run_config.inside(configurable, None)
        seen.append((configurable[key].modes, inner[key].modes))
        return {}

    graph = StateGraph(dict).add_node("look", look).set_entry_point("look").compile()
    list(graph.stream({}, stream_mode=["values", "updates"], subgraphs=True))
    ((around, inner),) = seen
    assert "values" in around
    assert inner == around - {"values"}


@pytest.mark.parametrize("form", ["node", "task"])
def test_every_fact_holds_in_a_task_of_an_entrypoint(form):
    """Calls are made in nodes and in `@task`s alike."""
    told = []

    @task
    def look():
        told.append(get_config()["configurable"])

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_):
        return look().result() if form == "task" else told.append(get_config()["configurable"])

    flow.invoke("", thread())
    (configurable,) = told
    assert run_config.saver_in(configurable) is not None
    assert run_config.scratchpad_in(configurable) is not None
    assert run_config.node_attempt(configurable) == 1


@pytest.mark.parametrize("timeout", [None, 60])
def test_a_task_knows_the_paths_of_all_tasks_around_it(timeout):
    """A fork tells the branches apart by them; also where a node has a timeout."""
    told = []

    async def leaf(_):
        configurable = get_config()["configurable"]
        told.append([path[1] for path in run_config.task_paths(configurable)])
        return {}

    inner = StateGraph(dict).add_node("leaf", leaf, timeout=timeout).set_entry_point("leaf")
    compiled = inner.compile()

    async def wrap(_):
        await compiled.ainvoke({})

    middle = StateGraph(dict).add_node("inner", wrap, timeout=timeout)
    twice = [Send("inner", {}), Send("inner", {})]
    middle.add_conditional_edges("__start__", lambda _: twice, ["inner"])
    graph = StateGraph(dict).add_node("middle", middle.compile()).set_entry_point("middle")
    asyncio.run(graph.compile(checkpointer=InMemorySaver()).ainvoke({}, thread()))
    assert sorted(told) == [["middle", 0, "leaf"], ["middle", 1, "leaf"]]


def test_the_path_of_a_task_of_an_entrypoint_holds_that_of_the_entrypoint():
    """Both are in the namespace of the `@task`."""
    told = []

    @task
    def look():
        told.extend(run_config.task_paths(get_config()["configurable"]))

    @entrypoint(checkpointer=InMemorySaver())
    def work(_):
        return look().result()

    work.invoke(1, thread())
    ((_, around, *_),) = told
    assert isinstance(around, tuple)
    assert around[1] == "work"


@pytest.mark.parametrize("mode", ["sync", "async"], indirect=True)
def test_a_call_knows_the_checkpoint_from_which_its_run_began(mode):
    """A fork of LangGraph follows the checkpoint that it continues; a copy has the same parent."""
    told = []

    def leaf(_):
        loop = run_config.outermost_loop(get_config()["configurable"])
        before = loop.prev_checkpoint_config["configurable"]["checkpoint_id"]
        found = loop.checkpoint_metadata
        told.append((found["source"], found["step"], before, bool(loop.is_replaying)))
        return {}

    inner = StateGraph(dict).add_node("leaf", leaf).set_entry_point("leaf").compile()
    builder = StateGraph(dict).add_node("inner", inner).set_entry_point("inner")
    graph = builder.compile(checkpointer=InMemorySaver())
    mode.invoke(graph, {}, thread())
    before = next(each for each in graph.get_state_history(thread()) if each.next == ("inner",))
    mode.invoke(graph, None, before.config)
    original = before.config["configurable"]["checkpoint_id"]
    fork = next(each for each in graph.get_state_history(thread()) if each.next == ("inner",))
    mode.invoke(graph, None, fork.config)

    assert told[0][0] == "loop"
    assert told[1] == ("fork", told[0][1] + 1, original, True)
    assert told[2][0] == "fork"
    assert told[2][3] is True
    graph.update_state(before.config, None, as_node="__copy__")
    copied = graph.get_state(thread())
    assert copied.parent_config == before.parent_config
    assert copied.metadata["step"] == before.metadata["step"] + 1
