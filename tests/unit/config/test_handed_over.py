"""How big a config is on its way to the program, and what is said of one that does not fit."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from stacks.__main__ import main
from stacks.config import handed_over, stack_file
from stacks.config.handed_over import LIMIT
from tests.plan.big import big

ROOT = Path(__file__).resolve().parents[3]


def file(folder: Path, nodes: int) -> Path:
    made = folder / "Pulumi.prod.yaml"
    made.write_text(
        json.dumps({"config": {f"kube-ha:{key}": value for key, value in big(nodes).items()}})
    )
    return made


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of another system")
def test_the_limit_is_that_of_linux() -> None:
    assert LIMIT % 131072 == 0


@pytest.mark.parametrize(
    "value", ["x" * 1000, {"a": '"\\<&>' * 50}, {"a": ["ä" * 99, 5, True]}, "ä<"]
)
def test_a_size_is_that_of_both_language_hosts_and_little_more(value: object) -> None:
    """Go writes < > & as six letters; Python so all that is not ASCII."""
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    )
    plain = json.dumps({"kube-ha:x": text}, ensure_ascii=False)
    found = handed_over.size({"kube-ha:x": value}) - len("PULUMI_CONFIG=") - 1
    assert len(plain.encode()) < found
    assert len(json.dumps({"kube-ha:x": text})) < found
    if not set("<>&ä") & set(plain):
        assert found - len(plain) < 1100


def test_what_is_encrypted_counts_by_its_cipher() -> None:
    one, other = ({"kube-ha:x": {"secure": "v1:" + "x" * length}} for length in (10, 500))
    assert handed_over.size(other) - handed_over.size(one) == 490


def test_a_config_that_does_not_fit_is_refused_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(file(tmp_path, LIMIT // 180))]) == 1
    said = capsys.readouterr().err
    assert f"this computer takes {LIMIT}: put hosts into files" in said
    assert "1 problem, nothing was touched" in said


def test_one_that_hardly_fits_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    per_host = (
        stack_file.look(file(tmp_path, 20)).size - stack_file.look(file(tmp_path, 10)).size
    ) / 10
    for share, is_warned in ((0.5, False), (0.9, True)):
        assert main([str(file(tmp_path, int(share * LIMIT / per_host)))]) == 0
        said = capsys.readouterr()
        assert ("hostsFile" in said.out + said.err) is is_warned


def test_examples_are_far_from_the_limit() -> None:
    sizes = {one.name: stack_file.look(one).size for one in ROOT.glob("examples/*.yaml")}
    assert sizes
    assert all(size < LIMIT / 4 for size in sizes.values()), sizes
