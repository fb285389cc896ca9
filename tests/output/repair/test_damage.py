"""Documents damaged by one character or token are read exactly, or refused."""

import warnings

import pytest

from bench.repair_damage import run


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_damaged_document_is_read_as_another_one(seed: int) -> None:
    """A smaller draw of `python -m bench.repair_damage`, which reads 100,000."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # Python reads the damaged texts, too
        table, wrong, _ = run(seed, 1_000)
    assert not wrong, (seed, [case.text for case in wrong])
    assert sum(count for (_, result), count in table.items() if result == "exact") > 100
