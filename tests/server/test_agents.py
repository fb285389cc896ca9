"""An agent on `langgraph dev`, answered over HTTP as each client answers."""

import asyncio

from tests.agents.journey import CITIES, CLIENTS, MODEL_CALLS, TOLD
from tests.server.test_conversation import answer, ask


async def journey(served, client_name):
    """Bring the agent to its end with one client's answers; return what was told and called."""
    async with served.client() as client:
        given = {"messages": [{"role": "user", "content": "Where to go?"}]}
        thread_id, asked = await ask(client, "agent", given)
        state = {}
        for decide in CLIENTS[client_name]:
            ((interrupt_id, value),) = asked.items()
            assert value["problem"] is None
            state = await answer(client, thread_id, "agent", {interrupt_id: decide(value)})
            asked = {each["id"]: each["value"] for each in state.get("__interrupt__", ())}
        assert asked == {}
        messages = [said for said in state["messages"] if said["type"] == "tool"]
        told = {said["tool_call_id"]: said["content"] for said in messages}
        return told, state["structured_response"], served.calls(thread_id)


async def test_each_client_brings_an_agent_to_its_end(served):
    """Call counts are exact, and each tool result is at the call it belongs to."""
    for told, response, calls in await asyncio.gather(*(journey(served, name) for name in CLIENTS)):
        assert response == {"city": "Rome", "days": 3}
        # What a person changed is told before the result.
        assert {name: told[name].rpartition("\n")[2] for name in TOLD} == TOLD
        assert sorted(call["city"] for call in calls if "city" in call) == CITIES
        assert sum("model" in call for call in calls) == MODEL_CALLS
