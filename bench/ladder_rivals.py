"""Libraries on the ladder, each as its documentation drives it, over the same model's URL."""

import logging
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

from langchain_core.prompt_values import StringPromptValue

from bench.ladder_model import SCHEMA, Booking
from graph_retry import AttemptsExhausted, create_retry_node

RETRIES = 3
ACCESS: dict[str, Any] = {"api_key": "none", "max_retries": 0}


class Prompted(Protocol):
    """A task: something that is to be extracted from a text."""

    def prompt(self, instructions: str = "", /) -> str:
        """Return the prompt, with what a library wants to be said about the form."""
        ...


Run = Callable[[Any], Any]
"""Do one `Prompted` task: the accepted object or value, or None."""


class Make(Protocol):
    """Make a competitor of the URL where the model is, of a type, and of the most retries."""

    def __call__(self, url: str, output: Any = ..., retries: int = ..., /) -> Run:
        """Return the function that does a task."""
        ...


def chat(url: str, name: str = "scripted") -> Any:
    """Make LangChain's client."""
    openai = import_module("langchain_openai")
    return openai.ChatOpenAI(model=name, base_url=url, **ACCESS)


def ours(tools: bool) -> Make:
    """Use this library with LangChain's client; the model answers in text or as a tool call."""

    def make(url: str, output: Any = Booking, retries: int = RETRIES) -> Run:
        model = chat(url).bind_tools([output], tool_choice=output.__name__) if tools else chat(url)

        def call(params: dict[str, Any]) -> Any:
            return model.invoke(params["prompt"])

        node = create_retry_node(
            call, dict, output=output, review=False, feedback="errors_only", auto_retries=retries
        )

        def run(task: Prompted) -> Any:
            prompt = task.prompt("" if tools else SCHEMA)
            return node.invoke({"params": {"prompt": prompt}})["output"]

        return run

    return make


def instructor(mode: str) -> Make:
    """Patch OpenAI's client; the mode adds the schema and reads the answer."""

    def make(url: str, output: Any = Booking, retries: int = RETRIES) -> Run:
        logging.getLogger("instructor").setLevel(logging.CRITICAL)
        library, errors = import_module("instructor"), import_module("instructor.core.exceptions")
        client = import_module("openai").OpenAI(base_url=url, **ACCESS)
        patched = library.from_openai(client, mode=getattr(library.Mode, mode))

        def run(task: Prompted) -> Any:
            with suppress(errors.InstructorRetryException, errors.IncompleteOutputException):
                return patched.create(
                    response_model=output,
                    max_retries=retries,
                    messages=[{"role": "user", "content": task.prompt()}],
                    model="scripted",
                )
            return None

        return run

    return make


def retry_parser(name: str) -> Make:
    """Put one of LangChain's retry parsers around its `PydanticOutputParser`."""

    def make(url: str, output: Any = Booking, retries: int = RETRIES) -> Run:
        errors = import_module("langchain_core.exceptions")
        parsers = import_module("langchain_core.output_parsers")
        model, parser = chat(url), parsers.PydanticOutputParser(pydantic_object=output)
        retrying = getattr(import_module("langchain_classic.output_parsers"), name)
        retry = retrying.from_llm(llm=model, parser=parser, max_retries=retries)

        def run(task: Prompted) -> Any:
            prompt = StringPromptValue(text=task.prompt(parser.get_format_instructions()))
            with suppress(errors.OutputParserException):
                return retry.parse_with_prompt(str(model.invoke(prompt).text), prompt)
            return None

        return run

    return make


