"""A result that reports an error is a failure, and the model is told what was really executed."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends import FilesystemBackend
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException, tool
from langchain_mcp_adapters.client import MultiServerMCPClient
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph_retry import (
    apending_reviews,
    aresume,
    comment,
    edit,
    pending_reviews,
    reject,
    respond,
    resume,
)
from graph_retry.agents import RetryMiddleware
from tests.agents.scripted import ScriptedChat, asking
from tests.loops import answer, reviews, thread

HI: Any = {"messages": [("user", "go")]}


def calling(*calls: dict[str, Any]) -> Any:
    """Make an answer that makes these calls first, and then repeats what the tools said."""

    def answer_(messages: Any) -> Any:
        said = [str(each.content) for each in messages if isinstance(each, ToolMessage)]
        return "; ".join(said) if said else asking(*calls)

    return answer_


def agent_with(tools: Any, *middleware: Any, args: Any = None, **options: Any) -> Any:
    """Make an agent whose model calls the first tool once."""
    name = getattr(tools[0], "name", None) or tools[0].__name__
    model = ScriptedChat(answer=calling({"name": name, "args": args or {"x": 1}, "id": "c"}))
    ours: Any = [*middleware, RetryMiddleware(tools=True, **options)]
    return create_agent(model, tools, middleware=ours, checkpointer=InMemorySaver())


def handled(x: int) -> str:
    """Raise an exception that the tool turns into its result."""
    if x < 2:
        raise ToolException("x is too small")
    return f"got {x}"


def own_message(x: int, runtime: ToolRuntime) -> ToolMessage:
    """Return a message with a status."""
    status: Any = "error" if x < 2 else "success"
    text = "x is too small" if x < 2 else f"got {x}"
    return ToolMessage(text, tool_call_id=str(runtime.tool_call_id), status=status)


def commands(x: int, runtime: ToolRuntime) -> list[Command[Any]]:
    """Return a list of commands."""
    return [Command(update={"messages": [own_message(x, runtime)]})]


RESULTS = {
    "handle_tool_error": StructuredTool.from_function(handled, handle_tool_error=True),
    "message": tool(own_message),
    "list": tool(commands),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_that_reports_an_error_is_a_failure(kind, mode):
    """A person is asked with the tool's text, and the edited call's result reaches the model."""
    agent = agent_with([RESULTS[kind]])
    mode.invoke(agent, HI, thread())
    (review,) = reviews(mode, agent, thread())
    assert review.error == "ToolError: x is too small"
    state = answer(mode, agent, thread(), edit(x=2))
    assert state["messages"][-1].content.endswith("got 2")
    assert [each["number"] for each in state["ledgers"]["c"]] == [1, 2]


def test_a_reported_error_reaches_the_model_if_nobody_may_be_asked(mode):
    """With `review=False` the agent continues with the tool's message, as without us."""
    agent = agent_with([RESULTS["message"]], review=False)
    state = mode.invoke(agent, HI, thread())
    (said,) = [each for each in state["messages"] if isinstance(each, ToolMessage)]
    assert (said.content, said.status) == ("x is too small", "error")


def test_the_rule_for_reviews_sees_the_whole_result(mode):
    """`review=` gets the message of a tool with its artifact, and not only its text."""
    seen: list[Any] = []

    @tool(response_format="content_and_artifact")
    def measure(x: int) -> tuple[str, dict[str, int]]:
        """Measure."""
        return f"about {x}", {"exactly": x}

    def is_odd(attempt: Any) -> bool:
        seen.append(attempt["raw"]["value"].artifact)
        return False

    # The model's answers are reviewed by the same rule.
    agent = agent_with([measure], review=lambda each: each["name"] == "measure" and is_odd(each))
    mode.invoke(agent, HI, thread())
    assert seen == [{"exactly": 1}]


@tool
def transfer(amount: int) -> str:
    """Transfer an amount."""
    if amount > 500:
        raise ValueError("over the limit")
    return "done"


NOTES = [
    (edit(amount=100), 'Executed instead: transfer with arguments {"amount": 100}.', "done"),
    (respond("by hand"), "a person supplied the response in its place", "by hand"),
]


@pytest.mark.parametrize(("decision", "note", "result"), NOTES)
def test_the_model_is_told_who_changed_its_call(decision, note, result, mode):
    """Otherwise it repeats its own call, or reports what was not done; an option leaves it out."""
    agent = agent_with([transfer], args={"amount": 1000})
    mode.invoke(agent, HI, thread())
    said = answer(mode, agent, thread(), decision)["messages"][-1].content
    assert note in said
    assert said.endswith(f"Tool response:\n{result}")
    plain = agent_with([transfer], args={"amount": 1000}, tell_model=False)
    mode.invoke(plain, HI, thread())
    assert answer(mode, plain, thread(), decision)["messages"][-1].content == result


def test_a_call_that_was_not_changed_has_no_note(mode):
    """A second attempt with the model's own arguments is the call that it made."""
    tries: list[int] = []

    @tool
    def flaky(x: int) -> str:
        """Fail once."""
        tries.append(x)
        if len(tries) == 1:
            raise TimeoutError("no answer")
        return "done"

    agent = agent_with([flaky])
    mode.invoke(agent, HI, thread())
    state = answer(mode, agent, thread(), {"type": "approve"})
    assert state["messages"][-1].content == "done"


