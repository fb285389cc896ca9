"""What a function holds beside its code, digested by content.

In comes a function of the user's, or any value. Out goes a `Captured` with a digest of each value
that the function holds. Equal values have equal digests in each process, and a value without
readable content has none. Read `captured.py` first.
"""
