"""Answers in other formats than JSON, read to a JSON value losslessly or not at all.

`format` says what a format is and reads by one; `yaml_format`, `json_lines` and `tagged` are the
built-in ones; `fences` finds the answer in its text, and `place` tells what its schema wants where.
"""
