"""Small functions that all other packages of the core use.

The import runs `guard_logs`, so that logs of this library escape control characters.
"""

from graph_retry._core.ground.logs import guard_logs

guard_logs()