@pytest.mark.parametrize("second", [100, 1000])
def test_an_edit_after_an_edit_before_is_told_last(second):
    """`HumanInTheLoopMiddleware` names the call that it let run, which failed; then ours ran."""
    hitl = HumanInTheLoopMiddleware(interrupt_on={"transfer": True})
    limit = {"least": 1001 if second == 1000 else 501}

    @tool
    def transfer(amount: int) -> str:
        """Transfer an amount."""
        if amount >= limit["least"]:
            raise ValueError("over the limit")
        return "done"

    agent = agent_with([transfer], hitl, args={"amount": 1000})
    agent.invoke(HI, thread())
    action = {"name": "transfer", "args": {"amount": 2000}}
    decisions = [{"type": "edit", "edited_action": action}]
    agent.invoke(Command(resume={"decisions": decisions}), thread())
    (review,) = pending_reviews(agent, thread())
    assert review.params == {"amount": 2000}
    said = resume(agent, thread(), edit(amount=second))["messages"][-1].content
    told = said.rpartition("replaced this tool call after it had failed")[2]
    assert f'transfer with arguments {{"amount": {second}}}' in told
    assert "2000" not in told
    assert said.endswith("done")


def test_a_rejection_is_told_with_its_reason(mode):
    """The model gets the reason as the error of its call."""
    agent = agent_with([transfer], args={"amount": 1000})
    mode.invoke(agent, HI, thread())
    state = answer(mode, agent, thread(), reject("not this month"))
    assert "a person stopped it: not this month" in state["messages"][-1].content


@pytest.mark.slow
async def test_an_error_of_a_real_mcp_server_is_asked_about() -> None:
    """The adapter returns the error as a message, and the edit is sent to the server over stdio."""
    server: Any = {
        "command": sys.executable,
        "args": [str(Path(__file__).with_name("mcp_server.py"))],
        "transport": "stdio",
    }
    tools = await MultiServerMCPClient({"projects": server}).get_tools()
    agent = agent_with(tools, args={"project": "dmo"})
    await agent.ainvoke(HI, thread())
    (review,) = await apending_reviews(agent, thread())
    assert "there is no project dmo" in review.error
    state = await aresume(agent, thread(), edit(project="demo"))
    assert "3 runs" in state["messages"][-1].content


@pytest.mark.parametrize("tools", [True, ["write_file"]])
@pytest.mark.parametrize("inside", [False, True])
def test_the_file_tools_of_deepagents_work_as_without_us(tools, inside):
    """They read and write the agent's state through the config; nobody is asked."""
    write = {"name": "write_file", "args": {"file_path": "/a", "content": "hi"}, "id": "w"}
    ls = {"name": "ls", "args": {"path": "/"}, "id": "l"}
    worker = ScriptedChat(answer=calling(write, ls))
    ours: Any = [RetryMiddleware(tools=tools)]
    task = {"name": "task", "args": {"description": "d", "subagent_type": "w"}, "id": "t"}
    sub: Any = {"name": "w", "description": "w", "system_prompt": "w", "tools": []}
    agent = create_deep_agent(
        model=ScriptedChat(answer=calling(task)) if inside else worker,
        subagents=[{**sub, "model": worker, "middleware": ours}] if inside else None,
        middleware=() if inside else ours,
        checkpointer=InMemorySaver(),
    )
    state = agent.invoke(HI, thread())
    assert [*state["files"]] == ["/a"]
    assert not pending_reviews(agent, thread())


PICTURE = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
IS_OLD = find_spec("deepagents.middleware.unsupported_content") is None
"""Whether deepagents leaves pictures as they are, and adds its skills before our middleware."""


@pytest.mark.parametrize("feature", ["memory"] if IS_OLD else ["memory", "skills", "image"])
def test_what_deepagents_adds_to_a_request_is_shown_and_stays(feature: str, tmp_path: Path):
    """Its last middleware adds to the prompt, and replaces pictures that a model cannot see."""
    (tmp_path / "skills" / "mail").mkdir(parents=True)
    described = "---\nname: mail\ndescription: Writes mails.\n---\nWrite."
    (tmp_path / "skills" / "mail" / "SKILL.md").write_text(described)
    (tmp_path / "AGENTS.md").write_text("Be kind.")
    options: Any = {"memory": {"memory": ["/AGENTS.md"]}, "skills": {"skills": ["/skills"]}}
    added = {"memory": "Be kind.", "skills": "Writes mails.", "image": "was not attached"}[feature]
    answers = iter([asking({"name": "nope", "args": {}, "id": "n"}), "fine"])
    model = ScriptedChat(answer=lambda _: next(answers), profile={"image_inputs": False})
    ours: Any = [RetryMiddleware()]
    backend = FilesystemBackend(root_dir=tmp_path, virtual_mode=True)
    shared: Any = {"middleware": ours, "backend": backend, "checkpointer": InMemorySaver()}
    agent = create_deep_agent(model=model, **shared, **options.get(feature, {}))
    agent.invoke({"messages": [HumanMessage([{"type": "text", "text": "Hi."}, PICTURE])]}, thread())
    (review,) = pending_reviews(agent, thread())
    prompt = review.params["system_prompt"] or ""
    assert added in f"{prompt} {review.sent}"
    exact = edit(system_prompt=f"{prompt} Be exact.")
    how = comment("Be exact.") if feature == "image" else exact
    assert resume(agent, thread(), how)["messages"][-1].content == "fine"
    sent = " ".join(str(message.text) for message in model.calls[-1])
    assert "Be exact." in sent
    assert added in sent
