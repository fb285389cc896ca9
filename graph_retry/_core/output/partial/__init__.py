"""Validate an answer while it streams, so that a stream can be stopped early.

`growing` reads the value of an incomplete text. `settled` finds the errors in it that no later text
can correct. `early_end` combines both modules.
"""
