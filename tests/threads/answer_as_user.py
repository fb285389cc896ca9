"""A process of another user, if root starts it, that answers a thread on each of some databases.

Another user may not be able to read the modules, so all are loaded before the process becomes one.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry import edit, resume
from tests.loops import Model, one_call, thread

BOB = 60_002
"""The id of a user who need not have an account."""


def ask(database):
    """Let a thread of a database ask."""
    with SqliteSaver.from_conn_string(database) as saver:
        one_call("node", None, Model(goal=1), saver).invoke({"params": {"n": 0}}, thread())


def answered(database):
    """Answer what waits and return the output, or what is told instead."""
    with SqliteSaver.from_conn_string(database) as saver:
        graph = one_call("node", None, Model(goal=1), saver)
        try:
            return resume(graph, thread(), edit(n=1))["output"]
        except OSError as error:
            return str(error)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        practice = str(Path(folder, "db.sqlite"))
        ask(practice)
        answered(practice)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(BOB)
        os.setuid(BOB)
    json.dump([answered(database) for database in sys.argv[1:]], sys.stdout)
