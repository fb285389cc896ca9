"""Read, answer, continue, rewind and end saved calls, in this process or on a LangGraph server.

The functions take a graph, a checkpointer or a client of a server. Users import the public names
from `graph_retry.threads` and `graph_retry`. Read `answers/resuming.py` first. `saved/` reads a
thread from its checkpoints, and `server/` reads it through the API of a server.
"""
