"""Validate an answer while it streams, so that a stream can be stopped early.

`growing` reads the value of an incomplete text. `settled` validates the new parts of this value,
and keeps only the errors that no later text can correct. `early_end` combines both modules.
"""
