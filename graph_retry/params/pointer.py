"""Read JSON Pointers (RFC 6901), and spell one the way Python would."""


def tokens_of(path: str) -> list[str]:
    """Split a pointer into its tokens."""
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


def spelled(path: str) -> str:
    """Spell a pointer into the params as an attribute path, for sentences."""
    parts = (f"[{token}]" if token.isdecimal() else f".{token}" for token in tokens_of(path))
    return "params" + "".join(parts)
