"""Compare the data that two functions hold, to find out whether two calls are the same call.

The name and the params may not identify a call, because its function can hold data as well: in a
closure, in an argument of a `partial`, or in an attribute of its object. `function_parts.py` splits
a function into parts, one for each value that it holds. `content.py` and `code.py` compute a digest
of each part, which is the same in all processes. `captured.py` compares the parts of two functions.
"""
