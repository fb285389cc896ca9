"""The step `repair`, which reads the model's text as JSON, and the step `validate`."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, cast

from graph_retry._core.ground.functions.awaiting import off_loop
from graph_retry._core.ground.issues import issue, json_problem
from graph_retry._core.ground.json import as_floats
from graph_retry._core.ground.redact import redacted_fields
from graph_retry._core.ground.schemas import ANY_KIND
from graph_retry._core.ground.wording import passed_as, quoted_with_article
from graph_retry._core.loop.after_attempt import succeeded
from graph_retry._core.loop.asking.questions import read_value
from graph_retry._core.loop.run.settings import Settings
from graph_retry._core.loop.run.step import StepInput
from graph_retry._core.output.build import SchemaOfParams, build_validator
from graph_retry._core.output.failures import finish_kind, is_complete, syntax_issue
from graph_retry._core.output.formats.format import read_as
from graph_retry._core.output.mistakes import place_of, tell
from graph_retry._core.output.types.conversions import rounded_numbers
from graph_retry._core.output.validator import Checked, Validator, format_issues
from graph_retry._core.state.attempts import (
    ROUNDED,
    exact_value,
    is_rounded,
    params_at,
)
from graph_retry._core.state.position import LOOP, REVIEWED
from graph_retry.lossless import ParsedOutput
from graph_retry.lossless.results import Wanted
from graph_retry.records import Attempt, Failure, FailureKind, Issue

_SHORT = 4_000
"""Maximum characters of a text whose parsed value is stored. Longer texts are parsed again."""

_LONG = 4_000
"""In an async run, a worker thread reads texts with more characters than this."""

_NOTHING = "NothingReturned"
"""The type of the failure if a function returned None instead of an output."""


async def repair_step(given: StepInput) -> dict[str, Any]:
    """The step `repair`: read the model's text as JSON. The next step validates the value."""
    settings = given.plan.settings
    update = await _read_off_loop(given.attempts[-1], given.plan.validator, settings)
    return {LOOP: {**given.loop, "next": "validate"}, settings.keys["attempts"]: [update]}


async def _read_off_loop(
    record: Attempt, validator: Validator | None, settings: Settings
) -> dict[str, Any]:
    """Read the model's text. In an async run, a worker thread reads a long text."""
    if len((record["raw"] or {}).get("text", "")) <= _LONG:
        return read_raw(record, validator, settings)
    return await off_loop(read_raw, record, validator, settings)


def read_raw(record: Attempt, validator: Validator | None, settings: Settings) -> dict[str, Any]:
    """Read the model's text of an attempt as JSON. Return the new fields of the record."""
    update: dict[str, Any] = {
        "number": record["number"],
        "repaired": None,
        "repairs": [],
        "lossless": None,
        "parsed": None,
        "failure": None,
        "issues": [],
    }
    raw = record["raw"] or {}
    if "text" not in raw or (validator and validator.wants_text):
        return update
    may_be_text = validator is not None and settings.format is None
    spelled = _json_string(raw["text"]) if may_be_text else None
    # If a string is wanted and the text is a quoted JSON string, there is nothing to repair.
    if spelled is not None and validator is not None and validator.admits_text:
        update["lossless"], update["parsed"] = True, {"value": spelled}
    else:
        complete = False if record.get("stopped_early") else is_complete(record["finish_reason"])
        parsed = _read(raw["text"], settings, complete, validator)
        update["repairs"], update["lossless"] = list(parsed.repairs), parsed.lossless
        has_json = parsed.failure is None or parsed.failure["kind"] != "no_json"
        if not has_json and validator is not None and validator.kinds == frozenset({"string"}):
            # A model may return a string without quotes, for example one of a few allowed words.
            update["parsed"] = {"value": raw["text"].strip()}
        elif parsed.failure is not None:
            announced = finish_kind(record["finish_reason"])
            update["failure"] = _syntax_failure(parsed, announced, settings)
            if parsed.failure["kind"] == "no_json" and record["finish_reason"]:
                stopped = f" The model stopped with `{record['finish_reason']}`."
                update["failure"]["message"] += stopped
            update["issues"] = [syntax_issue(parsed, _format_name(settings))]
        else:
            rounded = rounded_numbers(raw["text"], parsed.value)
            update["repairs"] += rounded
            update["lossless"] = parsed.lossless and not rounded
            if parsed.text != raw["text"]:
                update["repaired"] = {"text": parsed.text}
            if len(raw["text"]) <= _SHORT and json_problem(parsed.value) is None:
                update["parsed"] = {"value": parsed.value}
    return update


