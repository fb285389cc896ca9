"""Judge an answer while it is still being written: only faults that later text cannot mend count.

`growing` reads the document that a text begins with, as far as it has come. `part` validates its
settled parts, by the rules of a type (`typed_part`) or of a JSON Schema (`json_schema/parts`).
`watch` puts them together.
"""
