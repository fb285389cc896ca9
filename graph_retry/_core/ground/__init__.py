"""The lowest layer of the core: small functions that every other layer uses.

Importing this package calls `guard_logs`, which makes the messages of this library's logs safe.
"""

from graph_retry._core.ground.logs import guard_logs

guard_logs()
