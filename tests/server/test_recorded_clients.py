"""What real clients send, over HTTP: recorded answers, double clicks, two tabs."""

import asyncio
import json
from pathlib import Path

import pytest
from httpx import HTTPStatusError

from graph_retry.threads import alist_reviews
from tests.review.questions import Params, reset_form

RECORDED = json.loads(
    (Path(__file__).parent.parent / "review" / "recorded_answers.json").read_text("utf-8")
)
SHOWN = Params().model_dump(mode="json")
MESSAGE = {"role": "user", "content": "Who is it?"}


async def ask(client, *, attempt):
    """Start a thread whose model has no quota, and let it fail until this attempt is asked."""
    thread_id = (await client.threads.create())["thread_id"]
    inputs = {"messages": [MESSAGE], "params": {}}
    state = await client.runs.wait(thread_id, "extract", input=inputs)
    for _ in range(1, attempt):
        state = await client.runs.wait(thread_id, "extract", command={"resume": "approve"})
    (question,) = state["__interrupt__"]
    assert question["value"]["attempt_count"] == attempt
    return thread_id, question


async def ledger(client, thread_id):
    """Return the attempts of a thread, paused or finished."""
    state = await client.threads.get_state(thread_id, subgraphs=True)
    for task in state["tasks"]:
        return task["state"]["values"]["attempts"]
    return state["values"]["attempts"]


async def replayed(served, name):
    """Answer attempt 2 as a client did; return decision, status and the calls' params."""
    sent, _ = RECORDED[name]
    async with served.client() as client:
        thread_id, question = await ask(client, attempt=2)
        assert "an empty box sends *approve*" in question["value"]["description"]
        state = await client.runs.wait(thread_id, "extract", command={"resume": sent})
        return state["attempts"][1]["decision"], state, served.calls(thread_id)


@pytest.mark.slow
async def test_recorded_answers_do_over_http_what_the_person_clicked(served):
    """Texts, rounded numbers and `"null"` of a browser become the fields' own values again."""
    found = await asyncio.gather(*(replayed(served, name) for name in RECORDED))
    for (name, (_, meant)), (decision, state, calls) in zip(RECORDED.items(), found, strict=True):
        assert decision["channel"] == channel_of_the_client(name), name
        if name == "Agent Inbox: response":  # the params have a field for what the model is told
            assert decision["type"] == "comment"
            assert [meant["message"] in str(call) for call in calls] == [False, False, True]
            continue
        assert decision["type"] == meant["type"], name
        if meant["type"] == "reject":
            assert (len(calls), state["status"], decision["message"]) == (
                *(2, "cancelled"),
                meant["message"],
            )
            continue
        assert state["status"] == "succeeded", name
        assert state["output"] == {"name": "Ada", "age": 36}
        edited = {"attempt": 3, **SHOWN, **meant.get("params", {})}
        assert calls == [{"attempt": 1, **SHOWN}, {"attempt": 2, **SHOWN}, edited], name
        assert state["messages"][-1]["type"] == "ai"


def channel_of_the_client(name):
    """Return the channel the ledger has to show for a recorded answer."""
    client = name.partition(":")[0]
    known = {"Agent Chat UI": "agent-chat-ui", "Agent Inbox": "agent-inbox", "seed": "api"}
    return known.get(client) or ("ag-ui" if name == "AG-UI: cancelled" else "text")


def clicks(question):
    """Return what a second click or a second tab sends for the same question, by client."""
    title, review_id = question["value"]["action_request"]["action"], question["value"]["review_id"]
    form = reset_form(question["value"]["action_request"]["args"]) | {"prompt": "Read it twice."}
    return {
        "Agent Chat UI: edit": {
            "decisions": [{"type": "edit", "edited_action": {"name": title, "args": form}}]
        },
        "Agent Inbox: edit": [{"type": "edit", "args": {"action": title, "args": form}}],
        "Agent Inbox: accept": [{"type": "accept", "args": {"action": title, "args": {}}}],
        "ours, by review": {"type": "approve", "review_id": review_id},
        "ours, by attempt": {"type": "edit", "params": {"prompt": "Again."}, "attempt": 1},
        "ours, by decision": {"type": "approve", "decision_id": "click-1"},
        "Agent Chat UI: approve": {"decisions": [{"type": "approve"}]},
        "one word": "approve",
    }


REJECTIONS = {
    "Agent Chat UI: reject": {"decisions": [{"type": "reject", "message": "stop"}]},
    "Agent Inbox: a rejection": [{"type": "response", "args": "stop"}],
}
"""What a second tab sends that must not end the next attempt."""


