"""Answers of machines as typed values; what is cut off or strange is told, and never a crash."""

from __future__ import annotations

import pytest

from operations.observe import answers
from operations.observe.answers import UnreadableAnswerError
from tests.unit.configs import lab, planned
from tests.unit.operations.probed import look

LINES = "clock\t12.5\nowner\tdev 01 worker-1\nbusy\t0\n{}\nend"


def test_an_answer_that_is_cut_off_tells_its_last_line() -> None:
    with pytest.raises(
        UnreadableAnswerError, match="was interrupted: sudo: a password is required"
    ):
        answers.machine("clock\t1\nsudo: a password is required")
    with pytest.raises(UnreadableAnswerError, match="was interrupted: no answer"):
        answers.machine("")


def test_lines_of_others_are_passed_over() -> None:
    found = answers.machine(LINES.format("Authorized uses only\nunit\tetcd\tactive\tenabled\t5\t1"))
    assert found.units["etcd"].since_s == 5
    assert found.units["etcd"].restarts == 1


@pytest.mark.parametrize(
    "bad",
    [
        "unit\tetcd",
        "unit\tetcd\tactive\tenabled\tyesterday\t0",
        "artefact\trunc",
        "disk\tfull\t0",
        'etcd-status\t{"Status": 1}',
        'etcd-status\t[{"Status": {"header": []}}]',
        'etcd-list\t{"members": [{"ID": "x"}]}',
    ],
)
def test_a_strange_line_is_told(bad: str) -> None:
    with pytest.raises(UnreadableAnswerError, match="cannot be read"):
        answers.machine(LINES.format(bad))


def test_a_refusal_of_the_api_is_the_reason() -> None:
    with pytest.raises(UnreadableAnswerError, match="connection refused"):
        answers.cluster("refused\tThe connection was refused: connection refused\nend")
    with pytest.raises(UnreadableAnswerError, match="cannot be read"):
        answers.cluster("node\tworker-1\nend")


def test_a_node_that_has_said_nothing_is_a_node() -> None:
    found = answers.cluster("node\tworker-1\tFalse\ttrue\tv1.36.3\tcontainerd://2\t\t\t\nend")
    node = found.nodes["worker-1"]
    assert (node.is_ready, node.is_cordoned, node.applied, node.failed) == (False, True, "", "")
    assert not found.has_settings


def test_a_made_up_cluster_reads_as_it_was_written() -> None:
    found = look(planned(lab())).findings.machines["master-2"].machine
    assert found is not None
    assert found.etcd is not None
    assert found.etcd.leader == 1000
    assert found.members is not None
    assert [member.name for member in found.members] == ["master-1", "master-2", "master-3"]
    assert found.certificates["/etc/kubernetes/admin.conf"] is not None
    assert found.disks["/var/lib"].free_kib == 8000
