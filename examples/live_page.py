"""A web page that shows a model's answer while it is written, and takes a person's answer.

It needs the extra `web` and httpx. To see it: `uvicorn examples.live_page:app`, then a browser.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from graph_retry import AnswerRefused, StaleDecision, apending_reviews, aretry_llm_call
from graph_retry.threads import aresumption

PAGE = """<!doctype html><meta name=viewport content=width=device-width><h1>Summary</h1>
<pre id=out></pre><p id=log></p><form id=ask hidden><input name=model placeholder=model>
<button>Call again</button></form><script>
const $ = id => document.getElementById(id), thread = Math.random(); let review
async function run(body) {
  const answer = await fetch("run/" + thread, {method: "POST", body: JSON.stringify(body)}),
    reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let text = "", part, events; part = await reader.read(), !part.done; text = events.pop()) {
    events = (text + part.value).split("\\n\\n")
    events.slice(0, -1).forEach(event => show(JSON.parse(event.slice(6)))) } }
function show(event) { if (event.value) $("out").textContent = JSON.stringify(event.value, null, 2)
  $("log").append(event.event.replace("_", " ") + " " + (event.message || ""),
    document.createElement("br")); review = event.review_id; $("ask").hidden = !review }
$("ask").onsubmit = click => { click.preventDefault()
  run({type: "edit", params: {model: click.target.model.value}, review_id: review}) }
run({text: "parcels"})</script>"""


async def model(params: dict[str, str]) -> AsyncIterator[str]:
    """Stand in for `model.astream(params)`; the small one forgets the count."""
    yield '{"title": "Parcels of week 47", "lost'
    yield f'": 3, "count": {"312" if params["model"] == "large" else "null"}}}'


@entrypoint(checkpointer=InMemorySaver())
async def summary(text: str) -> Any:
    """Summarise; the answer is read while it arrives."""
    params = {"text": text, "model": "small"}
    return await aretry_llm_call(model, params, output=dict[str, str | int])


async def events(thread: str, body: dict[str, Any]) -> AsyncIterator[str]:
    """Start or answer, send each event of the run, and then what the thread waits for."""
    config: Any = {"configurable": {"thread_id": thread}}
    how: Any = {"start": body["text"]} if "text" in body else {"decision": body}
    try:
        async with aresumption(summary, config, **how) as given:
            async for event in summary.astream(given, config, stream_mode="custom"):
                yield f"data: {json.dumps(event)}\n\n"
    except (AnswerRefused, StaleDecision) as error:
        yield f"data: {json.dumps({'event': 'refused', 'message': str(error)})}\n\n"
    end: Any = {"event": "finished", "value": (await summary.aget_state(config)).values}
    for review in await apending_reviews(summary, config):
        end = {"event": "waits", "review_id": review.review_id, "message": review.error}
    yield f"data: {json.dumps(end)}\n\n"


async def run(request: Any) -> StreamingResponse:
    """Answer a POST with a stream of events."""
    stream = events(request.path_params["thread"], await request.json())
    return StreamingResponse(stream, media_type="text/event-stream")


routes = [Route("/", HTMLResponse(PAGE)), Route("/run/{thread}", run, methods=["POST"])]
app = Starlette(routes=routes)
if __name__ == "__main__":
    client = TestClient(app)
    for body in ({"text": "parcels"}, {"type": "edit", "params": {"model": "large"}}):
        print(client.post("/run/1", json=body).text)
# expect: "count": 312
