"""A FastAPI service that reads invoices, with the review page mounted behind its own login.

It needs the extra `web` and `pip install fastapi httpx`. To see it:
`uvicorn examples.service_with_page:app`, then `curl -H 'x-user: ada' 127.0.0.1:8000/reviews/`. For
a browser, let a proxy set this header, or replace `who`.
"""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from graph_retry import aresume, aretry_llm_call
from graph_retry.desk.web import Access, create_app


def ask(params: dict[str, str]) -> str:
    """Stand in for a model."""
    return "1240.5" if params["model"] == "large" else "EUR 1,240.50"


@entrypoint(checkpointer=InMemorySaver())
async def total(document: str) -> float:
    """Read the total of an invoice."""
    params = {"text": document, "model": "small"}
    return await aretry_llm_call(ask, params, output=float, labels={"team": "accounts"})


def who(request: Any) -> Access | None:
    """Tell the page who looks at it: here the name that a proxy with a login puts in a header."""
    user = request.headers.get("x-user")
    return Access(user, may_decide=user != "guest") if user else None


app = FastAPI()
app.mount("/reviews", create_app(total, authorize=who))


@app.put("/invoices/{name}")
async def start(name: str, request: Request) -> Any:
    """Read an invoice: its total, or where a person is asked about it."""
    config: Any = {"configurable": {"thread_id": name}}
    await aresume(total, config, start=(await request.json())["text"])
    state = await total.aget_state(config)
    return {"waits": "/reviews/"} if state.next else {"total": state.values}


if __name__ == "__main__":
    client = TestClient(app)
    print("PUT /invoices/7:", client.put("/invoices/7", json={"text": "400 posters"}).json())
    print("GET /reviews/, nobody:", client.get("/reviews/").status_code)
    page = client.get("/reviews/", headers={"x-user": "ada"})
    print("GET /reviews/, ada:", page.status_code, "1 review waits" in page.text)
# expect: PUT /invoices/7: {'waits': '/reviews/'}
# expect: GET /reviews/, nobody: 403
# expect: GET /reviews/, ada: 200 True
