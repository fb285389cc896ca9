"""Show a bounded part of a long text."""

_MARKER_ROOM = 40


def excerpt(text: str, limit: int) -> str:
    """Shorten `text` to at most `limit` characters (60 or more): both ends and how much is cut.

    Lone surrogates are spelled out, since no checkpointer keeps them.

    Example:
        >>> excerpt("a" * 1000, 60)
        'aaaaaaaaaaaaaaa…[980 characters cut]…aaaaa'
    """
    if len(text) > limit:
        room = limit - _MARKER_ROOM
        head = room * 3 // 4
        tail = room - head
        text = f"{text[:head]}…[{len(text) - room:,} characters cut]…{text[len(text) - tail :]}"
    return text.encode("utf-8", "backslashreplace").decode()[:limit]
