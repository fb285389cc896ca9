"""Saved calls: read, listed, answered, continued, rewound and ended, here or on a server.

What comes in is a graph, a client or a checkpointer. What goes out are reviews and ledgers, and
a thread that goes on. This is the half of the engine that reads and writes what the other half, the
loop, has saved. `graph_retry.threads` and `graph_retry` have its public names. Read
`resuming.py` first; `saved/` reads a thread, `server/` reads it through the API of a server.
"""