def agent(strategy: str) -> Make:
    """Use `create_agent` with a response format, and what its middleware has for retries."""

    def make(url: str, output: Any = Booking, retries: int = RETRIES) -> Run:
        agents, middleware = import_module("langchain.agents"), "langchain.agents.middleware"
        formats = import_module("langchain.agents.structured_output")
        limits = [import_module(middleware).ModelCallLimitMiddleware(run_limit=retries + 1)]
        if strategy == "ProviderStrategy":  # its errors go to nobody but a retry
            retry = import_module(middleware).ModelRetryMiddleware
            limits = [retry(max_retries=retries, initial_delay=0, on_failure="error")]
        made = agents.create_agent(
            chat(url), response_format=getattr(formats, strategy)(output), middleware=limits
        )

        def run(task: Prompted) -> Any:
            given = {"messages": [{"role": "user", "content": task.prompt()}]}
            with suppress(formats.StructuredOutputError, import_module("openai").OpenAIError):
                return made.invoke(given).get("structured_response")
            return None

        return run

    return make


def reviewed_agent(url: str, output: Any = Booking, retries: int = RETRIES) -> Run:
    """Use `create_agent` with this library's middleware; nobody is asked."""
    agents = import_module("langchain.agents")
    formats = import_module("langchain.agents.structured_output")
    ours_in_agents = import_module("graph_retry.agents")
    retry = ours_in_agents.RetryMiddleware(
        review=False, feedback="errors_only", auto_retries=retries
    )
    made = agents.create_agent(
        chat(url), response_format=formats.ToolStrategy(output), middleware=[retry]
    )

    def run(task: Prompted) -> Any:
        given = {"messages": [{"role": "user", "content": task.prompt()}]}
        with suppress(AttemptsExhausted):
            return made.invoke(given)["structured_response"]
        return None

    return run


def trustcall(url: str, output: Any = Booking, retries: int = RETRIES) -> Run:
    """Let trustcall patch tool calls."""
    logging.getLogger("extraction").setLevel(logging.CRITICAL)
    extractor = import_module("trustcall").create_extractor(
        chat(url), tools=[output], tool_choice=output.__name__
    )
    config = {"configurable": {"max_attempts": retries + 1}}

    def run(task: Prompted) -> Any:
        responses = extractor.invoke(task.prompt(), config)["responses"]
        return responses[0] if responses else None

    return run


def pydantic_ai(way: str) -> Make:
    """Use an agent whose output is a tool's arguments (`ToolOutput`) or text (`PromptedOutput`)."""

    def make(url: str, output: Any = Booking, retries: int = RETRIES) -> Run:
        library = import_module("pydantic_ai")
        provider = import_module("pydantic_ai.providers.openai").OpenAIProvider
        model = import_module("pydantic_ai.models.openai").OpenAIChatModel
        made = library.Agent(
            model("scripted", provider=provider(base_url=url, api_key="none")),
            output_type=getattr(library, way)(output),
            retries=retries,
        )
        errors = import_module("pydantic_ai.exceptions")

        def run(task: Prompted) -> Any:
            with suppress(errors.UnexpectedModelBehavior):
                return made.run_sync(task.prompt()).output
            return None

        return run

    return make


RIVALS: dict[str, tuple[str, Make]] = {
    "graph-retry, text": ("langchain-openai", ours(tools=False)),
    "graph-retry, tool call": ("langchain-openai", ours(tools=True)),
    "graph-retry, RetryMiddleware": ("langchain", reviewed_agent),
    "LangChain RetryOutputParser": ("langchain-classic", retry_parser("RetryOutputParser")),
    "LangChain RetryWithErrorOutputParser": (
        "langchain-classic",
        retry_parser("RetryWithErrorOutputParser"),
    ),
    "create_agent, ToolStrategy": ("langchain", agent("ToolStrategy")),
    "create_agent, ProviderStrategy, ModelRetryMiddleware": (
        "langchain",
        agent("ProviderStrategy"),
    ),
    "instructor, JSON": ("instructor", instructor("JSON")),
    "instructor, MD_JSON": ("instructor", instructor("MD_JSON")),
    "instructor, TOOLS": ("instructor", instructor("TOOLS")),
    "trustcall": ("trustcall", trustcall),
    "pydantic-ai, ToolOutput": ("pydantic-ai-slim", pydantic_ai("ToolOutput")),
    "pydantic-ai, PromptedOutput": ("pydantic-ai-slim", pydantic_ai("PromptedOutput")),
}
"""Competitors by name, with the package each comes from."""
