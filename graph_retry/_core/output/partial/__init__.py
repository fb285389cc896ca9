"""Validate an answer while it streams, so that a stream can be stopped early.

`growing` reads the value of an incomplete text. `settled` validates the new parts of this value, by
the validator of the whole value, and keeps the errors that later text cannot correct. `watch`
combines both modules.
"""
