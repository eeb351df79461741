"""What travels to a machine fits in one command, or the config is refused with the fix."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stacks.checks import sizes
from stacks.cluster import names
from stacks.config.problems import SpecError
from stacks.load import load
from stacks.phases import scripts
from tests.plan.settled import Stacks
from tests.unit.certificate import certificate
from tests.unit.configs import adopted, edited, host, lab, planned, problems
from tests.unit.flags import TEXT_FLAGS

LIMIT = scripts.STDIN_LIMIT
Config = dict[str, object]
AUTHORITY = certificate()  # one for all: they differ by some bytes


def with_policy(rules: int) -> Config:
    """An audit policy of that many rules."""
    listed = [
        {"level": "Metadata", "users": [f"it's:robot-{number:04}"], "verbs": ["get"]}
        for number in range(rules)
    ]
    policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": listed}
    return lab({"controlPlane.audit.policy": policy})


def with_namespaces(count: int) -> Config:
    """That many namespaces that no standard is enforced in; a provider with its CA beside it."""
    exempt = [f"{'n' * 50}-{number}" for number in range(count)]
    oidc = {"issuerUrl": "https://id.example.com", "clientId": "kube", "ca": AUTHORITY}
    return lab(
        {
            "controlPlane.podSecurity": {"enforce": "baseline", "exemptNamespaces": exempt},
            "controlPlane.oidc": oidc,
        }
    )


def labelled(nodes: int) -> Config:
    """Workers of which each has a label of its own."""
    return lab(
        {
            "cluster.podCidr": "10.128.0.0/12",
            "machines.lab.subnet": "10.92.0.0/16",
            "pools.worker.count": nodes,
            "pools.worker.taints": [{"key": "example.com/gpu", "effect": "NoSchedule"}],
            "nodes": {
                f"worker-{number}": {"labels": {"example.com/rack": f"{'r' * 50}{number}"}}
                for number in range(1, nodes + 1)
            },
        }
    )


def named(nodes: int) -> Config:
    """Workers whose names do not count on, as long as names may be."""
    hosts = [
        host("worker", 1000 + number)
        | {"name": f"{'w' * 48}{number:03}x", "address": f"198.51.100.{number}"}
        for number in range(1, nodes + 1)
    ]
    return adopted({"pools.worker.hosts": hosts})


def most(config: Callable[[int], Config], top: int) -> int:
    """The greatest number up to `top` with which the config is accepted."""
    low, high = 0, top
    while low < high:
        middle = (low + high + 1) // 2
        try:
            load(config(middle))
        except SpecError:
            high = middle - 1
        else:
            low = middle
    return low


@pytest.mark.parametrize(
    ("config", "top"),
    [(with_policy, 200), (with_namespaces, 200), (labelled, 300), (named, 250)],
    ids=["policy", "namespaces", "labels", "names"],
)
def test_the_biggest_accepted_config_fits_and_little_is_wasted(
    config: Callable[[int], Config], top: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    count = most(config, top)
    assert 0 < count < top
    raw = config(count)
    run = Stacks(tmp_path_factory.mktemp("checkout")).settled(raw)[1]
    real = {each.name: len(each.text("stdin").encode()) for each in run.commands}
    plan = planned(raw)
    masters = max(real[f"{plan.spec.cluster.name}-{node.name}-master"] for node in plan.masters)
    nodes = real[f"{plan.spec.cluster.name}-nodes"]
    assert max(real.values()) <= LIMIT
    machines = max(size for name, size in real.items() if name.endswith("-node"))
    assert 0 <= sum(sizes.master_sizes(plan).values()) - masters < sizes.OTHER_VALUES
    assert 0 <= sum(sizes.machine_sizes(plan).values()) - machines < 700
    assert 0 <= sizes.nodes_size(plan) - nodes < sizes.OTHER_VALUES


def test_an_audit_policy_that_does_not_fit_is_refused_with_the_room_there_is() -> None:
    [(path, text)] = problems(with_policy(200))
    assert path == "controlPlane.audit.policy"
    size, room = (int(word) for word in text.split() if word.isdigit())
    assert text == f"takes {size} bytes on a master, where {room} are left; use fewer, wider rules"
    assert size > room > LIMIT / 3


def test_flags_that_do_not_fit_are_refused() -> None:
    flags = dict.fromkeys(TEXT_FLAGS[:9], "x" * 1000)
    [(path, text)] = problems(lab({"controlPlane.apiServerArgs": flags}))
    assert path == "controlPlane"
    assert text.endswith(
        f"bytes on a master, {LIMIT} fit; shorten apiServerArgs, controllerManagerArgs, "
        "schedulerArgs or certSans"
    )


def test_without_audit_its_policy_takes_no_room() -> None:
    without = sizes.master_sizes(planned(lab({"controlPlane.audit.enabled": False})))
    assert without["AUDIT_POLICY"] == len("AUDIT_POLICY=''\n")
    assert sizes.master_sizes(planned(lab()))["AUDIT_POLICY"] > 500


def test_trust_in_a_provider_that_does_not_fit_is_refused() -> None:
    oidc = {"issuerUrl": "https://id.example.com", "clientId": "kube", "ca": certificate() * 9}
    [(path, text)] = problems(lab({"controlPlane.oidc": oidc}))
    assert path == "controlPlane.oidcIssuers"
    way = "give the root of each provider's certificate alone, or fewer providers"
    assert text.endswith(f"are left; {way}")
    by_flags = {"controlPlane.oidc": oidc, "controlPlane.anonymous": "all"}
    [(path, text)] = problems(lab(by_flags))
    assert path == "controlPlane.oidc.ca"
    assert text.endswith("are left; give the root of the provider's certificate alone")


def test_namespaces_that_do_not_fit_are_refused() -> None:
    namespaces = [f"{'n' * 50}{number}" for number in range(100)]
    wanted = {"enforce": "baseline", "exemptNamespaces": namespaces}
    [(path, text)] = problems(lab({"controlPlane.podSecurity": wanted}))
    assert path == "controlPlane.podSecurity.exemptNamespaces"
    assert text.endswith(
        "are left; label namespaces (pod-security.kubernetes.io/enforce) in place of exempting them"
    )


def test_mirrors_of_registries_have_to_fit() -> None:
    mirrors = {f"registry-{n}.example.com": [f"https://mirror-{n}.example.com"] for n in range(40)}
    [(path, text)] = problems(lab({"runtime.registryMirrors": mirrors}))
    assert path == "runtime.registryMirrors"
    assert text.endswith("are left; name fewer registries and mirrors")


def test_what_is_reached_without_proxy_has_to_fit() -> None:
    proxy = {"https": "http://proxy:3128", "noProxy": [f"host-{n}.example.com" for n in range(99)]}
    [(path, text)] = problems(adopted({"proxy": proxy}))
    assert path == "proxy.noProxy"
    assert text.endswith("are left; name domains and networks in place of hosts")


def test_a_small_file_is_not_blamed_for_what_flags_take() -> None:
    flags = dict.fromkeys(TEXT_FLAGS[:5], "x" * 800)
    oidc = {"issuerUrl": "https://id.example.com", "clientId": "kube"}
    raw = lab({"controlPlane.oidc": oidc, "controlPlane.apiServerArgs": flags})
    assert [path for path, _ in problems(raw)] == ["controlPlane"]


def test_too_many_nodes_with_labels_of_their_own_are_refused() -> None:
    [(path, text)] = problems(labelled(300))
    assert path == "nodes"
    assert text.endswith(
        f"bytes with these exceptions, {LIMIT} fit; "
        "put nodes with the same labels and taints in a pool of their own"
    )


def test_too_many_names_that_do_not_count_are_refused() -> None:
    [(path, text)] = problems(named(250))
    assert path == "pools"
    assert text.endswith(
        f"bytes, {LIMIT} fit; use names that count (worker-1, worker-2, ...), "
        "which are listed as one, and fewer or shorter labels and taints"
    )


def test_a_thousand_names_that_count_take_little() -> None:
    raw = lab(
        {
            "cluster.podCidr": "10.128.0.0/12",
            "machines.lab.subnet": "10.92.0.0/16",
            "pools.worker.count": 1000,
        }
    )
    assert sizes.nodes_size(planned(raw)) < 1000
    raw = edited(raw, {"pools.worker.zones": ["a", "b", "c"]})
    assert sizes.nodes_size(planned(raw)) < 1200
    raw = edited(raw, {"nodes": {"worker-500": {"labels": {"x": "y"}}}})
    assert sizes.nodes_size(planned(raw), with_exceptions=False) < 1200


@settings(deadline=None)  # the computer may be busy
@given(
    st.lists(st.from_regex(r"[ab]-?(0|[1-9][0-9]{0,2}|0[0-9]|[ab])?", fullmatch=True), unique=True)
)
def test_a_short_form_stands_for_every_name_once(listed: list[str]) -> None:
    found = []
    for part in names.ranges(listed).split(","):
        run = re.fullmatch(r"(.*)\[(\d+)-(\d+)(?:/(\d+))?\]", part)
        if run:
            numbers = range(int(run[2]), int(run[3]) + 1, int(run[4] or 1))
            found += [f"{run[1]}{number}" for number in numbers]
        elif part:
            found.append(part)
    assert sorted(found) == sorted(listed)


@pytest.mark.parametrize(
    ("numbers", "short"),
    [
        ([1, 2, 3], "[1-3]"),
        ([1, 4], "[1-1],[4-4]"),
        ([1, 4, 7], "[1-7/3]"),
        ([1, 3, 4, 5], "[1-1],[3-5]"),
        ([2, 4, 6, 7, 8], "[2-6/2],[7-8]"),
    ],
)
def test_machines_that_take_turns_are_one_run(numbers: list[int], short: str) -> None:
    assert names.ranges(str(number) for number in numbers) == short
