"""The core: one call, from its params to its output, with all pauses between them."""
