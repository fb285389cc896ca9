"""What past corrections in the prompt save: reviews per 100 calls on a simulated stream.

Invoices arrive in many layouts. The simulated model reads half of the layouts rightly. Of the
others it reads only those of which its prompt holds a corrected example, as a model that learns
from examples would at best. A person supplies the right output whenever a call waits, and every
answer is in the examples of the calls after it. So the figures tell whether the right example is
found among others, and nothing about how well a model of yours learns from it.
Run: `python -m bench.corrections`
"""

import random
import re
import string
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from bench.markdown import table
from graph_retry import pending_reviews, respond, resume, retry_llm_call
from graph_retry.data import Correction, PastCorrections, corrections_of

CALLS, LAYOUTS = 600, 24


def layouts(draw: random.Random) -> list[str]:
    """Make layouts: lines of labels around the same two values, worded at random."""
    words = ["".join(draw.choices(string.ascii_lowercase, k=6)) for _ in range(60)]
    made = []
    for number in range(LAYOUTS):
        lines = [f"{' '.join(draw.sample(words, 4)).capitalize()}." for _ in range(3)]
        labels = draw.sample(words, 2)
        lines.insert(1, f"{labels[0]}: {{vendor}}")
        lines.insert(3, f"{labels[1]}: {{total}} (form {number})")
        made.append("\n".join(lines))
    return made


def model(params: dict[str, Any]) -> str:
    """Read easy layouts, and hard ones only beside a corrected example of the same layout."""
    *before, form = re.findall(r"\(form (\d+)\)", params["prompt"])
    total = re.findall(r"(\d+) \(form", params["prompt"])[-1]
    is_read = int(form) % 2 == 0 or form in before
    return f'{{"total": {total if is_read else chr(34) + "EUR " + total + chr(34)}}}'


def reviews(kind: str) -> tuple[float, float]:
    """Run the stream; return the reviews per 100 calls, over all and over the second half."""
    draw, rows, asked = random.Random(7), list[Correction](), list[int]()
    known = layouts(draw)
    for number in range(CALLS):
        vendor = "".join(draw.choices(string.ascii_uppercase, k=5))
        prompt = draw.choice(known).format(vendor=vendor, total=draw.randrange(10, 9_999))
        shown = rows[-3:] if kind == "last three" else rows
        least = 0.0 if kind == "last three" else 0.6
        past = PastCorrections(rows=shown if kind != "without" else (), least=least)

        @entrypoint(checkpointer=InMemorySaver())
        def read(text: str, past: PastCorrections = past) -> Any:
            given = {"prompt": text}
            return retry_llm_call(model, given, output=dict[str, int], name="read", lessons=past)

        config: Any = {"configurable": {"thread_id": str(number)}}
        read.invoke(prompt, config)
        if pending_reviews(read, config):
            asked.append(number)
            total = int(re.findall(r"(\d+) \(form", prompt)[-1])
            resume(read, config, respond({"total": total}))
            rows += corrections_of(read)
    late = sum(number >= CALLS // 2 for number in asked)
    return 100 * len(asked) / CALLS, 100 * late / (CALLS - CALLS // 2)


def main() -> None:
    """Print a row for each way to choose examples."""
    rows = []
    for kind in ("without", "last three", "nearest three"):
        whole, late = reviews(kind)
        rows.append([kind, f"{whole:.1f}", f"{late:.1f}"])
    columns = ["past corrections in the prompt", "reviews per 100 calls", "in the second half"]
    print(table(columns, rows))


if __name__ == "__main__":
    main()
