"""A real model in the loop: valid, right, valid but wrong, and what each means costs.

The model is small and makes honest failures. `python -m bench.real` asks it (or takes what was
asked before) and prints the tables of `bench/by_hand.md`; `make real` starts the model first.
"""
