"""Workers as forks of a process that has imported everything and opened nothing."""

import json
import os
import select
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE_S = 120.0
ROOT = Path(__file__).parent.parent.parent


def counted(program: str, *words: str) -> Any:
    """Run a program of this folder, whose forks are the workers; return the JSON it prints.

    Raises:
        RuntimeError: If it fails, with what it wrote to stderr.
    """
    done = subprocess.run(
        [sys.executable, "-m", f"tests.reliability.{program}", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{program} {' '.join(words)}: {done.stderr[-3000:]}")
    return json.loads(done.stdout)


def fork(work: Callable[[], None], log: Path) -> int:
    """Run `work` in a fork of this process and return its id; errors go to the log."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - the parent is told, whatever it is
        with log.open("a") as lines:
            traceback.print_exc(file=lines)
    finally:
        os._exit(status)


def end(child: int, kill_after: float = PATIENCE_S) -> int:
    """Wait for a fork, or kill it after a while; return how it ended.

    0 is a good end, 1 an error, -9 a kill, and -14 a worker that did not end in its time.
    """
    descriptor = os.pidfd_open(child)
    ended = bool(select.select([descriptor], [], [], kill_after)[0])
    os.close(descriptor)
    if not ended:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return -signal.SIGALRM if not ended and kill_after == PATIENCE_S else code
