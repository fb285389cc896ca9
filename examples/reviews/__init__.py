"""Reviews of several kinds to try the page with: `make web`."""
