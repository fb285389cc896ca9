"""Validation by a type that pydantic knows: models, dataclasses, unions, plain types.

`validator` validates whole values. `conversions` and `merged_keys` find the changes that validation
made. `core_schema` walks through the core schema that pydantic makes of a type, and finds the parts
of an incomplete value that cannot be judged yet.
"""
