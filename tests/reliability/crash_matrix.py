r"""Kill a worker at random, let the next one continue, and count what went wrong.

Usage: python -m tests.reliability.crash_matrix STORE MODE DURABILITIES SHAPES ANSWERS LOCATION \
    KILLS SEED

The plural ones are words with commas between them; writes a JSON list, one object a setting. Every
worker is a fork of this process, which has imported everything but opened nothing.
"""

import itertools
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.reliability.crash_verdict import verdict
from tests.reliability.crash_worker import Setting, live
from tests.reliability.forking import PATIENCE_S, end, fork
from tests.reliability.journal import Journal, read

PILOTS = 2
MOST_KILLS = 6
"""Of one thread, after which its next worker is left alone."""


def run(setting: Setting, location: str, folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """Kill workers of one setting until `kills` have died at times drawn by the clock.

    One kill in five more is drawn over the moments between two steps instead.
    """
    draw = random.Random(f"{setting} {seed}")
    began = time.perf_counter()
    log = folder / "errors.log"
    numbers = itertools.count()

    def life(name: str, fatal: int, kill_after: float = PATIENCE_S) -> int:
        def work() -> None:
            live(setting, location, f"{setting} {name}", Journal(folder / name, fatal), fated)

        fated = draw.randrange(2**32)
        return end(fork(work, log), kill_after)

    lifetimes, moments = [], 0
    for _ in range(PILOTS):  # how long a worker lives that nobody kills
        name, started = str(next(numbers)), time.perf_counter()
        if life(name, 0) != 0:
            raise RuntimeError(f"{setting}: {log.read_text()[-2000:]}")
        lifetimes.append(time.perf_counter() - started)
        moments = max(moments, read(folder / name)[-1]["moments"])
    lifetime = min(lifetimes)

    total: Counter[str] = Counter()
    failures: list[str] = []
    while total["timed"] < kills:
        name, died = str(next(numbers)), 0
        while died < MOST_KILLS and total["timed"] < kills:
            named = draw.random() < 1 / 6
            fatal = draw.randint(1, moments) if named else 0
            code = life(name, fatal, PATIENCE_S if named else draw.uniform(0, lifetime))
            if code != -signal.SIGKILL:
                break
            died += 1
            total["named" if named else "timed"] += 1
        else:
            code = life(name, 0)
        found, why = verdict(setting, read(folder / name))
        total["threads"] += 1
        total["stuck"] += code != 0
        total.update(found)
        if why or code:
            failures.append(f"thread {name}: {why or f'ended with {code}'}")
    return {
        "setting": str(setting),
        **total,
        "seconds": round(time.perf_counter() - began, 1),
        "lifetime_ms": round(lifetime * 1000),
        "failures": failures[:5],
        "errors": log.read_text()[-3000:] if log.exists() else "",
    }


def main(*given: str) -> None:
    """Run the settings and write what was counted."""
    store, mode, durabilities, shapes, answers, location, kills, seed = given
    chosen = [each.split(",") for each in (durabilities, shapes, answers)]
    # A killed process leaves its writes to the system: no disk is needed to tell what was saved.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    results = []
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        place = location or str(Path(folder) / "threads.sqlite")
        for each in itertools.product(*chosen):
            setting = Setting(store, mode, *each)
            own = Path(folder) / str(setting)
            own.mkdir()
            results.append(run(setting, place, own, int(kills), int(seed)))
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
