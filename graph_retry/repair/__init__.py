"""Lossless reading of what a model wrote: the value, or why there is none."""
