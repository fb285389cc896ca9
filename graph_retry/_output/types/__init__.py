"""Validation by a type that pydantic knows: models, dataclasses, unions, plain types.

`validator` validates whole values. `conversions` and `merged_keys` find the changes that validation
made. `unsure_keys` tells which parts of an incomplete value can be judged. The last two read the
core schema that pydantic makes of a type, through `core_schema`.
"""
