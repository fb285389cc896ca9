"""Read answers for `graph-retry answer`: typed at a prompt, as arguments, or from a file."""
