"""Which addresses of a server are requested, and what its threads are read as meanwhile."""

import re

import httpx
import pytest
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk.client import LangGraphClient

from graph_retry import apending_reviews, approve, aresume
from graph_retry._core.threads.saved.graphs import get_state
from graph_retry.desk.web import create_app
from graph_retry.threads import aattempts_of, alist_reviews
from tests.web.conftest import SAME_SITE
from tests.web.forms import fields

HOSTILE = [
    "../../store",
    "..",
    ".",
    "",
    "a/b",
    "a\\b",
    "1?x=1",
    "1#x",
    "%2e%2e",
    "a;b",
    "a\r\nX: 1",
]


class Server:
    """A server that has some threads, and notes the path of each request."""

    def __init__(self, *threads):
        self.threads, self.paths = threads, []
        transport = httpx.MockTransport(self._answer)
        http = httpx.AsyncClient(transport=transport, base_url="http://server/api")
        self.client = LangGraphClient(http)

    def _answer(self, request):
        self.paths.append(request.url.raw_path.decode())
        found = self.threads if request.url.path.endswith("/search") else None
        return httpx.Response(404, json={}) if found is None else httpx.Response(200, json=found)


@pytest.mark.parametrize("thread", HOSTILE)
async def test_no_id_leads_to_another_address(thread):
    """A thread id that a proxy could read as a path is refused before the server is asked."""
    server = Server()
    graph = RemoteGraph("chat", client=server.client)
    config = {"configurable": {"thread_id": thread}}
    for reading in (aattempts_of, apending_reviews, lambda *place: aresume(*place, approve())):
        with pytest.raises(ValueError, match="so the server was not asked: give the id of a thr"):
            await reading(graph, config)
    assert server.paths == []


@pytest.mark.parametrize("key", ["graph_id", "assistant_id"])
@pytest.mark.parametrize("written", HOSTILE)
async def test_what_a_thread_says_of_its_graph_leads_nowhere_else(key, written):
    """Whoever makes a thread writes its metadata: such a thread is read nowhere, others are."""
    thread = {"thread_id": "t1", "status": "error", "updated_at": "2026-01-01T00:00:00+00:00"}
    metadata = {"graph_id": "chat", key: written}
    server = Server(thread | {"metadata": metadata}, thread | {"metadata": {"graph_id": "chat"}})
    assert await alist_reviews(server.client) == []
    plain = r"/api/threads/(search|t1/(history|state(/checkpoint)?|runs\?limit=\d+&offset=0))"
    assert server.paths
    assert [path for path in server.paths if not re.fullmatch(plain, path)] == []


async def test_a_posted_thread_is_no_part_of_an_address():
    """Whatever is typed into the page's search, the server hears the same."""
    heard = []
    for thread in ["t1", *HOSTILE]:
        server = Server()
        transport = httpx.ASGITransport(create_app(server.client, authorize=lambda _: "ada"))
        async with httpx.AsyncClient(
            transport=transport, base_url="http://page", headers=SAME_SITE
        ) as page:
            answer = await page.post("/t", files=fields(thread=thread))
        heard.append((answer.status_code, set(server.paths) - {"/api/threads/search"}))
    assert {str(each) for each in heard} == {"(303, set())"}


@pytest.mark.parametrize("comes", [False, True])
async def test_a_thread_whose_first_run_has_saved_nothing_yet_is_read(comes):
    """Whether or not its first checkpoint comes between two requests."""
    empty = {"values": {}, "next": ["ask"], "tasks": [], "interrupts": [], "metadata": {}}
    empty |= {"created_at": None, "parent_checkpoint": None, "checkpoint": None}
    place = {"thread_id": "t1", "checkpoint_ns": "", "checkpoint_id": "1"}
    states = [empty, {**empty, "checkpoint": place} if comes else empty]

    def answer(_):
        return httpx.Response(200, json=states.pop(0) if len(states) > 1 else states[0])

    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
        graph = RemoteGraph("chat", client=LangGraphClient(http))
        state = await get_state(graph, {"configurable": {"thread_id": "t1"}})
    assert state.next == (("ask",) if comes else ())
