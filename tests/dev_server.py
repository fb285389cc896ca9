"""Start and stop a real `langgraph dev` on loopback."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import BadRequestError

ROOT = Path(__file__).parent.parent
READY_WITHIN_S = 180


@contextmanager
def dev_server(
    folder: Path, graphs: dict[str, str], *, jobs: int = 4, auth: str | None = None
) -> Iterator[str]:
    """Serve graphs (`{name: "path.py:variable"}`) from a folder; yields the URL.

    The server looks for new runs twice a second: at most `jobs` of them start then.
    """
    config: dict[str, Any] = {"dependencies": [str(ROOT)], "graphs": graphs}
    if auth is not None:
        config["auth"] = {"path": auth}
    (folder / "langgraph.json").write_text(json.dumps(config))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    quiet = {
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "1",
        "LANGSMITH_TRACING": "false",
    }
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"),
                *("--host", "127.0.0.1", "--port", str(port), "--n-jobs-per-worker", str(jobs)),
            ],
            cwd=folder,
            env={**os.environ, **quiet, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url, server, folder / "server.log")
            yield url
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()


def shows_functions(url: str, graph: str) -> bool:
    """Tell whether a server shows the state of function-form calls; older ones do not."""
    with get_sync_client(url=url) as client:
        thread = client.threads.create(graph_id=graph)["thread_id"]
        try:
            client.threads.get_history(thread, checkpoint={"checkpoint_ns": "ask:0"})
        except BadRequestError:
            return False
    return True


def _wait_until_ready(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{url}/ok", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"langgraph dev did not start:\n{log.read_text()[-3000:]}")
