"""The `Ledger`: all attempts of one call, with its outcome and the changes between attempts."""

from graph_retry._core.state.attempts import tokens_of
from graph_retry._core.threads.saved.one_call import (
    Ledger,
    OneCall,
    Outcome,
    attempts_in,
    output_of,
    params_in,
)

__all__ = ["Ledger", "OneCall", "Outcome", "attempts_in", "output_of", "params_in", "tokens_of"]
