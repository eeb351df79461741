"""Story: TLS for what runs in the cluster, on two load balancers before a real ingress controller; visitors of two hosts feel no change, and no death for long."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.e2e.harness import config, controller, versions
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.controller import PAGES, Visitor
from tests.e2e.harness.doors import away_ms
from tests.e2e.harness.holders import Holders
from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

ALONE = "pages are back within 8 s"
ADDRESS = "10.93.67.5"
EDGES = ("edge-1", "edge-2")
SHOP, BLOG = PAGES["shop"], PAGES["blog"]
# Three looks of HAProxy at a port, 2 s apart, and a try at another node.
_WITHOUT_A_WORKER_MS = 8000
_WITHOUT_A_HOLDER_MS = 10_000


class Shop:
    """The shop's own certificate: files beside the stack, signed by themselves."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = folder / "shop.crt", folder / "shop.key"
        folder.mkdir(parents=True, exist_ok=True)

    def renew(self) -> None:
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, SHOP)])
        builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=1))
        builder = builder.not_valid_after(now + timedelta(days=30))
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(SHOP)]), critical=False
        )
        pem = serialization.Encoding.PEM
        self.certificate.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem))
        plain = serialization.NoEncryption()
        self.key.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    made = Shop(tmp_path_factory.mktemp("shop"))
    made.renew()
    return made


@pytest.fixture(scope="module")
def stack(shop: Shop) -> Iterator[Stack]:
    wanted = config.lab("test-ingress", "10.93.67.0/24", masters=1, workers=2)
    pools = wanted["pools"]
    assert isinstance(pools, dict)
    pools["edge"] = {"roles": ["loadbalancer"], "count": 2}
    files = {"certificate": str(shop.certificate), "key": str(shop.key)}
    ingress = {"hosts": ["*.blog.example.com"], "certificates": [files]}
    wanted["frontDoors"] = {"vip": {"address": ADDRESS}, "ingress": ingress}
    wanted["addons"] = {"traefik": {"default": True}}
    wanted = versions.with_load_balancers(wanted, "10.93.67.0/24")
    with Stack("ingress", wanted) as stack:
        stack.up()
        controller.deploy(stack)
        yield stack


@pytest.fixture
def edges(stack: Stack) -> list[Node]:
    return [stack.node(name) for name in EDGES]


def test_hosts_have_their_certificates_and_their_pages(stack: Stack, shop: Shop) -> None:
    for word, host in PAGES.items():
        page = _curl(stack, shop, f"https://{host}/hostname")
        assert page.startswith(f"{word}-"), page
    assert "404" in _curl(
        stack, shop, "https://nobody.blog.example.com/", "-o /dev/null -w '%{http_code}'"
    )
    told = _curl(stack, shop, f"https://{SHOP}/header?key=X-Forwarded-Proto")
    assert told.strip().endswith("https"), told
    mirror = _curl(stack, shop, f"https://{SHOP}/header?key=X-Forwarded-For")
    assert "10.93.67.2" in mirror, "the page does not learn who asks"


def test_http_leads_to_https_by_http_2_and_nothing_older_than_tls_1_2(
    stack: Stack, shop: Shop
) -> None:
    led = _curl(
        stack, shop, f"http://{SHOP}/a?b=c", "-o /dev/null -w '%{http_code} %{redirect_url}'"
    )
    assert led.strip() == f"308 https://{SHOP}/a?b=c"
    how = "--http2 -o /dev/null -w '%{http_version}'"
    assert _curl(stack, shop, f"https://{SHOP}/hostname", how).strip() == "2"
    for limit, good in (("1.1", False), ("1.2", True)):
        how = f"--tls-max {limit} --ciphers DEFAULT@SECLEVEL=0 >/dev/null && echo yes || echo no"
        assert (_curl(stack, shop, f"https://{SHOP}/hostname", how).strip() == "yes") == good, limit


def test_reloads_and_new_certificates_are_felt_by_nobody(
    stack: Stack, shop: Shop, edges: list[Node]
) -> None:
    """Ten reloads where the visitors arrive, then an edit that replaces the certificate of the cluster's CA."""
    with Holders(edges, ADDRESS) as holders, _visit(stack, shop, "reloads") as visitor:
        holder = stack.node(holders.wait_for_one())
        for _ in range(10):
            holder.run("systemctl reload kube-ha-ingress")
            time.sleep(0.5)
        before = _serial(stack, BLOG)
        stack.edit("frontDoors.ingress.hosts", ["*.blog.example.com", "blog.example.com"])
        stack.up()
        assert _serial(stack, BLOG) != before
    assert visitor.seen().failed == 0, visitor.seen()


