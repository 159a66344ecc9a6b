"""The loop around commits: what leads to another round, what is undone and when."""

import pytest

from manifest.commit.transaction import EVALUATIONS, Transaction
from manifest.io.errors import CommitConflict

LOST = CommitConflict("another commit was faster")
P, Q = (b"", 0), (b"", 1)


class Operation:
    """Makes ``round-1``, ``round-2`` and so on; each publication meets the next of ``fates``: an error, or buckets that lost."""

    def __init__(self, *fates):
        self.fates = list(fates)
        self.events = []
        self.transaction = Transaction(lambda work: self.events.append(("undo", *work)))

    def evaluate(self, current):
        self.events.append(("evaluate", current.number, current.buckets))
        current.work.append(f"round-{current.number}")

    def rework(self, lost):
        self.events.append(("rework", *lost))
        return [f"{one}'" for one in lost]

    def publish(self, made):
        self.events.append(("publish", *made))
        fate = self.fates.pop(0) if self.fates else ()
        if isinstance(fate, BaseException):
            raise fate
        return fate

    def run(self, **options):
        return self.transaction.run(options.pop("evaluate", self.evaluate), self.publish, **options)

    @property
    def calls(self):
        return [event[0] for event in self.events]


def test_without_a_conflict_there_is_one_round():
    operation = Operation("done")
    assert operation.run() == "done"
    assert operation.events == [("evaluate", 1, None), ("publish", "round-1")]
    assert (operation.transaction.rounds, list(operation.transaction.work)) == (1, ["round-1"])


def test_a_conflict_undoes_the_round_before_the_next_evaluation():
    operation = Operation(LOST, "done")
    assert operation.run() == "done"
    assert operation.events[2:] == [("undo", "round-1"), ("evaluate", 2, None), ("publish", "round-2")]
    assert (operation.transaction.rounds, list(operation.transaction.work)) == (2, ["round-2"])


def test_messages_that_lost_stay_until_they_are_reworked():
    operation = Operation(LOST, LOST, "done")
    assert operation.run(rework=operation.rework) == "done"
    assert operation.events[1:] == [
        ("publish", "round-1"),
        ("rework", "round-1"),
        ("undo", "round-1"),
        ("publish", "round-1'"),
        ("rework", "round-1'"),
        ("undo", "round-1'"),
        ("publish", "round-1''"),
    ]


def test_a_round_without_messages_is_reworked_not_evaluated_again():
    operation = Operation(LOST, "done")
    assert operation.run(evaluate=lambda _: operation.events.append(("evaluate",)), rework=operation.rework) == "done"
    assert operation.calls == ["evaluate", "publish", "rework", "undo", "publish"]


def test_messages_of_others_are_reworked_in_the_first_round():
    operation = Operation("done")
    operation.run(rework=operation.rework, lost=["task"])
    assert operation.events == [("rework", "task"), ("undo", "task"), ("publish", "task'")]


@pytest.mark.parametrize("error", [CommitConflict("rows are gone"), OSError(), KeyboardInterrupt()], ids=lambda error: type(error).__name__)
def test_what_lost_is_undone_if_it_cannot_be_reworked(error):
    def rework(lost):
        raise error

    operation = Operation(LOST)
    with pytest.raises(type(error)):
        operation.run(rework=rework)
    assert operation.events[2:] == [("undo", "round-1")]


@pytest.mark.parametrize("error", [OSError(), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_another_error_undoes_the_round_and_is_raised(error):
    operation = Operation(error)
    with pytest.raises(type(error)):
        operation.run()
    assert operation.calls == ["evaluate", "publish", "undo"]


@pytest.mark.parametrize(
    "error", [CommitConflict("of another table"), OSError(), KeyboardInterrupt()], ids=lambda error: type(error).__name__
)
def test_an_error_of_an_evaluation_undoes_what_it_has_made(error):
    def evaluate(current):
        operation.evaluate(current)
        raise error

    operation = Operation()
    with pytest.raises(type(error)):
        operation.run(evaluate=evaluate)
    assert operation.events == [("evaluate", 1, None), ("undo", "round-1")]


@pytest.mark.parametrize(("given", "rounds"), [({}, EVALUATIONS), ({"evaluations": 3}, 3), ({"evaluations": 1}, 1)])
def test_the_last_conflict_is_raised_and_undone(given, rounds):
    operation = Operation(*[LOST] * EVALUATIONS)
    with pytest.raises(CommitConflict, match="was faster"):
        operation.run(**given)
    assert operation.calls == ["evaluate", "publish", "undo"] * rounds


def test_the_last_conflict_of_reworked_messages_undoes_them_once():
    operation = Operation(LOST, LOST)
    with pytest.raises(CommitConflict):
        operation.run(rework=operation.rework, evaluations=2)
    assert operation.calls == ["evaluate", "publish", "rework", "undo", "publish", "undo"]
    assert operation.events[-1] == ("undo", "round-1'")


def test_buckets_whose_compaction_lost_are_evaluated_again():
    operation = Operation([P, Q], [Q], [])
    operation.run(redo=list)
    assert [event for event in operation.events if event[0] != "publish"] == [
        ("evaluate", 1, None),
        ("evaluate", 2, frozenset({P, Q})),
        ("evaluate", 3, frozenset({Q})),
    ]


def test_the_last_result_is_returned_whatever_it_lost():
    operation = Operation(*[[P]] * EVALUATIONS)
    assert operation.run(redo=list) == [P]
    assert operation.calls == ["evaluate", "publish"] * EVALUATIONS


def test_where_results_tell_of_lost_races_a_conflict_is_an_error():
    operation = Operation(LOST)
    with pytest.raises(CommitConflict):
        operation.run(redo=list)
    assert operation.calls == ["evaluate", "publish", "undo"]


def test_buckets_that_nobody_asks_for_are_not_done_again():
    operation = Operation([P])
    assert operation.run() == [P]
    assert operation.calls == ["evaluate", "publish"]
