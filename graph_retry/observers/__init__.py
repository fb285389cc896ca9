"""Observers of calls and reviews. An observer never changes a call.

Import all public names from this package.
"""

from typing import TYPE_CHECKING

from graph_retry._core.loop.run.events import Event
from graph_retry.lossless._ground import on_demand

if TYPE_CHECKING:
    from graph_retry.observers._notifications import Email, Link, Links, Slack, Teams
else:
    __getattr__ = on_demand(__name__, "_notifications")

__all__ = [
    "Email",
    "Event",
    "Link",
    "Links",
    "Slack",
    "Teams",
]
