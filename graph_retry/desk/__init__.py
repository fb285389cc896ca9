"""Places where people review: the page in a browser, and the console."""
