"""Judging an answer while it is still being written: only what later text cannot mend counts.

`growing` reads the document that a text begins with, as far as it has come; `open_part` walks it,
with `typed_part` and `schema_part` as the two kinds of types; `watch` puts them together.
"""
