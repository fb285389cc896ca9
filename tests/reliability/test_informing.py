"""What only informs stops and replaces nothing: no pause, no result and no answer."""

import threading
from collections import defaultdict

import pytest
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

import graph_retry._core.loop.run.running
import graph_retry._core.loop.run.step
from graph_retry import StaleDecision, edit
from graph_retry._core.langgraph.storage.stores import (
    MemoryStore,
    PostgresStore,
    SqliteStore,
    SqlStore,
    Store,
)
from graph_retry._core.loop.asking import reviewers
from tests.loops import Model, answer, one_call, reviews, thread
from tests.threads.test_inbox import inbox


class Fails:
    """A function that fails in one way, whatever it is given."""

    def __init__(self, error):
        self.error, self.times = error, 0

    def __call__(self, *_given, **_more):
        self.times += 1
        raise self.error


def lifetime(mode, graph, model):
    """Ask, answer, end, and begin anew; return what the thread showed on the way."""
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    shown = [review.params for review in reviews(mode, graph, thread())]
    output = answer(mode, graph, thread(), edit(n=1))["output"]
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    mode.invoke(graph, {"params": {"n": -1}}, thread())
    shown += [review.params for review in reviews(mode, graph, thread())]
    return shown, output, model.calls


AS_EVER = ([{"n": 0}, {"n": -1}], {"n": 1}, [{"n": 0}, {"n": 1}, {"n": 0}, {"n": -1}])


@pytest.mark.parametrize("option", ["notify", "on_attempt"])
@pytest.mark.parametrize("error", [OSError("no network"), TypeError("two arguments"), KeyError(1)])
def test_a_listener_that_fails_is_told_and_changes_nothing(option, error, form, mode, caplog):
    """With the function and its option in a WARNING, and without the question in the log."""
    model, fails = Model(goal=1), Fails(error)
    graph = one_call(form, mode, model, InMemorySaver(), **{option: fails})
    assert lifetime(mode, graph, model) == AS_EVER
    told = [each for each in caplog.records if f"`{option}` (" in each.getMessage()]
    assert [each.levelname for each in told] == ["WARNING"] * fails.times
    assert type(error).__name__ in told[0].getMessage()
    assert "llm_intervention" not in caplog.text


def test_a_notify_that_hangs_does_not_hold_the_question_up(form, mode, monkeypatch, caplog):
    """It goes on in its own thread, and the person is asked."""
    monkeypatch.setattr(reviewers, "_PATIENCE_S", 0.01)
    may_end = threading.Event()
    model = Model(goal=1)
    notify = lambda review: may_end.wait(60)  # noqa: E731
    graph = one_call(form, mode, model, InMemorySaver(), notify=notify)
    assert lifetime(mode, graph, model) == AS_EVER
    may_end.set()
    assert "TimeoutError" in caplog.text


STORES = (Store, MemoryStore, SqlStore, SqliteStore, PostgresStore)


@pytest.mark.parametrize("method", ["prepare", "open", "open_in", "close", "namespaces"])
def test_a_storage_that_fails_changes_nothing(method, form, mode, checkpointer, monkeypatch):
    """As with a locked database, a user without rights, or a connection that is gone."""

    async def fails(*_given):
        raise OSError("database is locked")

    model = Model(goal=1)
    graph = one_call(form, mode, model, checkpointer)
    for kind in STORES:
        if method in vars(kind):
            monkeypatch.setattr(kind, method, fails)
    assert lifetime(mode, graph, model) == AS_EVER


def test_a_search_for_ended_reviews_that_fails_changes_nothing(form, mode, monkeypatch):
    """Its warning is left out."""

    async def fails(*_given):
        raise OSError("gone")

    monkeypatch.setattr(graph_retry._core.loop.run.step, "tell_ended_reviews", fails)
    model = Model(goal=1)
    graph = one_call(form, mode, model, InMemorySaver())
    assert lifetime(mode, graph, model) == AS_EVER


def test_a_stream_that_takes_no_events_changes_nothing(form, mode, monkeypatch):
    """The writer of custom events is the application's."""
    monkeypatch.setattr(
        graph_retry._core.loop.run.running, "writer_of", lambda _config: Fails(OSError())
    )
    model = Model(goal=1)
    assert lifetime(mode, one_call(form, mode, model, InMemorySaver()), model) == AS_EVER


