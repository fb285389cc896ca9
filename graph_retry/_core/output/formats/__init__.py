"""Read answers in other formats than JSON to a JSON value, losslessly or not at all.

`format` declares the protocol of a format, and reads an answer by a format. `yaml_format`,
`json_lines` and `tagged` are the built-in formats. `fences` finds the answer in the model's text.
`place` tells which kinds of values the JSON Schema wants at each place of the answer.
"""
