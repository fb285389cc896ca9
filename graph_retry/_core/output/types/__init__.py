"""Validation by a type that pydantic knows: models, dataclasses, unions, plain types.

`type_validator` validates values. `named_calls` validates tool calls that name a class.
`conversions` finds the changes that validation made. `core_schema` walks through pydantic's schema
of a type. `union_work` limits the work for recursive unions.
"""
