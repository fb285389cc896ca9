"""Agents drawn at random: nothing is misplaced, repeated or seen otherwise than without us."""

import pytest

from tests.agents.random_agent import outcome
from tests.parts import draws


@pytest.mark.drawn
@pytest.mark.slow
async def test_random_agents_are_right_in_every_call() -> None:
    """Each result is at its call, finished calls ran once, and tools see the unwrapped agent."""
    wrong = {}
    for seed in range(draws(25, 400)):
        found = await outcome(seed)
        if found:
            wrong[seed] = found
    assert wrong == {}
