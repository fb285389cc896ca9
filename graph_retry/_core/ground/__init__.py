"""Small functions that all other packages of the core use.

The import runs `guard_logs`, so that the loggers of this library escape the texts of others.
"""

from graph_retry._core.ground.logs import guard_logs

guard_logs()
