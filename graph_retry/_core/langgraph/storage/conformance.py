"""Check a storage of checkpoints, such as your own subclass of `graph_retry.threads.Store`."""

from __future__ import annotations

from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, empty_checkpoint

from graph_retry._core.ground.functions.arguments import async_twin, in_sync
from graph_retry._core.ground.functions.awaiting import sleep
from graph_retry._core.langgraph.storage.checkpoints import (
    OpenReview,
    newest_checkpoint,
    place_of,
    put_checkpoint,
    put_writes,
    writers_of,
)
from graph_retry._core.langgraph.storage.stores import store_of


@in_sync
async def check_store(
    saver: BaseCheckpointSaver[Any], other: BaseCheckpointSaver[Any] | None = None
) -> None:
    """Check that the storage of a saver keeps what `graph_retry.threads.Store` promises.

    Args:
        saver: An empty saver, after its `setup`.
        other: A second saver with its own connection to the storage, to check the lock of a thread.

    Raises:
        AssertionError: If the storage breaks a promise. The message says which promise.

    Example:
        >>> from langgraph.checkpoint.memory import InMemorySaver
        >>> from graph_retry.testing import check_store
        >>> check_store(InMemorySaver())
    """
    store = store_of(saver)
    _must(store_of(saver).identity is store.identity, "`identity` is the same object each time")
    await _check_saved(saver)
    if store.keeps_reviews:
        await _check_reviews(saver)
    if other is not None:
        await _check_lock(saver, other)


acheck_store = async_twin(check_store)


def _must(holds: object, what: str) -> None:
    if not holds:
        raise AssertionError(f"a storage must do this: {what}")


async def _check_saved(saver: BaseCheckpointSaver[Any]) -> None:
    store, ids = store_of(saver), list[str]()
    for thread_id, namespace in (("a", ""), ("a", "n|x"), ("a", "o"), ("b", "n|y")):
        new = empty_checkpoint()
        ids.append(new["id"])
        metadata: Any = {"source": "input", "step": -1}
        await put_checkpoint(saver, place_of(thread_id, namespace), new, metadata)
        _must(await store.is_saved(thread_id, namespace, ids[-1]), "`is_saved` knows what was put")
        is_elsewhere = await store.is_saved(thread_id, "other", ids[-1])
        _must(not is_elsewhere, "`is_saved` does not know another place")
    found = {start: sorted(await store.namespaces("a", start)) for start in ("", "n", "_")}
    wanted = {"": ["", "n|x", "o"], "n": ["n|x"], "_": []}
    _must(found == wanted, "`namespaces` lists those of the thread that begin as given")
    before, last = place_of("b", "n|y", ids[-1]), empty_checkpoint()
    await put_writes(saver, before, [("n", 1), ("m", 2)], "1")
    await put_checkpoint(saver, before, last, {"source": "loop", "step": 0, "parents": {}})
    newest = await newest_checkpoint(saver, "b", "n|y")
    is_last = newest is not None and newest.checkpoint["id"] == last["id"]
    is_apart = is_last and not writers_of(cast("CheckpointTuple", newest))
    _must(is_apart, "`get_tuple` returns the newest checkpoint, with its own writes only")
    _must(await store.threads() == ["b", "a"], "`threads` lists the one that ran last first")


async def _check_reviews(saver: BaseCheckpointSaver[Any]) -> None:
    store = store_of(saver)
    first = OpenReview("a", "n", "1", "2020-01-01/1")
    second, third = (
        OpenReview("a", "o", "2", "2020-01-02/2"),
        OpenReview("b", "n", "3", "2020-01-03"),
    )
    again = first._replace(review_id="4", place="2020-01-04/4")
    await store.prepare()
    _must(not await store.is_filled(), "`is_filled` waits for `set_filled`")
    await store.open(first)
    await store.fill([first._replace(review_id="0", place="2019/0"), second, third])
    _must(not await store.is_filled(), "`is_filled` waits for `set_filled`")
    await store.set_filled()
    _must(await store.is_filled(), "`set_filled` is kept")
    listed = await store.open_reviews(None, 9)
    _must(listed == [third, second, first], "`fill` keeps what is there; the newest is first")
    listed = await store.open_reviews(third.place, 1)
    _must(listed == [second], "`open_reviews` begins before the place given, and keeps the limit")
    await store.open(again)
    _must(await store.open_in("a") == {again, second}, "`open` replaces a call's earlier question")
    await store.close(first)
    _must(await store.open_in("a") == {again, second}, "`close` leaves a newer question open")
    for each in (again, second, third):
        await store.close(each)
    _must(await store.open_reviews(None, 9) == [], "`close` forgets, and `set_filled` is no review")


async def _check_lock(saver: BaseCheckpointSaver[Any], other: BaseCheckpointSaver[Any]) -> None:
    locks = [
        await store_of(each).lock(name) for each, name in ((saver, "a"), (other, "a"), (other, "b"))
    ]
    if None in locks:
        return
    ours, theirs, free = cast("list[Any]", locks)
    try:
        held = [each.try_acquire() for each in (ours, theirs, free)]
        _must(held == [True, False, True], "`lock` keeps others out, of this thread only")
        ours.release()
        # A database frees the lock of a connection soon after its end.
        is_free = False
        for _ in range(100):
            if is_free := theirs.try_acquire():
                break
            await sleep(0.01)
        _must(is_free, "a released lock can be acquired")
    finally:
        for each in (ours, theirs, free):
            each.release()
