"""Read, list, answer, continue, rewind and end saved calls, in this process or on a server.

The functions take a graph, a client or a checkpointer. They return reviews and ledgers, or continue
a thread. The package `loop` runs and saves calls. The public names of this package are in
`graph_retry.threads` and `graph_retry`. Read `resuming.py` first. `saved/` reads a thread, and
`server/` reads a thread through the API of a server.
"""
