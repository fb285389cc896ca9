"""Validate an answer while it streams, so that a stream can be stopped early.

Only faults that later text cannot correct count. `growing` reads the value of an incomplete text.
`part` validates the settled parts of this value, by the rules of a type (`typed_part`) or of a JSON
Schema (`json_schema/parts`). `watch` combines these two steps.
"""
