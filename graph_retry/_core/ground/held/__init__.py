"""What a function holds beside its code, digested by content and compared.

In comes a function of the user's, or any value. `reading.py` reads it into parts, each with the
digest of its content (`content.py`, `code.py`): equal values have equal digests in each process.
`captured.py` compares the parts of two functions: the calls are the same or others, or it is not
known.
"""
