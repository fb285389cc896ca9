"""The lowest layer of the core: small functions that every other layer uses.

Importing this package calls `guard_logs`: logs of this library then escape control characters.
"""

from graph_retry._core.ground.logs import guard_logs

guard_logs()
