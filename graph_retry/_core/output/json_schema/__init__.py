"""Validate a value by a JSON Schema of any draft, with bounded work and in linear time."""
