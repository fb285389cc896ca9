"""What LangGraph does not document is spelled in one room."""

import re

from tests.test_house_rules import PACKAGE, sources

INSIDE = re.compile(
    r"checkpoint_ns|checkpoint_map|pending_writes|channel_values|channel_versions|langgraph_path"
    r"|checkpoint\.serde\.types|__interrupt__|__copy__|__pregel|get_null_resume|subgraph_counter"
    r"|execution_info|server_info|vars\(builder|var_child_runnable|metadata(?:\[|\.get\()\"source\""
    r"|schedule_task|\.scratchpad|_scratchpad"
    r"|\"(?:parents|resuming)\"|\.modes\b|partition\(\"\|\"\)|split\(\"\|\"\)|saver\.(?:conn|loop|lock)"
)
KNOW_THE_INSIDE = {
    "_core/ground/functions/calling.py": 4,
    "_core/loop/asking/person.py": 1,
    "_core/loop/call.py": 1,
    "_core/loop/review.py": 1,
    "_core/loop/run/keeping.py": 1,
    "_core/loop/run/running.py": 1,
    "nodes/__init__.py": 3,
    "records.py": 2,
    "_core/threads/saved/why_closed.py": 1,
}
"""Lines outside the room that name something of LangGraph's inside; only ever fewer."""


def test_one_room_knows_the_inside_of_langgraph():
    """What LangGraph does not document is spelled in one room, where each fact has a test."""
    found = {}
    for path in sources("graph_retry"):
        name = str(path.relative_to(PACKAGE))
        lines = [line for line in path.read_text().splitlines() if INSIDE.search(line)]
        if lines and not name.startswith(("_core/langgraph/", "_core/state/namespaces")):
            found[name] = len(lines)
    more = {name: lines for name, lines in found.items() if lines > KNOW_THE_INSIDE.get(name, 0)}
    assert more == {}


def test_one_file_spells_the_key_of_a_namespace():
    """A rename by LangGraph changes one file; the others have our key, and the savers' column."""
    files = [path for path in sources("graph_retry") if "checkpoint_ns" in path.read_text()]
    assert {str(path.relative_to(PACKAGE)) for path in files} == {
        "_core/langgraph/storage/stores.py",
        "_core/state/namespaces.py",
        "records.py",
    }
