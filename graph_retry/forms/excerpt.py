"""Show a bounded part of a long text."""

from graph_retry.validate.issues import cut


def excerpt(text: str, limit: int) -> str:
    """Shorten `text` to at most `limit` characters (60 or more): both ends and how much is cut.

    Example:
        >>> excerpt("a" * 1000, 60)
        'aaaaaaaaaaaaaaa…[980 characters cut]…aaaaa'
    """
    if len(text) > limit:
        room = limit - 40
        head, tail = text[: room * 3 // 4], text[len(text) - room // 4 :]
        text = f"{head}…[{len(text) - len(head) - len(tail):,} characters cut]…{tail}"
    return cut(text, limit)
