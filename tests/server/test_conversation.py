"""A whole conversation over HTTP, with nothing but `langgraph_sdk`; model calls are counted."""

import asyncio

import pytest
from httpx import HTTPStatusError


async def ask(client, graph, inputs):
    """Start a thread and return its id and what it asks."""
    thread_id = (await client.threads.create())["thread_id"]
    return thread_id, questions(await client.runs.wait(thread_id, graph, input=inputs))


def questions(state):
    """Return the questions a run ended with, by interrupt id."""
    return {each["id"]: each["value"] for each in state.get("__interrupt__", ())}


async def answer(client, thread_id, graph, resume):
    """Answer, refusing to queue up behind another answer."""
    return await client.runs.wait(
        thread_id,
        graph,
        command={"resume": resume},
        multitask_strategy="reject",
        raise_error=False,
    )


async def conversation(served, form):
    """Edit two fields as text, answer badly, answer late, and get the typed result."""
    async with served.client() as client:
        thread_id, asked = await ask(client, form, {"params": {"n": 0}})
        ((first, value),) = asked.items()
        assert value["params"] == {"n": 0, "scale": 1.0, "note": "keep"}

        two = {"type": "edit", "params": {"n": "2", "scale": "0.5"}}
        ((second, value),) = questions(await answer(client, thread_id, form, {first: two})).items()
        assert (value["attempt_count"], value["problem"]) == (2, None)
        assert value["params"] == {"n": 2, "scale": 0.5, "note": "keep"}

        bad = {"type": "edit", "params": {"n": "many"}}
        ((third, value),) = questions(await answer(client, thread_id, form, {second: bad})).items()
        assert value["problem"] == '`n` expects a number, not "many".'
        assert (await client.threads.get(thread_id))["status"] == "interrupted"

        late = {"type": "edit", "params": {"n": 5}, "attempt": 1}
        ((fourth, value),) = questions(await answer(client, thread_id, form, {third: late})).items()
        assert "stale" in value["problem"]

        # An id that is gone is passed over by the server: nothing happens.
        await answer(client, thread_id, form, {first: {"type": "edit", "params": {"n": 9}}})
        good = {"type": "edit", "params": {"n": "4"}}
        state = await answer(client, thread_id, form, {fourth: good})
        assert state["output"] == {"n": 4}
        thread = await client.threads.get(thread_id)
        assert (thread["status"], thread["interrupts"]) == ("idle", {})
        assert [(call["n"], call["scale"]) for call in served.calls(thread_id)] == [
            (0, 1.0),
            (2, 0.5),
            (4, 0.5),
        ]


async def test_a_conversation_in_both_forms(served):
    """The params stay typed, bad and late answers are asked again, and three calls are made."""
    await asyncio.gather(*(conversation(served, form) for form in ("node", "function")))


async def ending(served, form, resume):
    """Ask, answer once, and return the final state, the thread's status and the calls."""
    async with served.client() as client:
        thread_id, asked = await ask(client, form, {"params": {"n": 0}})
        state = await answer(client, thread_id, form, dict.fromkeys(asked, resume))
        status = (await client.threads.get(thread_id))["status"]
        return state, status, len(served.calls(thread_id))


async def test_a_person_ends_a_call(served):
    """A rejection cancels, a supplied output is the result; the model is not called again."""
    stop, supply = {"type": "reject", "message": "no"}, {"type": "respond", "output": {"n": 6}}
    ends = [(form, resume) for form in ("node", "function") for resume in (stop, supply)]
    found = await asyncio.gather(*(ending(served, *each) for each in ends))
    (cancelled, *first), (supplied, *second), (raised, *third), (function, *fourth) = found
    assert [first, second, third, fourth] == [["idle", 1], ["idle", 1], ["error", 1], ["idle", 1]]
    assert cancelled["status"] == "cancelled"
    assert supplied["output"] == {"n": 6}
    assert raised["__error__"]["error"] == "CallCancelled"
    assert function["output"] == {"n": 6}


async def test_a_thread_that_is_run_refuses_answers(served):
    """While one answer is applied another one gets 409, and the model is called once for both."""
    async with served.client() as client:
        thread_id, asked = await ask(client, "node", {"params": {"n": 0}})
        slow = {"type": "edit", "params": {"n": 3, "note": f"gate-{thread_id}"}}
        resume = {"resume": dict.fromkeys(asked, slow)}
        run = await client.runs.create(
            thread_id, "node", command=resume, multitask_strategy="reject"
        )
        with pytest.raises(HTTPStatusError, match="409"):
            await answer(client, thread_id, "node", resume["resume"])
        (served.folder / f"gate-{thread_id}").touch()
        state = await client.runs.join(thread_id, run["run_id"])
        assert state["output"] == {"n": 3}
        assert len(served.calls(thread_id)) == 2


async def race(served, form):
    """Send two answers at once; return how many were accepted and which one was applied."""
    async with served.client() as client:
        thread_id, asked = await ask(client, form, {"params": {"n": 0}})
        edits = [{"type": "edit", "params": {"n": n}} for n in (4, 5)]
        sent = [answer(client, thread_id, form, dict.fromkeys(asked, each)) for each in edits]
        got = await asyncio.gather(*sent, return_exceptions=True)
        assert [each for each in got if not isinstance(each, dict | HTTPStatusError)] == []
        state = (await client.threads.get_state(thread_id))["values"]
        return state["output"], [call["n"] for call in served.calls(thread_id)]


async def test_of_two_answers_at_once_one_is_applied(served):
    """Whatever the order of arrival, the model is called for one of them, and only once."""
    results = await asyncio.gather(*(race(served, form) for form in ("node", "function") * 4))
    for output, calls in results:
        assert calls == [0, output["n"]]


async def test_twenty_reviews_are_answered_in_one_call(served):
    """A fan-out asks twenty questions at once; one command answers them all."""
    async with served.client() as client:
        thread_id, asked = await ask(client, "fan", {"items": [0] * 20})
        edits = {
            each: {"type": "edit", "params": {"n": 10 + index}} for index, each in enumerate(asked)
        }
        assert len(edits) == 20
        state = await answer(client, thread_id, "fan", edits)
        assert sorted(state["outputs"]) == list(range(10, 30))
        assert sorted(call["n"] for call in served.calls(thread_id)) == [0] * 20 + list(
            range(10, 30)
        )
