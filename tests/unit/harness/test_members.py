"""What is made of looks at etcd's members."""

from __future__ import annotations

from tests.e2e.harness.members import looks, problems

A, B, C, D = (f"{name * 2},master-{name},voter,answers" for name in "1234")


def found(*rows: str) -> list[str]:
    """Problems of these rows of members, a tenth of a second apart."""
    lines = [
        f"{1000 + 100 * number} {1050 + 100 * number} {row}" for number, row in enumerate(rows)
    ]
    return problems(looks(lines))


def learner(member: str) -> str:
    return member.replace("voter", "learner")


def silent(member: str) -> str:
    return member.replace("answers", "silent")


def test_one_member_after_another_joins_and_leaves() -> None:
    new = learner(silent(B)).replace("master-2", "-")
    assert found(A, f"{A} {new}", f"{A} {learner(B)}", f"{A} {B}", f"{A} {B} {learner(C)}") == []
    assert found(f"{A} {B} {C}", f"{A} {B}", A) == []
    assert found(f"{A} {learner(silent(B))}", f"{A} {learner(silent(C))}") == []


def test_a_member_that_is_dead_while_the_others_have_a_quorum() -> None:
    assert found(f"{A} {B} {silent(C)}", f"{A} {B} {silent(C)}", f"{A} {B}") == []


def test_two_learners_at_once() -> None:
    (problem,) = found(f"{A} {learner(B)}", f"{A} {learner(B)} {learner(C)}")
    assert problem.startswith("two learners at 1100: master-1, master-2 (learner)")


def test_two_changes_between_two_looks() -> None:
    (problem,) = found(f"{A} {B} {C}", A)
    assert problem.startswith("several votes changed between at 1000")
    assert len(found(f"{A} {B} {C}", f"{A} {B} {D}")) == 1


def test_two_changes_between_looks_that_are_far_apart_tell_nothing() -> None:
    assert problems(looks([f"1000 1050 {A} {B} {C}", f"1200 1250 {A}"])) == []
    assert problems(looks([f"1000 1050 {A} {B} {C}", f"1060 1400 {A}"])) == []


def test_fewer_voters_than_a_quorum() -> None:
    row = f"{A} {silent(B)} {silent(C)}"
    assert found(f"{A} {B} {C}", row, f"{A} {B} {C}") == []
    (problem,) = found(f"{A} {B} {C}", row, row)
    assert problem.startswith("fewer voters up than a quorum: at 1100")


def test_a_vote_of_two_is_given_to_one_that_is_down() -> None:
    row = f"{A} {silent(B)}"
    assert len(found(row, row)) == 1


def test_a_line_that_was_cut_off_is_left_out() -> None:
    assert looks(["1000 1050 aa,master-1,vot", "12"]) == []