@pytest.mark.parametrize("verb", ["start_span", "start_as_current_span"])
def test_a_tracer_that_fails_changes_nothing(verb, form, mode, spans, monkeypatch):
    """Neither at its beginning nor at its end."""
    from opentelemetry.sdk.trace import Tracer

    monkeypatch.setattr(Tracer, verb, Fails(OSError("the exporter is gone")))
    model = Model(goal=1)
    assert lifetime(mode, one_call(form, mode, model, InMemorySaver()), model) == AS_EVER


@pytest.mark.parametrize("verb", ["end", "set_attributes", "add_event", "set_status"])
def test_a_span_that_fails_changes_nothing(verb, form, mode, spans, monkeypatch):
    """Spans are ended by code of the application's, such as an exporter."""
    from opentelemetry.sdk.trace import Span

    monkeypatch.setattr(Span, verb, Fails(OSError("the exporter is gone")))
    model = Model(goal=1)
    assert lifetime(mode, one_call(form, mode, model, InMemorySaver()), model) == AS_EVER


class Smallest(BaseCheckpointSaver):
    """A saver with only the three methods without which LangGraph cannot run."""

    def __init__(self):
        super().__init__()
        self._saved, self._writes = defaultdict(dict), defaultdict(dict)

    def put(self, config, checkpoint, metadata, new_versions):
        place = config["configurable"]
        here = place["thread_id"], place.get("checkpoint_ns", "")
        kept = self.serde.dumps_typed((checkpoint, metadata))
        self._saved[here][checkpoint["id"]] = kept, place.get("checkpoint_id")
        return self._config(here, checkpoint["id"])

    def put_writes(self, config, writes, task_id, task_path=""):
        place = config["configurable"]
        known = self._writes[place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"]]
        for number, (channel, value) in enumerate(writes):
            at = task_id, WRITES_IDX_MAP.get(channel, number)
            if at[1] < 0 or at not in known:
                known[at] = channel, self.serde.dumps_typed(value)

    def get_tuple(self, config):
        place = config["configurable"]
        here = place["thread_id"], place.get("checkpoint_ns", "")
        wanted = place.get("checkpoint_id") or max(self._saved[here], default=None)
        if wanted not in self._saved[here]:
            return None
        kept, parent = self._saved[here][wanted]
        return CheckpointTuple(
            self._config(here, wanted),
            *self.serde.loads_typed(kept),
            parent and self._config(here, parent),
            [
                (task, channel, self.serde.loads_typed(value))
                for (task, _), (channel, value) in self._writes[*here, wanted].items()
            ],
        )

    def _config(self, here, checkpoint_id):
        thread_id, namespace = here
        names = {"thread_id": thread_id, "checkpoint_ns": namespace}
        return {"configurable": {**names, "checkpoint_id": checkpoint_id}}


class ListsSimply(Smallest):
    """A saver whose `list` knows none of the options."""

    def list(self, config):
        for here, kept in self._saved.items():
            for checkpoint_id in sorted(kept, reverse=True):
                if config is None or config["configurable"]["thread_id"] == here[0]:
                    yield self.get_tuple(self._config(here, checkpoint_id))


class IsBusy(InMemorySaver):
    """A saver whose list never comes to an end in time."""

    list = alist = Fails(TimeoutError("the list took too long"))


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
@pytest.mark.parametrize("kind", [Smallest, ListsSimply, IsBusy])
def test_a_saver_without_an_optional_method_works(kind, form, mode, caplog):
    """It asks, answers and refuses as every other; a WARNING tells what it cannot do."""
    model = Model(goal=1)
    graph = one_call(form, mode, model, kind())
    assert lifetime(mode, graph, model) == AS_EVER
    with pytest.raises(StaleDecision, match="review 'gone' is not open"):
        answer(mode, graph, thread(), answers={"gone": edit(n=1)})
    assert answer(mode, graph, thread(), edit(n=1))["output"] == {"n": 1}
    with pytest.raises(StaleDecision, match="has no open review"):
        answer(mode, graph, thread(), edit(n=1))
    assert any(each.levelname == "WARNING" for each in caplog.records)


@pytest.mark.parametrize("mode", ["sync"], indirect=True)
def test_a_saver_that_lists_simply_has_an_inbox(form, mode):
    """A list needs `list` alone, and without it there is one clear error."""
    graph = one_call(form, mode, Model(), ListsSimply())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    assert len(inbox(mode, graph)) == 1
    with pytest.raises(NotImplementedError, match="`Smallest` does not list checkpoints"):
        inbox(mode, one_call(form, mode, Model(), Smallest()))
