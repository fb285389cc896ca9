"""What `import graph_retry` loads: counted, because time depends on the machine."""

import json
import subprocess
import sys

LOADED = """
import json, re, sys
import langgraph.graph

before, compiled = set(sys.modules), []
compile_pattern = re._compiler.compile
re._compiler.compile = lambda *given: compiled.append(given[0]) or compile_pattern(*given)
{}
print(json.dumps([sorted(set(sys.modules) - before), list(map(str, compiled))]))
"""


def loaded(statement):
    """Return the modules that a statement loads after LangGraph, and the patterns it compiles."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(statement)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


def test_importing_the_package_loads_nothing_else():
    """A name is loaded when it is first used; until then there is only the package itself."""
    modules, patterns = loaded("import graph_retry")
    assert [name for name in modules if name.partition(".")[0] not in sys.stdlib_module_names] == [
        "graph_retry"
    ]
    assert not patterns


def test_importing_the_call_loads_nothing_that_langgraph_does_not_load():
    """Only modules of its own, of Python and of LangGraph's core: no `jsonschema`, no `yaml`."""
    modules, patterns = loaded("from graph_retry import retry_llm_call, aretry_llm_call")
    foreign = {name.partition(".")[0] for name in modules} - set(sys.stdlib_module_names)
    assert foreign <= {"graph_retry", "langchain_core"}
    assert not patterns


def test_the_reader_needs_no_graph():
    """`graph_retry.lossless` loads neither LangGraph nor pydantic, although it stands inside."""
    program = (
        "import sys\nfrom graph_retry.lossless import read\n"
        "assert read('{a: 1}').value == {'a': 1}\n"
        "assert not {'langgraph', 'langchain_core', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_importing_the_package_loads_only_what_every_call_uses():
    """Ready hooks, the reader of damaged text, questions and their answers are loaded on demand."""
    modules, _ = loaded("from graph_retry import retry_llm_call, aretry_llm_call")
    on_demand = ("_core.threads", "hooks._escalation", "hooks._history", "data._corrections.past")
    on_demand += ("hooks._model_reviewer", "ledger", "threads", "lossless.parse", "desk")
    on_demand += (
        "_core.review.clients.table",
        "_core.review.clients.payload",
        "_core.review.judge",
    )
    assert not set(modules) & {f"graph_retry.{name}" for name in on_demand}
    assert len([name for name in modules if name.startswith("graph_retry")]) <= 123


def test_names_on_demand_are_the_objects_of_their_modules():
    """A name that is loaded on demand is listed, and found by every kind of import."""
    statement = (
        "import graph_retry, graph_retry.hooks as hooks\n"
        "from graph_retry.hooks._escalation import escalate\n"
        "from graph_retry._core.threads.answers.answering import resume\n"
        "assert hooks.escalate is escalate and graph_retry.resume is resume\n"
        "from graph_retry.hooks import *\n"
        "assert shorten_history and escalate and model_reviewer\n"
        "from graph_retry import *\n"
        "assert pending_reviews and 'resume' in dir(graph_retry)"
    )
    modules, _ = loaded(statement)
    assert "graph_retry._core.threads.answers.answering" in modules


def test_an_answer_in_this_process_loads_no_code_for_servers():
    """A thread of this process is listed, answered and continued without the half for servers."""
    statement = (
        "from langgraph.checkpoint.memory import InMemorySaver\n"
        "from langgraph.func import entrypoint\n"
        "from graph_retry import edit, pending_reviews, resume, retry_llm_call\n"
        "@entrypoint(checkpointer=InMemorySaver())\n"
        "def graph(given): return retry_llm_call(str, given, output=int)\n"
        "config = {'configurable': {'thread_id': '1'}}\n"
        "graph.invoke('many', config)\n"
        "assert pending_reviews(graph, config) and resume(graph, config, edit(value='3')) == 3"
    )
    modules, _ = loaded(statement)
    rooms = ("graph_retry._core.threads.server", "graph_retry._core.threads.saved.why_closed")
    assert [name for name in modules if name.startswith(rooms)] == []
