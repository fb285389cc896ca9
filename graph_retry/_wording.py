"""Words that depend on others: articles, plurals, and the known name a misspelt one is close to."""

from __future__ import annotations

from difflib import get_close_matches


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


def did_you_mean(name: str, known: tuple[str, ...]) -> str:
    """Suggest the known name closest to a misspelt one, as a sentence, or nothing.

    Example:
        >>> did_you_mean("temprature", ("temperature", "model"))
        ' Did you mean `temperature`?'
    """
    close = closest(name, known)
    return f" Did you mean `{close}`?" if close else ""


def closest(name: str, known: tuple[str, ...]) -> str | None:
    """Return the known name that a misspelt one is close to.

    Example:
        >>> closest("modle", ("temperature", "model"))
        'model'
    """
    return next(iter(get_close_matches(name[:100], known, 1)), None)


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in ("a", "e", "i", "o") else "a"
