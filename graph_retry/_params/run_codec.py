"""The codec of one run, which encodes the same params once and builds them once."""

from __future__ import annotations

from typing import Any, cast

from graph_retry._issues import ABSENT
from graph_retry._params.codec import Encoded, ParamsCodec, ParamsT, Verified


class RunCodec(ParamsCodec[ParamsT]):
    """Remembers the params that it encoded last, and knows them by their view: the same object.

    State that another run saved, or that somebody edited, holds other objects, and is looked at.
    """

    def __init__(self, codec: ParamsCodec[ParamsT]) -> None:
        """Do what `codec` does."""
        self._type = codec._type  # noqa: SLF001
        self._known = Verified(Encoded({}, {}))

    def verified(self, value: ParamsT, *, owner: str = "params") -> Verified:
        """Do what `ParamsCodec.verified` does, and remember it."""
        self._known = super().verified(value, owner=owner)
        return self._known

    def load_verified(self, value: Any, types: dict[str, str]) -> Verified:
        """Do what `ParamsCodec.load_verified` does, except for what is known."""
        if not self._is_known(value, types):
            self._known = super().load_verified(value, types)
        return self._known

    def decode(self, view: dict[str, Any], types: dict[str, str]) -> ParamsT:
        """Build the params; the copy that encoding them made is as fresh, and is given away."""
        known = self._known
        if known.copy is ABSENT or not self._is_known(view, types):
            return super().decode(view, types)
        self._known = Verified(known.encoded)
        return cast("ParamsT", known.copy)

    def _is_known(self, view: Any, types: dict[str, str]) -> bool:
        return self._known.encoded.view is view and self._known.encoded.types == types
