"""The ground that all rooms of the core stand on; its loggers have a door, whoever loads it."""

from graph_retry._core.ground.logs import guard_logs

guard_logs()
