"""Who answered, as a server with authentication knows it."""

from pathlib import Path

import pytest
from httpx import HTTPStatusError
from langgraph.pregel.remote import RemoteGraph

from graph_retry import StaleDecision, edit, pending_reviews, reject
from graph_retry._core.threads import inbox
from graph_retry.threads import attempts_of
from tests.dev_server import dev_server
from tests.server.conftest import Served, graphs_in

SIGN_IN = Path(__file__).with_name("sign_in.py")


@pytest.mark.slow
def test_the_ledger_names_the_authenticated_user(tmp_path):
    """Whoever an answer says it is by, the user is the one the server let in."""
    with dev_server(tmp_path, graphs_in(tmp_path), auth=f"{SIGN_IN}:auth") as url:
        served = Served(url, tmp_path)
        with served.sync_client() as nobody, pytest.raises(HTTPStatusError, match="who are you"):
            inbox.list_reviews(nobody)
        ada, bob = (
            served.sync_client(headers={"Authorization": f"Bearer {name}"})
            for name in ("ada", "bob")
        )
        with ada, bob:
            thread_id = ada.threads.create()["thread_id"]
            config = {"configurable": {"thread_id": thread_id}}
            state = ada.runs.wait(thread_id, "node", input={"params": {"n": 0}})
            assert "__interrupt__" in state
            (seen_by_ada,) = inbox.list_reviews(ada)
            (review,) = inbox.list_reviews(bob)
            review.answer({**edit(n=1), "by": "nobody"})
            with pytest.raises(StaleDecision, match="human:bob answered it at 20"):
                seen_by_ada.answer(reject())
            click = [{"type": "response", "args": "enough"}]
            ada.runs.wait(thread_id, "node", command={"resume": click})

            (ledger,) = attempts_of(RemoteGraph("node", sync_client=bob), config)
            first, second = (attempt["decision"] for attempt in ledger.attempts)
            assert (first["author"], first["user"], first["by"]) == ("human:bob", "bob", "nobody")
            assert (first["channel"], second["channel"]) == ("python", "agent-inbox")
            assert (second["author"], second["user"], second["message"]) == (
                *("human:ada", "ada"),
                "enough",
            )
            assert ledger.attempts[1]["author"] == "human:bob"
            assert pending_reviews(RemoteGraph("node", sync_client=bob), config) == []

            over = ada.threads.create()["thread_id"]
            ada.runs.wait(over, "expiring", input={"params": {"n": 0}})
            swept = ada.runs.wait(None, "sweeper", input={})
            assert [each["thread_id"] for each in swept["ended"]] == [over]
            (run, *_) = ada.runs.list(over)
            ada.runs.join(over, run["run_id"])
            (ledger,) = attempts_of(
                RemoteGraph("expiring", sync_client=bob), {"configurable": {"thread_id": over}}
            )
            note = ledger.attempts[0]["decision"]
            assert note["author"] == "system"
            assert "user" not in note
