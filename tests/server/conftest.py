"""One server for all tests of this folder, and a count of its model calls."""

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client, get_sync_client

from tests.conftest import Mode
from tests.dev_server import ROOT, dev_server, shows_functions
from tests.reviewed.programs import PROGRAMS
from tests.server.remote import Remote

GRAPHS = (
    "approving_all",
    "approving_each",
    "node",
    "function",
    "patient_node",
    "patient_function",
    "expiring",
    "expiring_function",
    "extract",
    "extract_function",
    "pair",
    "fan",
    "beside",
    "renaming",
    "bare",
    "several",
    "several_async",
    "hiding",
    "hiding_async",
    "behind_tasks",
    "nested",
    "tenants",
    "expiring_tenants",
    "agent",
    "reviewed",
    *(f"program_{number}" for number in range(len(PROGRAMS))),
)


@dataclass
class Served:
    """A running server: its address, and the folder its graphs write their calls to."""

    url: str
    folder: Path

    def client(self, **options: Any) -> Any:
        """Return an async client."""
        return get_client(url=self.url, **options)

    def sync_client(self, **options: Any) -> Any:
        """Return a sync client."""
        return get_sync_client(url=self.url, **options)

    def calls(self, thread_id: str) -> list[dict[str, Any]]:
        """Return the params of each model call of a thread."""
        calls = map(json.loads, (self.folder / "calls.jsonl").read_text().splitlines())
        return [call for call in calls if call.pop("thread_id") == thread_id]


def graphs_in(folder: Path) -> dict[str, str]:
    """Copy the served module to a folder and say what it serves."""
    shutil.copy(Path(__file__).with_name("served.py"), folder)
    sweeper = {"sweeper": f"{ROOT}/nodes/sweeper.py:graph"}
    return {**{name: f"./served.py:{name}" for name in GRAPHS}, **sweeper}


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve the graphs, many runs at a time."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "calls.jsonl").touch()
    (folder / "node-name").write_text("ask")
    with dev_server(folder, graphs_in(folder), jobs=40) as url:
        yield Served(url, folder)


@pytest.fixture
def config() -> dict[str, Any]:
    """Return the config of a thread of its own."""
    return {"configurable": {"thread_id": str(uuid.uuid4())}}


@pytest.fixture
def remote(served: Served, mode: Mode, config: dict[str, Any]) -> Iterator[Callable[[str], Remote]]:
    """Return a function that opens a thread of a served graph."""
    with ExitStack() as closing:
        if mode.is_async:
            client = get_client(url=served.url)
            closing.callback(lambda: mode.run(client.aclose))
        else:
            client = closing.enter_context(get_sync_client(url=served.url))
        yield lambda name: Remote(served, mode, config, client, name)


@pytest.fixture
def shown(served: Served) -> bool:
    """Tell whether this server shows the state of function-form calls."""
    return shows_functions(served.url, "function")
