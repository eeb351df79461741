"""Which requests for serving certificates are approved: real requests, real TLS, an API that is played."""

from __future__ import annotations

import base64
import random
import subprocess
from ipaddress import IPv4Address

import pytest

from stacks import serving
from tests.scripts.shell import Shell
from tests.unit.configs import adopted, host, lab, planned

# What Go's x509.CreateCertificateRequest, and so a kubelet, makes for system:node:worker-1.
OF_A_KUBELET = """-----BEGIN CERTIFICATE REQUEST-----
MIIBHTCBxAIBADA2MRUwEwYDVQQKEwxzeXN0ZW06bm9kZXMxHTAbBgNVBAMTFHN5
c3RlbTpub2RlOndvcmtlci0xMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEDunj
veIYMSuyQFZZdzhLjzYZEOYGQ3jlzS/lATVLz27i6B8UCNjdanihl2IzX0Z0M760
dqpkMwv7TrFVG0a8B6AsMCoGCSqGSIb3DQEJDjEdMBswGQYDVR0RBBIwEIIId29y
a2VyLTGHBApcAGUwCgYIKoZIzj0EAwIDSAAwRQIgYzzG4jhlhnLyw3fuIuGXumyO
DmM5do0T8GUO8lheLJsCIQDQMTuK6XGqWpi9VlHAbD1bukaSEoX9zFEZaD8Gqc5D
rA==
-----END CERTIFICATE REQUEST-----
"""
USER = "system:node:worker-1"
SERVING = "digital signature,server auth"
SUBJECT = "/O=system:nodes/CN=system:node:worker-1"
NAMES = "DNS:worker-1,IP:10.92.0.101"
CONFIG = "[req]\\ndistinguished_name=dn\\nstring_mask=default\\n[dn]\\n"


