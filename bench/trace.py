"""What tracing costs a call, and into how many traces a paused call falls.

Each setting runs in a process of its own: OpenTelemetry not imported; its API alone; the SDK, with
spans kept in memory. Half of the calls pause for a person and go on in another run.
Run: `python -m bench.trace`
"""

import json
import statistics
import subprocess
import sys
import time
from importlib import import_module
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from bench.markdown import table
from graph_retry import create_retry_node, edit, resume

CALLS, ROUNDS = 200, 5
SETTINGS = {"none": "not imported", "api": "the API, not set up", "sdk": "the SDK, in memory"}


def measure(kind: str) -> dict[str, Any]:
    """Return the median milliseconds of a call, and the spans and traces of a round."""
    exporter: Any = None
    if kind != "none":
        trace, _ = import_module("opentelemetry.trace"), import_module("opentelemetry.metrics")
        if kind == "sdk":
            sdk = import_module("opentelemetry.sdk.trace")
            export = import_module("opentelemetry.sdk.trace.export")
            memory = import_module("opentelemetry.sdk.trace.export.in_memory_span_exporter")
            exporter, provider = memory.InMemorySpanExporter(), sdk.TracerProvider()
            provider.add_span_processor(export.SimpleSpanProcessor(exporter))
            trace.set_tracer_provider(provider)
    times, spans, traces = list[float](), 0, 0
    for _ in range(ROUNDS):
        node = create_retry_node(
            lambda params: "1" if params["n"] else "no", dict, output=int, name="count"
        )
        graph = node.copy(update={"checkpointer": InMemorySaver()})
        began = time.process_time()
        for number in range(CALLS):
            config: Any = {"configurable": {"thread_id": str(number)}}
            graph.invoke({"params": {"n": number % 2}}, config)
            if number % 2 == 0:
                resume(graph, config, edit(n=1))
        times.append(1_000 * (time.process_time() - began) / CALLS)
        if exporter is not None:
            ended = exporter.get_finished_spans()
            spans, traces = len(ended), len({span.context.trace_id for span in ended})
            exporter.clear()
    return {"ms": statistics.median(times), "spans": spans / CALLS, "traces": traces / CALLS}


def main() -> None:
    """Print a row for each setting."""
    rows = []
    for kind, name in SETTINGS.items():
        command = [sys.executable, "-m", "bench.trace", kind]
        told = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        figures = (f"{told['ms']:.2f}", f"{told['spans']:g}", f"{told['traces']:g}")
        rows.append([name, *figures])
    columns = ["OpenTelemetry", "ms of processor time a call", "spans a call", "traces a call"]
    print(table(columns, rows))


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1]))) if len(sys.argv) > 1 else main()
