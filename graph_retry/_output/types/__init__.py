"""Validation by a type that pydantic knows: models, dataclasses, unions, plain types.

`validator` validates whole values. `conversions` and `merged_keys` find the changes that validation
made. `unsure_keys` finds the parts of an incomplete value that cannot be judged yet. `merged_keys`
and `unsure_keys` read the core schema that pydantic makes of a type, through `core_schema`.
"""