def _json_string(text: str) -> str | None:
    if text.strip()[:1] != '"':
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


async def validate_step(given: StepInput) -> dict[str, Any]:
    """The step `validate`: validate the value that was read, and choose the next step."""
    plan, settings, validator = given.plan, given.plan.settings, given.plan.validator
    loop, record, key = given.loop, given.attempts[-1], settings.keys["attempts"]
    update: dict[str, Any] = {"number": record["number"]}
    checked: Checked | None = None
    if validator is not None:
        # Strict JSON is read here, because a text in strict JSON skips the step `repair`.
        if record["failure"] is None and record["lossless"] is None:
            update |= await _read_off_loop(record, validator, settings)
            record = cast("Attempt", {**record, **update})
        with given.run.trace.validation(settings, record) as ended:
            found, checked = await validate_attempt([*given.attempts[:-1], record], validator)
            update |= found
            ended({**record, **update})
    update |= redacted_fields({**record, **update}, settings.redact, plan.output_names)
    whole = cast("Attempt", {**record, **update})
    if whole["failure"] is not None:
        update["status"] = "failed"
        if whole["failure"]["type"] == _NOTHING:
            tell(whole["failure"]["message"], place_of(plan.llm_call))
        failed: dict[str, Any] = {LOOP: {**loop, "next": "revise"}, key: [update]}
        may_be_taken = checked is not None and "accept" in settings.allowed_decisions
        return failed | ({REVIEWED: read_value(record, validator)} if may_be_taken else {})
    update["status"] = whole["status"] = "succeeded"
    # Without `output=`, the result of the call is the output. It waits in state under `REVIEWED`.
    output = given.state[REVIEWED]["value"] if checked is None else checked.jsonable
    followed = await succeeded(given, whole, output)
    noted = {"gate": whole["gate"]} if "gate" in whole else {}
    cleared = {REVIEWED: None} if checked is None else {}
    return {**cleared, key: [{**update, **noted}], **followed}