def test_a_certificate_of_ones_own_is_renewed_by_an_up_under_load(stack: Stack, shop: Shop) -> None:
    before, old = _serial(stack, SHOP), shop.certificate.read_text()
    shop.renew()
    # Visitors trust both, as if one authority had signed them.
    with _visit(stack, shop, "renewed", also=old) as visitor:
        stack.up()
        assert _serial(stack, SHOP) != before
    assert visitor.seen().failed == 0, visitor.seen()
    assert_up_changes_nothing(stack)


def test_rubbish_for_a_certificate_is_refused_and_changes_nothing(stack: Stack, shop: Shop) -> None:
    before, key = _serial(stack, SHOP), shop.key.read_text()
    shop.key.write_text("rubbish")
    update = stack.up(fails=True)
    assert "frontDoors.ingress.certificates[0].key" in update.tail()
    shop.key.write_text(key)
    assert _serial(stack, SHOP) == before


def test_a_worker_dies_under_load_and_is_asked_no_more(
    stack: Stack, shop: Shop, edges: list[Node]
) -> None:
    with _visit(stack, shop, "a worker dies") as visitor:
        stack.node("worker-2").kill()
        _wait_not_ready(stack, "worker-2")  # before that its pods are asked to end
        stack.set_nodes({"worker-2": {"state": "lost"}})
        stack.up()
    seen = visitor.seen()
    assert seen.failed_twice == 0, seen
    assert seen.reads_gap_ms < _WITHOUT_A_WORKER_MS, seen
    for edge in edges:
        listed = edge.run("grep '^  server ' /etc/haproxy/ingress.cfg")
        assert "worker-1" in listed
        assert "worker-2" not in listed


def test_the_holder_dies_under_load(stack: Stack, shop: Shop, edges: list[Node]) -> None:
    with Holders(edges, ADDRESS) as holders:
        holder = stack.node(holders.wait_for_one())
        with _visit(stack, shop, "the holder dies") as visitor:
            holder.kill()
            holders.wait_for_one(but=holder.name)
            time.sleep(5)
        holder.start()  # what it saw is on its disk
        holders.watch(holder)
        stack.measured(f"VIP away for {away_ms(holders)} ms")
    seen = visitor.seen()
    assert seen.reads_gap_ms < _WITHOUT_A_HOLDER_MS, seen
    wait_for(
        "the ingress tier of the dead one",
        lambda: "" if holder.runs("haproxy") else "none",
        limit_s=60,
    )


def _wait_not_ready(stack: Stack, name: str) -> None:
    wait_for(f"{name} NotReady", lambda: "still Ready" if stack.ready()[name] else "", limit_s=120)


def _workers(stack: Stack) -> list[Node]:
    return [node for node in stack.nodes() if node.name.startswith("worker")]


def _visit(stack: Stack, shop: Shop, name: str, *, also: str = "") -> Visitor:
    """From the mirror, a machine of the lab that is not a node."""
    return Visitor(stack, name, stack.node("mirror"), ADDRESS, _trusted(stack, shop) + also)


def _trusted(stack: Stack, shop: Shop) -> str:
    """Who signed: the cluster's CA, and the shop itself."""
    kubeconfig = yaml.safe_load(stack.kubeconfig().read_text())
    data = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]
    return base64.b64decode(data).decode() + shop.certificate.read_text()


def _curl(stack: Stack, shop: Shop, url: str, words: str = "") -> str:
    """What the mirror is answered, which finds every host at the VIP."""
    mirror, host = stack.node("mirror"), url.partition("://")[2].partition("/")[0]
    mirror.put("/run/kube-ha-test/trusted", _trusted(stack, shop))
    at = " ".join(f"--resolve {host}:{port}:{ADDRESS}" for port in (80, 443))
    return mirror.run(
        f"curl -sS --max-time 8 --cacert /run/kube-ha-test/trusted {at} '{url}' {words}"
    )


def _serial(stack: Stack, host: str) -> str:
    """Of the certificate that visitors of the host are shown."""
    dial = f"openssl s_client -connect {ADDRESS}:443 -servername {host} </dev/null 2>/dev/null"
    return stack.node("mirror").run(f"{dial} | openssl x509 -noout -serial")
