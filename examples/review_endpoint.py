"""A web service that lists what waits and takes answers; it needs `pip install fastapi httpx`."""

from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.testclient import TestClient
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from graph_retry import AnswerRefused, StaleDecision, aresume, aretry_llm_call
from graph_retry.threads import alist_reviews


def ask(params: dict[str, str]) -> str:
    """Stand in for a model."""
    return "1240.5" if params["model"] == "large" else "EUR 1,240.50"


@entrypoint(checkpointer=InMemorySaver())
async def total(document: str) -> float:
    """Read the total of an invoice."""
    return await aretry_llm_call(ask, {"text": document, "model": "small"}, output=float)


app = FastAPI()


def thread(name: str) -> Any:
    """Name a thread."""
    return {"configurable": {"thread_id": name}}


async def outcome(name: str) -> Any:
    """Return what came of a document, or that it waits."""
    state = await total.aget_state(thread(name))
    return "waits" if state.next else state.values


@app.put("/invoices/{name}")
async def start(name: str, document: dict[str, str]) -> Any:
    """Read a document, as far as that needs nobody; the same request again changes nothing."""
    await aresume(total, thread(name), start=document["text"])
    return await outcome(name)


@app.get("/reviews")
async def reviews() -> list[dict[str, Any]]:
    """List what waits, whatever its thread: each question is one JSON object."""
    return [{**review.value, "thread": review.thread_id} for review in await alist_reviews(total)]


@app.post("/reviews/{name}/{review_id}")
async def answer(name: str, review_id: str, decision: dict[str, Any], request: Request) -> Any:
    """Apply an answer, by whoever sent it: 409 if it comes late, 422 if it does not fit."""
    answers = {review_id: {**decision, "by": request.headers["x-user"]}}
    try:
        await aresume(total, thread(name), answers=answers)
    except StaleDecision as stale:
        raise HTTPException(409, str(stale)) from None
    except AnswerRefused as refused:
        raise HTTPException(422, {"problem": str(refused), "open": refused.review_ids}) from None
    return await outcome(name)


with TestClient(app, headers={"X-User": "ada"}) as client:
    for _ in range(2):
        print(client.put("/invoices/7", json={"text": "400 posters"}).json())
    for params in ({"modle": "large"}, {"model": "large"}):
        (question,) = client.get("/reviews").json()
        url = f"/reviews/7/{question['review_id']}"
        response = client.post(url, json={"type": "edit", "params": params})
        print(response.status_code, response.text)
# expect: waits
# expect: There is no field
# expect: 200 1240.5
