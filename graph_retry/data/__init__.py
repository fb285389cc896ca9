"""Use ledgers and decisions as data: corrections, evaluations, figures, replays, plots.

Import all public names from this package.
"""

from typing import TYPE_CHECKING

from graph_retry.lossless._ground import on_demand

if TYPE_CHECKING:
    from graph_retry.data._corrections.export import (
        Selection,
        acorrections_of,
        aexport,
        corrections_of,
        export,
    )
    from graph_retry.data._corrections.files import Exported, import_corrections
    from graph_retry.data._corrections.past_corrections import PastCorrections
    from graph_retry.data._corrections.record import Correction, How, corrections_in
    from graph_retry.data._corrections.renderings import Format
    from graph_retry.data._evaluate import EvaluateOptions, aevaluate, evaluate
    from graph_retry.data._evaluation import Compare, Ended, Evaluation, Judged
    from graph_retry.data._metrics import Attempts, Summary, summarize
    from graph_retry.data._plot import plot_evaluations, plot_summary, plot_timeline
    from graph_retry.data._precedent import Precedent, precedents
    from graph_retry.data._replay import Replayed, ReplayOptions, areplay, replay
else:
    __getattr__ = on_demand(
        __name__,
        *("_corrections.record", "_corrections.files", "_corrections.renderings"),
        *("_metrics", "_evaluation", "_precedent", "_plot", "_replay", "_evaluate"),
        *("_corrections.export", "_corrections.past_corrections"),
    )

__all__ = [
    "Attempts",
    "Compare",
    "Correction",
    "Ended",
    "EvaluateOptions",
    "Evaluation",
    "Exported",
    "Format",
    "How",
    "Judged",
    "PastCorrections",
    "Precedent",
    "ReplayOptions",
    "Replayed",
    "Selection",
    "Summary",
    "acorrections_of",
    "aevaluate",
    "aexport",
    "areplay",
    "corrections_in",
    "corrections_of",
    "evaluate",
    "export",
    "import_corrections",
    "plot_evaluations",
    "plot_summary",
    "plot_timeline",
    "precedents",
    "replay",
    "summarize",
]