async def clicked_twice(served, name, strategy):
    """Send one answer twice without waiting; return the second's fate and the calls.

    A rejection follows an approval.
    """
    async with served.client() as client:
        thread_id, question = await ask(client, attempt=1)
        later = REJECTIONS.get(name) or clicks(question)[name]
        earlier = "approve" if name in REJECTIONS else later
        send, other = (
            {"command": {"resume": each}, "multitask_strategy": strategy}
            for each in (earlier, later)
        )
        first = await client.runs.create(thread_id, "extract", **send)
        try:
            second = await client.runs.create(thread_id, "extract", **other)
        except HTTPStatusError as error:
            if error.response.status_code != 409:
                raise
            second = first
        await client.runs.join(thread_id, first["run_id"])
        state = await client.runs.join(thread_id, second["run_id"])
        problem = state["__interrupt__"][0]["value"]["problem"] if "__interrupt__" in state else ""
        return second is first, problem, len(served.calls(thread_id))


@pytest.mark.parametrize("strategy", ["enqueue", "reject"])
async def test_a_double_click_answers_one_question(served, strategy):
    """Queued, a second click is refused, since its run was created before the next question."""
    names = list(clicks({"value": {"action_request": {"action": "", "args": {}}, "review_id": ""}}))
    names += REJECTIONS
    found = await asyncio.gather(*(clicked_twice(served, name, strategy) for name in names))
    for name, (refused, problem, calls) in zip(names, found, strict=True):
        if strategy == "reject":
            assert (refused, problem, calls) == (True, None, 2), name
        else:
            assert (refused, calls) == (False, 2), name
            assert "sent before this question was shown" in problem, name


async def test_the_later_of_two_tabs_is_told_so(served):
    """Two tabs show one question: the second tab's edit is not mixed into the next attempt."""
    async with served.client() as client:
        thread_id, question = await ask(client, attempt=1)
        title = question["value"]["action_request"]["action"]
        for prompt in ("From the first tab.", "From the second tab."):
            form = {"action": title, "args": {"prompt": prompt}}
            state = await client.runs.wait(
                thread_id, "extract", command={"resume": [{"type": "edit", "args": form}]}
            )
        value = state["__interrupt__"][0]["value"]
        assert (value["attempt_count"], value["params"]["prompt"]) == (2, "From the first tab.")
        assert "The answer is stale" in value["problem"]
        assert [call["prompt"] for call in served.calls(thread_id)] == [
            SHOWN["prompt"],
            "From the first tab.",
        ]
        (first, _) = await ledger(client, thread_id)
        assert first["decision"]["channel"] == "agent-inbox"


BOXES = {
    "Agent Inbox: a text": "Read it twice.",
    "Agent Inbox: the word": "reject",
    "Agent Inbox: typed JSON": '{"type": "reject", "attempt": 1}',
}
"""What is typed into the response box."""

LATE = {
    "Agent Chat UI: approve": "approve",
    "Agent Chat UI: edit": None,
    "Agent Chat UI: reject": "reject",
    "Agent Inbox: accept": None,
    "Agent Inbox: edit": None,
    "Agent Inbox: a text": "comment",
    "Agent Inbox: the word": "reject",
    "Agent Inbox: typed JSON": None,
}
"""What a tab that shows attempt 1 decides about attempt 2: nothing, where it names its question."""


async def sent_late(served, name):
    """Answer attempt 1 when attempt 2 is asked; return its decision, the problem and the calls."""
    async with served.client() as client:
        thread_id, question = await ask(client, attempt=1)
        boxes = {box: [{"type": "response", "args": text}] for box, text in BOXES.items()}
        answer = (clicks(question) | REJECTIONS | boxes)[name]
        await client.runs.wait(thread_id, "extract", command={"resume": "approve"})
        state = await client.runs.wait(thread_id, "extract", command={"resume": answer})
        problem = state["__interrupt__"][0]["value"]["problem"] if "__interrupt__" in state else ""
        (_, second, *_) = await ledger(client, thread_id)
        decided = second["decision"] and second["decision"]["type"]
        return decided, problem or "", len(served.calls(thread_id))


async def test_what_a_tab_that_was_not_reloaded_decides(served):
    """What names its question is refused; a plain word decides about what is asked by then."""
    found = await asyncio.gather(*(sent_late(served, name) for name in LATE))
    for (name, meant), (decided, problem, calls) in zip(LATE.items(), found, strict=True):
        assert decided == meant, name
        assert ("The answer is stale" in problem) == (meant is None), name
        assert calls == (3 if meant in ("approve", "comment") else 2), name


async def test_null_as_an_answer_leaves_the_question_open(served):
    """LangGraph fails at `null`, which the SDK leaves out: raw HTTP gives an error, and no loss."""
    async with served.client() as client:
        thread_id, _ = await ask(client, attempt=1)
        sent = {"assistant_id": "extract", "command": {"resume": None}}
        run = await client.http.post(f"/threads/{thread_id}/runs", json=sent)
        await client.runs.join(thread_id, run["run_id"])
        assert (await client.threads.get(thread_id))["status"] == "error"
        open_ = {review.thread_id: review.attempt for review in await alist_reviews(client)}
        assert open_[thread_id] == 1
        state = await client.runs.wait(thread_id, "extract", command={"resume": "reject"})
        assert state["status"] == "cancelled"
        assert len(served.calls(thread_id)) == 1
