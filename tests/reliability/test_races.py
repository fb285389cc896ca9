"""Several processes answer at once: one answer wins, the others are told, no call is repeated."""

import pytest

from tests.parts import draws
from tests.reliability.forking import counted

pytestmark = pytest.mark.drawn


@pytest.fixture(params=["sqlite", "postgres"])
def play(request):
    """Run a scene on one kind of database and return what was counted."""
    dsn = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""

    def played(scene, size):
        return counted("races", scene, request.param, dsn, str(size))

    return played


@pytest.mark.slow
def test_of_eight_processes_one_answers_each_review(play):
    """Every review has one winner, whose edit is used; seven losers and its double are told."""
    n = draws(2, 8)
    found = play("same", n)
    assert found == {
        "reviews": n,
        "won": n,
        "stale": 8 * n,
        "untold": 0,
        "calls": 2 * n,
        "applied": n,
    }


@pytest.mark.long
def test_branches_answered_in_random_batches_by_several_processes_are_called_once(play):
    """Two `Send`s of 20, two answers a branch, three processes: 120 calls, 80 answers."""
    found = play("fan", 3)
    assert found.pop("stale") >= 0
    made = {"calls": 120, "different": 120, "complete": 6}
    assert found == {"won": 80, "reviews": 80, "untold": 0, **made}


@pytest.mark.slow
def test_an_answer_during_a_running_retry_is_refused(play):
    """Named or not, it is for the question that was open when it came, and that one is answered."""
    n = draws(2, 4)
    assert play("running", n) == {"won": n, "stale": n, "untold": 0, "calls": 2 * n}


@pytest.mark.slow
def test_another_process_takes_over_from_a_killed_one(play):
    """Killed after asking it costs nothing, killed in a call that call, under the same key."""
    assert play("takeover", 4) == {"threads": 4, "calls": 14, "different": 12, "complete": 4}
