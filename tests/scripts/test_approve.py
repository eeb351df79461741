"""Which certificate requests are approved: real requests, real TLS, an API that is played."""

from __future__ import annotations

import base64
import random
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Address

import pytest

from stacks.render import approver_addresses
from tests.scripts.csr_api import CLIENT, CsrApi
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
# The same for the identity of system:node:worker-4.
TO_JOIN = """-----BEGIN CERTIFICATE REQUEST-----
MIHwMIGYAgEAMDYxFTATBgNVBAoTDHN5c3RlbTpub2RlczEdMBsGA1UEAxMUc3lz
dGVtOm5vZGU6d29ya2VyLTQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASHIWBD
Fjzvc1CSfhZZpfDiuX4FUeQGY1ttAyx3UMgI5sSQm60hL/pAqFQ1Wrh4ksa8nWR0
RJkLfuZG0iFso7zboAAwCgYIKoZIzj0EAwIDRwAwRAIgUtWSX5G9uquGlNwvMyXO
pEBkuhEPxQ3OxKW4kXE1MfwCIB/0fN2b++OmFvRWmW73rE4NWdp5RKBfrYOL2Gr6
gyti
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
    group: str = "nodes",
    usages: str = SERVING,
    domain: str = "",
) -> str:
    """Why not; empty: it is approved."""
    text = base64.b64encode(pem.encode()).decode()
    code = (
        f"domain={domain}\n"
        "address_of=([worker-1]=0a5c0065 [worker-10]=0a5c006e)\n"
        f"judge $SERVING_SIGNER '{user}' {group} '{usages}' '{text}'"
    )
    return shell.run(code, phase="judge").strip()


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
        ({"user": "admin"}, "asked for by somebody who is not a node"),
        ({"user": "system:node:"}, "asked for by somebody who is not a node"),
        ({"group": "-"}, "asked for by somebody who is not a node"),
        ({"user": "system:node:worker-10"}, "asks for other names than worker-10 and 10.92.0.110"),
        ({"user": "system:node:worker-9"}, "the stack's config has no such node in the cluster"),
        ({"usages": "client auth,digital signature,server auth"}, "for another use than serving"),
        ({"usages": "client auth,digital signature"}, "for another use than serving"),
        ({"usages": "-"}, "for another use than serving"),
        ({"user": "-", "group": "-"}, "asked for by somebody who is not a node"),
        (
            {"user": "system:bootstrap:abcdef", "group": "joiners"},
            "asked for by somebody who is no",
        ),
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
    rows = shell.run(f"expand_addresses <{shell.folder}/table", phase="judge").splitlines()
    return {name: str(IPv4Address(int(digits, 16))) for name, digits in map(str.split, rows)}


def wanted(raw: dict[str, object]) -> tuple[str, dict[str, str]]:
    nodes = [node for node in planned(raw).nodes if node.in_kubernetes]
    return approver_addresses.addresses(nodes), {node.name: node.address for node in nodes}


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


@pytest.fixture
def api(shell: Shell) -> Iterator[CsrApi]:
    played = CsrApi(shell)
    played.maps["kube-ha-addresses"] = {"addresses": "worker-1 10.92.0.101\nworker-2 10.92.0.102\n"}
    try:
        yield played
    finally:
        played.stop()


NODES = ("system:nodes", "system:authenticated")
JOINERS = ("system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token")
BOOTSTRAP = "system:bootstrap:abcdef"
IDENTITY = ("client auth", "digital signature")


def encoded(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()


def serve(api: CsrApi, name: str, pem: str = OF_A_KUBELET, user: str = USER) -> None:
    api.ask(name, encoded(pem), user=user, groups=NODES)


def test_what_is_good_is_approved_in_a_round_and_what_is_not_stays(api: CsrApi) -> None:
    serve(api, "csr-good1")
    serve(api, "csr-bad01", request(api.shell, SUBJECT, "DNS:kubernetes,IP:127.0.0.1"))
    said = api.round()
    assert api.approved == ["csr-good1"]
    assert "approved 1: csr-good1" in said
    assert "left=csr-bad01 " in said
    assert "not approved, of system:node:worker-1: asks for other names" in said
    assert [name for name, _ in api.patched] == ["csr-good1"]
    api.patched.clear()
    assert "approved" not in api.round().replace("not approved", "")
    assert api.patched == [], "what is approved is not looked at again"


def names_of(uid: str, version: str) -> list[str]:
    """What an author may call a request, so that another one is meant by it."""
    closing = '","labels":{"a":"b"},"generateName":"'
    return [
        f"victim {uid} {version}",
        f"victim {uid} {version}{closing}",
        f"victim\t{uid}\t{version}",
        f"victim\n{uid}\n{version}",
        "x\nurl = https://10.0.0.1/",
        'x"\noutput = "/etc/passwd',
        "x/../victim",
        "victim?",
        "victim#",
        "victim%20",
        "victim\\",
        "[a-c]",
        "{victim,other}",
        "$(reboot)",
        "-K/dev/null",
        "..",
        "n" * 300,
        "\u202egood",
        "csr-good\n",
    ]


def test_a_name_means_no_other_request_whatever_it_is(api: CsrApi) -> None:
    serve(api, "victim", request(api.shell, SUBJECT, "DNS:kubernetes,IP:127.0.0.1"))
    metadata = api.requests["victim"]["metadata"]
    assert isinstance(metadata, dict)
    # Each a request that would be approved under another name, and of a user of its own: only the last few of each are looked at.
    for number, name in enumerate(names_of(metadata["uid"], metadata["resourceVersion"])):
        node = f"worker-{100 + number}"
        api.maps["kube-ha-addresses"]["addresses"] += f"{node} 10.92.1.{number}\n"
        subject, names = f"/O=system:nodes/CN=system:node:{node}", f"DNS:{node},IP:10.92.1.{number}"
        serve(api, name, request(api.shell, subject, names), f"system:node:{node}")
    serve(api, "csr-good1")
    said = api.round()
    assert api.approved == ["csr-good1"], said
    assert [name for name, _ in api.patched] == ["csr-good1"], "nothing else was so much as tried"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("username", "system:node:worker-1\tsystem:node:worker-1"),
        ("username", "system:node:worker-1\n"),
        ("username", "system:masters"),
        ("username", "system:node:$(reboot)"),
        ("groups", ["system:nodes\tx"]),
        ("groups", []),
        ("usages", ["digital signature,server auth"] * 2),
        ("usages", ["digital signature", "server auth\tclient auth"]),
        ("usages", ["digital signature", "server auth", "client auth"]),
        ("request", f"{encoded(OF_A_KUBELET)}\n"),
        ("request", "$(reboot)"),
        ("request", "A" * 30_000),
        ("request", ""),
        ("signerName", "kubernetes.io/kubelet-serving\n"),
        ("signerName", "kubernetes.io/kube-apiserver-client"),
    ],
)
def test_a_field_that_does_not_fit_its_form_is_no_reason_to_approve(
    api: CsrApi, field: str, value: object
) -> None:
    serve(api, "csr-bad01")
    spec = api.requests["csr-bad01"]["spec"]
    assert isinstance(spec, dict)
    spec[field] = value
    serve(api, "csr-good1")
    api.round()
    assert api.approved == ["csr-good1"]
    assert len(api.patched) == 1


def test_what_was_approved_is_what_was_judged(api: CsrApi) -> None:
    api.swaps = encoded(request(api.shell, SUBJECT, "DNS:kubernetes,IP:127.0.0.1"))
    serve(api, "csr-good1")
    said = api.round(fails=True)
    assert "what was approved is not what was judged, of system:node:worker-1: csr-good1" in said
    assert "approved 1" not in said


def test_another_master_may_be_faster_and_an_api_that_refuses_is_told(api: CsrApi) -> None:
    serve(api, "csr-good1")
    api.refuses = 409
    api.round()
    api.refuses = 403
    api.round(fails=True)
    assert api.approved == []


def test_every_page_is_read_and_of_each_node_the_newest(api: CsrApi) -> None:
    for number in range(1, 8):
        serve(api, f"csr-{number}")
    subject, names = "/O=system:nodes/CN=system:node:worker-2", "DNS:worker-2,IP:10.92.0.102"
    serve(api, "csr-other", request(api.shell, subject, names), "system:node:worker-2")
    api.round(more="PAGE=3")
    assert sorted(api.approved) == ["csr-5", "csr-6", "csr-7", "csr-other"]


def join(api: CsrApi, name: str, pem: str, **more: object) -> None:
    given: dict[str, object] = {"user": BOOTSTRAP, "groups": JOINERS, "usages": IDENTITY, **more}
    user, groups, usages = given["user"], given["groups"], given["usages"]
    assert isinstance(user, str)
    assert isinstance(groups, tuple)
    assert isinstance(usages, tuple)
    api.ask(name, encoded(pem), signer=CLIENT, user=user, groups=groups, usages=usages)


def may_join(api: CsrApi, names: str, until: int = 4_000_000_000) -> None:
    api.maps["kube-ha-joining"] = {"token": "abcdef", "names": names, "until": str(until)}


# As kubelets call them.
JOINING = "node-csr-zR7XQ1Bn2Lq3h_T5vJYk-8wPd0mGfOe9sCa4UxHiN6_"


def test_who_joins_now_gets_its_identity(api: CsrApi) -> None:
    may_join(api, "worker-3 worker-4")
    join(api, JOINING, TO_JOIN)
    join(api, "csr-rsa01", request(api.shell, "/O=system:nodes/CN=system:node:worker-3", ""),
         usages=(*IDENTITY, "key encipherment"))  # fmt: skip
    api.round()
    assert sorted(api.approved) == ["csr-rsa01", JOINING]


@pytest.mark.parametrize("ready", [True, False])
def test_nobody_joins_under_the_name_of_a_node_that_is_alive(api: CsrApi, *, ready: bool) -> None:
    may_join(api, "worker-4")
    api.nodes["worker-4"] = ready
    join(api, JOINING, TO_JOIN)
    said = api.round()
    assert api.approved == ([] if ready else [JOINING])
    assert ("there is a Node worker-4, and it is Ready" in said) == ready


@pytest.mark.parametrize(
    ("names", "until", "more", "said"),
    [
        ("worker-3 worker-40 orker-4", 4_000_000_000, {}, "worker-4 does not join now"),
        ("worker-4", 1_000_000_000, {}, "worker-4 does not join now"),
        (None, 0, {}, "no token of the stack"),
        ("worker-4", 4_000_000_000, {"groups": ("system:bootstrappers",)}, "no token of the stack"),
        ("worker-4", 4_000_000_000, {"user": "ann"}, "no token of the stack"),
        ("worker-4", 4_000_000_000, {"user": "system:bootstrap:abcdeg"}, "no token of the stack"),
        ("worker-4", 4_000_000_000, {"usages": ("server auth",)}, "for another use than that of"),
    ],
)
def test_others_do_not(
    api: CsrApi, names: str | None, until: int, more: dict[str, object], said: str
) -> None:
    if names is not None:
        may_join(api, names, until)
    join(api, JOINING, TO_JOIN, **more)
    assert said in api.round()
    assert api.patched == []


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        ("/O=system:nodes/CN=system:node:worker-4", "DNS:kubernetes"),
        ("/O=system:nodes/O=system:masters/CN=system:node:worker-4", ""),
        ("/O=system:masters/CN=system:node:worker-4", ""),
        ("/O=system:nodes/CN=system:node:worker-4/CN=kubernetes-admin", ""),
        ("/O=system:nodes/CN=system:node:master-1", ""),
        ("/O=system:nodes/CN=kubernetes-admin", ""),
        ("/O=system:nodes/OU=x/CN=system:node:worker-4", ""),
    ],
)
def test_nor_does_a_name_that_joins_bring_another_with_it(
    api: CsrApi, subject: str, names: str
) -> None:
    may_join(api, "worker-4")
    join(api, JOINING, request(api.shell, subject, names))
    api.round()
    assert api.patched == []


def test_what_kubernetes_approves_itself_is_left_to_it(api: CsrApi) -> None:
    may_join(api, "worker-4")
    join(api, "csr-renew", TO_JOIN, user="system:node:worker-4", groups=NODES)
    assert "left=\n" in api.round()
    assert api.patched == []
