"""Judge a value by a JSON Schema of any draft, in bounded work and linear time."""