async def validate_attempt(
    attempts: list[Attempt], validator: Validator | None
) -> tuple[dict[str, Any], Checked | None]:
    """Validate the value that was read from the last attempt.

    Return the new fields of the record, and the validator's result. If there is no validator, or if
    the attempt has failed before, the result is None.
    """
    record = attempts[-1]
    if validator is None or record["failure"] is not None:
        return {"number": record["number"]}, None
    # In a run, `read_input` has read the schema from the params. A replay reads the schema here.
    if isinstance(validator, SchemaOfParams) and (at := params_at(attempts)):
        validator = validator.fitted(at.view)
    repairs, was_rounded = record["repairs"], is_rounded(record["repairs"])
    check = validator.acheck_digits if was_rounded else validator.acheck
    value = exact_value(record, as_text=validator.wants_text)
    checked = await check(value)
    if not checked.ok or checked.ignores:
        # Most answers have no wrapper, so this is imported late.
        from graph_retry._core.output.unwrapped import acheck_unwrapped  # noqa: PLC0415

        checked = await acheck_unwrapped(validator, value, checked, check)
    raw = record["raw"] or {}
    spelled = raw["text"] if "text" in raw else str(raw.get("value"))
    if checked.ok and "<" in spelled and not validator.wants_text:
        from graph_retry._core.output.unwrapped import leaked_mark  # noqa: PLC0415

        leaked = leaked_mark(value)
        checked = Checked(issues=[leaked], repairs=checked.repairs) if leaked else checked
    update: dict[str, Any] = {"number": record["number"], "issues": checked.issues}
    if checked.ok and (was_rounded or checked.is_unwrapped):
        update["parsed"] = {"value": as_floats(checked.judged)}
    if checked.ok and was_rounded:
        read = [one for one in repairs if one["kind"] != ROUNDED]
        repairs = [*read, *rounded_numbers((record["raw"] or {})["text"], checked.judged)]
    update["repairs"] = repairs = [*repairs, *checked.repairs]
    if was_rounded or is_rounded(repairs):
        is_guessed = any(one["grade"] == "guessed" for one in repairs)
        update["lossless"] = not is_rounded(repairs) and not is_guessed
    if not checked.ok and (record["raw"] or {}).get("value", ...) is None:
        made_by = f"`{record['name']}`" if record.get("name") else "the call"
        message = f"{made_by} returned nothing (a forgotten `return`?)"
        update["failure"] = {"kind": "invalid_schema", "type": _NOTHING, "message": message}
        update["issues"] = [issue("", message, "nothing_returned", validator.name)]
    elif not checked.ok:
        update["failure"] = _schema_failure(record, validator, checked.issues)
    return update, checked


def _fits(validator: Validator, value: Any) -> bool:
    return validator.reads_calls(value) or build_validator(validator.schema).check(value).ok


def _read(
    text: str, settings: Settings, complete: bool | None, validator: Validator | None
) -> ParsedOutput:
    # The reader of damaged text is imported late, because most outputs never need this reader.
    from graph_retry.lossless.parse import read_output  # noqa: PLC0415

    (level, function), written = settings.repair, settings.format
    schema = None if validator is None else validator.schema
    kinds = ANY_KIND if validator is None else validator.kinds
    fits = None if validator is None or schema is None else partial(_fits, validator)
    # A schema that allows lists and other values leaves open which of them is wanted.
    wants_list = None if kinds > {"array"} or not kinds else "array" in kinds
    names = frozenset[str]() if validator is None else validator.call_names
    wanted = Wanted(complete, wants_list, fits, names)
    parse = partial(read_output, level=level, wanted=wanted)
    if written is None:
        parsed = parse(text)
    else:
        parsed = read_as(written, text, level, schema=schema, complete=complete)
    if function is None:
        return parsed
    with passed_as("repair"):
        changed = cast("object", function(parsed.text))
    if not isinstance(changed, str):
        came = quoted_with_article(type(changed).__name__)
        raise TypeError(f"`repair` returned {came} for a text: return a text, changed or not.")
    if changed == parsed.text:
        return parsed
    # After a successful reading, `parsed.text` is JSON, so the changed text is JSON as well.
    if written is not None and parsed.failure is not None:
        return read_as(written, changed, level, schema=schema, complete=complete)
    return parse(changed)


def _syntax_failure(
    parsed: ParsedOutput, announced: FailureKind | None, settings: Settings
) -> Failure:
    assert parsed.failure is not None  # noqa: S101
    is_cut = parsed.failure["kind"] == "truncated"
    kind = announced or ("truncated" if is_cut else "invalid_syntax")
    name = f"Invalid{_format_name(settings).upper()}"
    return {"kind": kind, "type": name, "message": parsed.failure["message"]}


def _format_name(settings: Settings) -> str:
    return "json" if settings.format is None else settings.format.name


def _schema_failure(record: Attempt, validator: Validator, issues: list[Issue]) -> Failure:
    kind = finish_kind(record["finish_reason"]) or "invalid_schema"
    if any(problem.get("hopeless") for problem in issues):
        kind = "permanent"
    message = f"the output is not a valid {validator.name}: {format_issues(issues)}"
    return {"kind": kind, "type": "ValidationError", "message": message}
