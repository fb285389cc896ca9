"""Lossless reading of what a model wrote: the value, or why there is none.

The rooms, in the order a text passes them: `parse` (the entry), `find` (where documents begin),
`mend` (one document, one edit at most), `read` (the tolerant reader, with `keys`, `strings`,
`escapes`, `scalars`, `comments`, `gaps`, `scan` and `frame`), `decide` (which document is the
answer, with `surroundings` and `taken_back`: whether what stands around it leaves a doubt) and
`report` (the outcome, with its repairs or its refusal).

A repair is accepted only where no other single change explains the text as well: a quote, comma or
bracket that is left out, doubled, swapped with its neighbour or overwritten by another mark.
"""
