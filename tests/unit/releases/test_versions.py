"""The sets of the lock hold what fits together, by the word of those who made it."""

from __future__ import annotations

import copy
import re

import pytest
import yaml

from stacks.releases import version_fit
from stacks.releases.version_fit import Set
from stacks.releases.versions import LOCK, known, minor, number

# As the lock names them. At least what the documents say; of etcd within the same minor, too, for
# its members go through every minor.
_AT_LEAST = ("etcd", "containerd", "cniPlugins")
_EXACTLY = ("coredns", "pause", "agnhost")

PARSED = yaml.safe_load(LOCK.read_text())
SETS = version_fit.sets(PARSED)
each_set = pytest.mark.parametrize("made", SETS, ids=lambda made: made.kubernetes)


def misfits(made: Set) -> list[str]:
    """What in a set its makers' documents do not bear out."""
    out = []
    for name in (*_AT_LEAST, *_EXACTLY):
        is_, said = made.versions.get(name, "0"), made.fits.get(name)
        if said is None or name not in made.sources:
            out.append(f"{name}: no document says which one fits Kubernetes {made.kubernetes}")
        elif name in _EXACTLY and is_ != said:
            out.append(f"{name} {is_}: Kubernetes {made.kubernetes} names {said}")
        elif number(is_) < number(said):
            out.append(f"{name} {is_}: Kubernetes {made.kubernetes} needs {said} at least")
        elif name == "etcd" and minor(is_) != minor(said):
            out.append(f"etcd {is_}: Kubernetes {made.kubernetes} was made with {said}")
    return out


@each_set
def test_a_set_is_what_its_documents_say(made: Set) -> None:
    assert misfits(made) == []


@each_set
def test_documents_are_those_of_the_very_version(made: Set) -> None:
    """A branch says something else tomorrow."""
    tags = (
        f"/kubernetes/blob/v{made.kubernetes}/",
        f"/containerd/blob/v{made.versions['containerd']}/",
    )
    for url in made.sources.values():
        assert url.startswith("https://github.com/")
        assert any(tag in url for tag in tags), url


@each_set
def test_etcd_is_one_that_this_kubernetes_can_use_fully(made: Set) -> None:
    least = (3, 6) if number(made.kubernetes) >= (1, 36) else (3, 5, 24)
    assert number(made.versions["etcd"]) >= least


def test_every_version_that_can_be_chosen_is_in_the_page() -> None:
    page = version_fit.page()
    assert tuple(re.findall("^## Kubernetes (.+)$", page, re.MULTILINE)) == known()
    for made in SETS:
        for name, version in made.versions.items():
            assert f"| {name} | {version} |" in page


WRONG = [
    ({"coredns": "1.13.0"}, ["coredns 1.13.0: Kubernetes 1.36.3 names 1.14.2"]),
    ({"pause": "3.10.3"}, ["pause 3.10.3: Kubernetes 1.36.3 names 3.10.2"]),
    ({"etcd": "3.5.24"}, ["etcd 3.5.24: Kubernetes 1.36.3 needs 3.6.8 at least"]),
    ({"etcd": "3.7.0"}, ["etcd 3.7.0: Kubernetes 1.36.3 was made with 3.6.8"]),
    ({"containerd": "2.2.9"}, ["containerd 2.2.9: Kubernetes 1.36.3 needs 2.3.0 at least"]),
    ({"sources": []}, [f"{name}: no document says which one fits Kubernetes 1.36.3" for name in ("etcd", "containerd", "cniPlugins", "coredns", "pause", "agnhost")]),
]  # fmt: skip


@pytest.mark.parametrize(("edit", "found"), WRONG)
def test_a_set_that_does_not_fit_is_found(edit: dict[str, object], found: list[str]) -> None:
    lock = copy.deepcopy(PARSED)
    lock["sets"]["1.36.3"] |= edit
    newest = version_fit.sets(lock)[0]
    assert misfits(newest) == found
