"""Digest and compare the values that a function holds beside its code, such as closure cells.

The input is a user's function, or any value. `reading.py` splits the input into parts. Each part
has a digest of its content (`content.py`, `code.py`). Equal values have equal digests in each
process. `captured.py` compares the parts of two functions. The result says whether the two calls
are the same or different, or that this is not known.
"""
