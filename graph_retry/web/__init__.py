"""A web app on which people read and answer reviews (the extra `web`)."""

from graph_retry.web.app import create_app
from graph_retry.web.safety import Access

__all__ = ["Access", "create_app"]
