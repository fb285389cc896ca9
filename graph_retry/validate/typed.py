"""A validator for anything pydantic can validate: models, dataclasses, unions, plain types."""

import json
from collections.abc import Callable
from typing import Annotated, Any, get_origin

from pydantic import PydanticInvalidForJsonSchema, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import SchemaError, from_json, to_json

from graph_retry.records import Repair
from graph_retry.validate.caught import attempt
from graph_retry.validate.coercion import coercions
from graph_retry.validate.issues import cut
from graph_retry.validate.plain import ABSENT, BAD_NUMBERS, NOT_JSON, json_problem, same
from graph_retry.validate.validator import Checked


class TypedValidator:
    """Validate with pydantic; keep accepted values in state as JSON that validates back.

    Plain JSON is validated as JSON, so that a date is read from its string even when strict. Other
    values, such as a model instance, are validated as Python.
    """

    def __init__(self, output: Any, *, strict: bool) -> None:
        """Build the schema of `output`, so that a type nobody can validate fails at once."""
        is_class = isinstance(output, type) and get_origin(output) is None
        self.name = cut(output.__name__ if is_class else repr(output).replace("typing.", ""), 80)
        self.wants_text = _is_text(output)
        self._strict = strict or None
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(output)
            self._adapter.rebuild()
        except (PydanticUserError, SchemaError, NameError, TypeError) as error:
            reason = cut(" ".join(str(error).split()), 300)
            message = f"`output` type `{self.name}` cannot be validated by pydantic: {reason}"
            raise TypeError(message) from error

    @property
    def schema(self) -> dict[str, Any] | None:
        """The type's JSON Schema for input; `None` for a type that has none."""
        try:
            return self._adapter.json_schema()
        except PydanticInvalidForJsonSchema:
            return None

    def check(self, value: Any) -> Checked:
        """Validate `value`, converting as the type allows unless strict.

        Raises:
            TypeError: If no plain JSON form of the accepted value validates back to it.
        """
        problem = json_problem(value)
        if problem and problem["code"] not in (NOT_JSON, *BAD_NUMBERS):
            return Checked.refused([problem])
        as_json = problem is None or problem["code"] != NOT_JSON
        validated, issues = attempt(self._validate, value, as_json, self._strict, root=value)
        if issues:
            return Checked.refused(issues)
        jsonable = self._plain_form(validated, value)
        if jsonable is ABSENT:
            if problem and as_json:
                return Checked.refused([problem])
            raise TypeError(
                f"an accepted `{type(validated).__name__}` of `output` type `{self.name}` has no "
                "plain JSON form that validates back to an equal value, so graph state cannot keep "
                "it; give the type a serializer that its validation reads, or a JSON-like type"
            )
        repairs: list[Repair] = []
        if not self._strict and (jsonable is value or not same(jsonable, value)):
            found, none_found = attempt(self._coercions, value, as_json, validated)
            repairs = [] if none_found else found
        return Checked(value=validated, jsonable=jsonable, repairs=repairs)

    def rebuild(self, jsonable: Any) -> Any:
        """Validate the plain JSON form again, its keys being aliases or field names.

        Raises:
            ValidationError: If `jsonable` is not what an accepted check gave.
        """
        return self._adapter.validate_json(
            json.dumps(jsonable), strict=self._strict, by_alias=True, by_name=True
        )

    def _validate(self, value: Any, as_json: bool, strict: bool | None) -> Any:
        if as_json:
            return self._adapter.validate_json(json.dumps(value), strict=strict)
        return self._adapter.validate_python(value, strict=strict)

    def _plain_form(self, validated: Any, given: Any) -> Any:
        """Find a plain JSON form that rebuilds to an equal value, or `ABSENT`.

        The dump by alias reads like what the model was asked for. The one by name serves types
        whose aliases differ in and out, and what was given serves those that dump less than they
        read (excluded fields, one-way serializers and validators).
        """
        forms: tuple[Callable[[], Any], ...] = (
            lambda: self._dump(validated, by_alias=True),
            lambda: self._dump(validated, by_alias=False),
            lambda: given,
        )
        for form in forms:
            jsonable, _ = attempt(self._if_it_rebuilds, form, validated)
            if jsonable is not ABSENT:
                return jsonable
        return ABSENT

    def _if_it_rebuilds(self, form: Callable[[], Any], validated: Any) -> Any:
        jsonable = form()
        fits = json_problem(jsonable) is None and same(self.rebuild(jsonable), validated)
        return jsonable if fits else ABSENT

    def _dump(self, validated: Any, *, by_alias: bool) -> Any:
        dumped = self._adapter.dump_python(
            validated, mode="json", by_alias=by_alias, round_trip=True, warnings="none"
        )
        # JSON has no NaN; pydantic reads the string back where a float is wanted.
        return from_json(to_json(dumped, inf_nan_mode="strings"))

    def _coercions(self, value: Any, as_json: bool, validated: Any) -> list[Repair]:
        try:
            self._validate(value, as_json, strict=True)
        except ValidationError as refusal:
            return coercions(refusal, value, validated)
        return []


def _is_text(output: Any) -> bool:
    """Tell whether `output` is `str`, be it annotated or renamed."""
    while output is not str:
        inner = getattr(output, "__supertype__", None) or getattr(output, "__value__", None)
        if get_origin(output) is Annotated:
            inner = output.__origin__
        if inner is None or isinstance(output, type):
            return False
        output = inner
    return True
