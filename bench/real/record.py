"""Write the completions that `tests/test_real.py` replays into the repository's file.

Run: `python -m bench.real.record`, after the model was asked for what the tests read. Of the first
answers, the inputs that the file had are kept; a completion that no test reads is left out.
"""

import gzip
import json
import logging

from bench.real.__main__ import rows_of
from bench.real.contest import CONSTRAINED, OURS, TEXT, UNSEEN
from bench.real.families import cases
from bench.real.lanes import ONCE, RETRIES
from bench.real.served import RECORDED, Served


def replayed(served: Served, first: Served) -> None:
    """Read what the tests replay, on the inputs whose first answers `first` has."""
    for lane in ONCE.values():
        rows_of(served, lane, [case for case, _ in rows_of(first, lane, [*cases()])])
    rows = rows_of(first, ONCE["free"], [*cases()])
    refused = [case for case, outcome in rows if not outcome.is_valid]
    for lane in RETRIES.values():
        rows_of(served, lane, refused, retried=True)
    unseen = [case for case in cases(UNSEEN[1]) if case.number >= UNSEEN[0]]
    for name in (TEXT, CONSTRAINED):
        rows_of(served, OURS[name], unseen)


def main() -> None:
    """Write the file."""
    logging.disable(logging.WARNING)
    served = Served(None)
    replayed(served, Served(None, kept=None))
    lines = [json.dumps({"key": key, "answer": each}) for key, each in sorted(served.read.items())]
    RECORDED.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    print(len(lines), "completions")


if __name__ == "__main__":
    main()
