"""Other libraries on the ladder, each as its documentation drives it, over the same text model."""

import json
import logging
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import PydanticOutputParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompt_values import StringPromptValue
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from bench.ladder_model import Answer, Booking, ScriptedModel, Task

Run = Callable[[Task], dict[str, Any] | None]
Make = Callable[[ScriptedModel], Run]


def instructor(mode: str, retries: int) -> Make:
    """Patch a `create` function; the mode adds the schema and reads the text."""

    def make(model: ScriptedModel) -> Run:
        logging.getLogger("instructor").setLevel(logging.CRITICAL)
        library, errors = import_module("instructor"), import_module("instructor.core.exceptions")
        completion = import_module("openai.types.chat").ChatCompletion

        def create(messages: list[dict[str, Any]], **_: Any) -> Any:
            answer = model("\n".join(str(message["content"]) for message in messages))
            message = {"role": "assistant", "content": answer.text}
            choice = {"index": 0, "finish_reason": answer.finish_reason, "message": message}
            return completion.model_validate(
                {
                    "id": "1",
                    "created": 0,
                    "model": "scripted",
                    "object": "chat.completion",
                    "choices": [choice],
                }
            )

        patched = library.patch(create=create, mode=getattr(library.Mode, mode))

        def run(task: Task) -> dict[str, Any] | None:
            messages = [{"role": "user", "content": task.prompt()}]
            try:
                booking = patched(
                    response_model=Booking, max_retries=retries, messages=messages, model="scripted"
                )
            except (errors.InstructorRetryException, errors.IncompleteOutputException):
                return None
            return Booking.model_dump(booking)

        return run

    return make


def retry_parser(name: str, retries: int) -> Make:
    """Put one of LangChain's retry parsers around its `PydanticOutputParser`."""

    def make(model: ScriptedModel) -> Run:
        chat = TextChat(model=model)
        parser = PydanticOutputParser(pydantic_object=Booking)
        instructions = parser.get_format_instructions()
        retrying = getattr(import_module("langchain_classic.output_parsers"), name)
        retry = retrying.from_llm(llm=chat, parser=parser, max_retries=retries)

        def run(task: Task) -> dict[str, Any] | None:
            prompt = StringPromptValue(text=task.prompt(instructions))
            text = str(chat.invoke(prompt).text)
            try:
                return Booking.model_dump(retry.parse_with_prompt(text, prompt))
            except OutputParserException:
                return None

        return run

    return make


def trustcall(retries: int) -> Make:
    """Let trustcall patch tool calls; see `TextChat` for how a text becomes one."""

    def make(model: ScriptedModel) -> Run:
        logging.getLogger("extraction").setLevel(logging.CRITICAL)
        extractor = import_module("trustcall").create_extractor(
            TextChat(model=model), tools=[Booking], tool_choice="Booking"
        )
        config = {"configurable": {"max_attempts": retries + 1}}

        def run(task: Task) -> dict[str, Any] | None:
            responses = extractor.invoke(task.prompt(), config)["responses"]
            return Booking.model_dump(responses[0]) if responses else None

        return run

    return make


class TextChat(BaseChatModel):
    """The scripted model as a chat model.

    Where tools are bound its text is taken as the arguments of a tool call, read the way
    LangChain's integrations read them, and a corrected object as a patch to what was wrong.
    """

    model: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, AIMessage]:
        """Send the tools along."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **sent: Any
    ) -> ChatResult:
        del stop, run_manager
        tools = sent.get("tools", [])
        prompt = "\n".join(_text(message) for message in messages)
        answer = self.model(prompt, unseen=len(json.dumps(tools)) if tools else 0)
        message = AIMessage(answer.text) if not tools else _tool_call(answer, tools, messages)
        return ChatResult(generations=[ChatGeneration(message=message)])


def _text(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return "\n".join([str(message.text), *(json.dumps(call["args"]) for call in calls)])


def _tool_call(answer: Answer, tools: list[Any], messages: list[BaseMessage]) -> AIMessage:
    name = tools[0]["function"]["name"]
    try:
        args = json.loads(answer.text, strict=False)
    except ValueError as error:
        invalid = {"name": name, "args": answer.text, "id": "1", "error": str(error)}
        return AIMessage("", invalid_tool_calls=[invalid])
    if name == "PatchFunctionErrors":
        wrong = next(m.tool_calls[0] for m in messages if isinstance(m, AIMessage))
        patches = [
            {"op": "add", "path": f"/{key}", "value": value}
            for key, value in args.items()
            if wrong["args"].get(key) != value
        ]
        args = {"json_doc_id": wrong["id"], "planned_edits": "", "patches": patches}
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": "1"}])
