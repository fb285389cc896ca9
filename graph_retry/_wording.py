"""Words that depend on what they stand with: articles and plurals."""

from __future__ import annotations


def with_article(noun: str) -> str:
    """Return a noun behind its article, by how it is spelled.

    Example:
        >>> with_article("transient failure"), with_article("invalid answer")
        ('a transient failure', 'an invalid answer')
    """
    return f"{_article(noun)} {noun}"


def quoted_with_article(name: str) -> str:
    """Return the name of a class as code, behind its article.

    Example:
        >>> quoted_with_article("int"), quoted_with_article("dict"), quoted_with_article("UUID")
        ('an `int`', 'a `dict`', 'a `UUID`')
    """
    return f"{_article(name)} `{name}`"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, in the plural unless there is one.

    Example:
        >>> counted(1, "attempt"), counted(2, "attempt"), counted(0, "retry", "retries")
        ('1 attempt', '2 attempts', '0 retries')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in ("a", "e", "i", "o") else "a"
