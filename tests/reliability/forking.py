"""Workers as forks of a process that has imported everything and opened nothing."""

import os
import select
import signal
import traceback
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 120.0


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
