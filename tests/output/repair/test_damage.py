"""Documents damaged by one character or token are read exactly, or refused."""

import time
import warnings

from bench.repair_damage import run


def test_no_damaged_document_is_read_as_another_one() -> None:
    """A smaller draw of `python -m bench.repair_damage`, other documents every time."""
    seed = time.time_ns() % 1_000_000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # Python reads the damaged texts, too
        table, wrong, _ = run(seed, 2_000)
    assert not wrong, (seed, [case.text for case in wrong])
    assert sum(count for (_, result), count in table.items() if result == "exact") > 200
