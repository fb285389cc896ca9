"""Read an answer in YAML, JSON Lines or XML tags, or in a format that the user wrote.

The module `format` declares what a format does, and reads an answer with it. `yaml_format`,
`json_lines` and `tagged` are the built-in formats. `fences` finds the answer in the model's text.
`place` tells which types the JSON Schema allows at each place of the answer.
"""