def request(shell: Shell, subject: str = SUBJECT, names: str = NAMES, *more: str) -> str:
    """A request made by openssl, PEM."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null"]
    config = shell.folder / "openssl.cnf"
    config.write_text(CONFIG.replace("\\n", "\n"))
    added = [f"subjectAltName={names}"] if names else []
    words = ["openssl", "req", "-new", *key, "-config", str(config), "-subj", subject]
    for extension in (*added, *more):
        words += ["-addext", extension]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def judge(
    shell: Shell,
    pem: str,
    *,
    user: str = USER,
    group: str = "true",
    usages: str = SERVING,
    domain: str = "",
) -> str:
    """Why not; empty: it is approved."""
    text = base64.b64encode(pem.encode()).decode()
    code = (
        f"domain={domain}\n"
        "address_of=([worker-1]=0a5c0065 [worker-10]=0a5c006e)\n"
        f"judge '{user}' {group} '{usages}' '{text}'"
    )
    return shell.run(code, phase="approve").strip()


def test_what_a_kubelet_asks_for_is_approved(shell: Shell) -> None:
    assert judge(shell, OF_A_KUBELET) == ""
    assert judge(shell, OF_A_KUBELET, usages="digital signature,key encipherment,server auth") == ""


def test_what_the_phases_ask_for_in_its_name_is_approved(shell: Shell) -> None:
    code = (
        'NODE=worker-1 SERVING_ADDRESS=10.92.0.101; new_key k; new_request k "server auth" >request'
    )
    shell.run(code, phase="identity")
    assert judge(shell, (shell.folder / "request").read_text()) == ""


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        (SUBJECT, "DNS:worker-1,IP:10.92.0.102"),
        (SUBJECT, "DNS:worker-2,IP:10.92.0.101"),
        (SUBJECT, "DNS:worker-1,DNS:kubernetes.default,IP:10.92.0.101"),
        (SUBJECT, "DNS:worker-1,IP:10.92.0.101,IP:10.96.0.1"),
        (SUBJECT, "IP:10.92.0.101"),
        (SUBJECT, "DNS:worker-1"),
        (SUBJECT, f"{NAMES},URI:spiffe://a/b"),
        (SUBJECT, f"{NAMES},email:a@b.c"),
        (SUBJECT, ""),
        ("/O=system:nodes/CN=system:node:worker-2", NAMES),
        ("/O=system:nodes/O=system:masters/CN=system:node:worker-1", NAMES),
        ("/O=system:nodes/CN=system:node:worker-1/CN=admin", NAMES),
        ("/O=system:masters/CN=system:node:worker-1", NAMES),
        ("/CN=system:node:worker-1", NAMES),
    ],
)
def test_other_names_are_not(shell: Shell, subject: str, names: str) -> None:
    said = judge(shell, request(shell, subject, names))
    assert said.startswith("asks for other names than worker-1 and 10.92.0.101: "), said


OF_AWS = "DNS:ip-10-92-0-101.eu-central-1.compute.internal,IP:10.92.0.101"


def test_the_name_that_awss_controller_manager_gives_a_node_is_approved_where_one_runs(
    shell: Shell,
) -> None:
    domain = "eu-central-1.compute.internal"
    pem = request(shell, SUBJECT, OF_AWS)
    assert judge(shell, pem, domain=domain) == ""
    assert judge(shell, OF_A_KUBELET, domain=domain) == ""
    assert "asks for other names" in judge(shell, pem)
    assert "asks for other names" in judge(shell, pem, domain="us-west-2.compute.internal")
    for names in (
        OF_AWS.replace("-101", "-102"),
        OF_AWS.replace("0.101", "0.102"),
        f"{OF_AWS},DNS:worker-1",
    ):
        assert "asks for other names" in judge(shell, request(shell, SUBJECT, names), domain=domain)


def test_names_beside_the_wanted_ones_are_not_hidden_by_another_extension(shell: Shell) -> None:
    said = judge(shell, request(shell, SUBJECT, NAMES, "basicConstraints=CA:TRUE"))
    assert "asks for other names" in said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"user": "admin"}, "asked for by somebody who is no node"),
        ({"user": "system:node:"}, "asked for by somebody who is no node"),
        ({"group": "false"}, "asked for by somebody who is no node"),
        ({"user": "system:node:worker-10"}, "asks for other names than worker-10 and 10.92.0.110"),
        ({"user": "system:node:worker-9"}, "the stack's config has no such node in the cluster"),
        ({"usages": "client auth,digital signature,server auth"}, "for another use than serving"),
        ({"usages": "client auth,digital signature"}, "for another use than serving"),
        ({"usages": ""}, "for another use than serving"),
    ],
)
def test_who_asks_and_for_what_is_judged(shell: Shell, given: dict[str, str], said: str) -> None:
    assert judge(shell, OF_A_KUBELET, **given).startswith(said)


def test_text_around_a_request_is_not_read_by_two_in_two_ways(shell: Shell) -> None:
    foreign = request(shell, SUBJECT, "DNS:admin,IP:10.96.0.1")
    for pem in (f"{OF_A_KUBELET}{foreign}", f"{foreign}{OF_A_KUBELET}", f"x\n{OF_A_KUBELET}", "x"):
        assert judge(shell, pem) == "not readable as a request"
    cut = OF_A_KUBELET.replace("MIIBHTCBxAIBADA2", "MIIBHTCBxAIBADA3")
    assert "asks for other names" in judge(shell, cut)


def expanded(shell: Shell, table: str) -> dict[str, str]:
    (shell.folder / "table").write_text(f"{table}\n")
    rows = shell.run(f"expand_addresses <{shell.folder}/table", phase="approve").splitlines()
    return {name: str(IPv4Address(int(digits, 16))) for name, digits in map(str.split, rows)}


def wanted(raw: dict[str, object]) -> tuple[str, dict[str, str]]:
    nodes = [node for node in planned(raw).nodes if node.in_kubernetes]
    return serving.addresses(nodes), {node.name: node.address for node in nodes}


def test_every_node_is_found_under_its_address(shell: Shell) -> None:
    for raw in (lab({"pools.worker.count": 12, "pools.worker.zones": ["a", "b"]}), adopted()):
        table, addresses = wanted(raw)
        assert expanded(shell, table) == addresses
    dice = random.Random(7)  # noqa: S311 (addresses of a test)
    taken = dice.sample(range(60_000), 300)
    hosts = [
        host("worker", 2000 + n)
        | {
            "name": f"w-{n:02}" if n % 40 else f"x{n}y",
            "address": str(IPv4Address(int(IPv4Address("172.20.0.0")) + 0x10000 * (n % 7 > 5) + a)),
        }
        for n, a in enumerate(taken, 1)
    ]
    table, addresses = wanted(
        adopted({"cluster.podCidr": "10.128.0.0/12", "pools.worker.hosts": hosts})
    )
    assert expanded(shell, table) == addresses
    assert len(table) < 4000


def test_a_thousand_machines_in_a_row_take_a_line() -> None:
    raw = lab(
        {
            "cluster.podCidr": "10.128.0.0/12",
            "machines.lab.subnet": "10.92.0.0/16",
            "pools.worker.count": 1000,
            "nodes": {"worker-500": {"state": "lost"}},
        }
    )
    assert wanted(raw)[0].splitlines() == [
        "master-[1-3] 10.92.0.10+",
        "worker-[1-499],worker-[501-1000] 10.92.0.100+",
    ]
