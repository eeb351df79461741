"""What a machine tells Prometheus of itself."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.scripts.shell import SCRIPTS

DAY_S = 86400
LINE = re.compile(r'([a-z_]+)(?:\{([a-z]+)="([^"]*)"\})? (-?[0-9]+)')
STAT = """\
# pxname,svname,qcur,qmax,scur,smax,slim,stot,bin,bout,dreq,dresp,ereq,econ,eresp,wretr,wredis,status
kubernetes-api,FRONTEND,,,1,2,3,4,5,6,0,0,0,,,,,OPEN
kubernetes-api,master-1,0,0,0,0,,0,0,0,,0,,0,0,0,0,UP
kubernetes-api,master-2,0,0,0,0,,0,0,0,,0,,0,0,0,0,UP 1/2
kubernetes-api,master-3,0,0,0,0,,0,0,0,,0,,0,0,0,0,DOWN
kubernetes-api,master-1-unchecked,0,0,0,0,,0,0,0,,0,,0,0,0,0,no check
kubernetes-api,BACKEND,0,0,0,0,1,0,0,0,0,0,,0,0,0,0,UP
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in (
        *("etc/kubernetes/pki", "etc/kube-ha/etcd", "var/lib/kubelet/pki"),
        *("var/lib/kube-ha/state", "run/kube-ha-metrics", "bin"),
    ):
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def stub(root: Path, name: str, said: str) -> None:
    path = root / "bin" / name
    path.write_text(f"#!/bin/bash\ncat <<'SAID'\n{said}\nSAID\n")
    path.chmod(0o755)


def certificate(path: Path, days: int) -> str:
    """A key and a certificate in one file, as kubelets have theirs; the certificate."""
    key, made = path.with_suffix(".key.tmp"), path.with_suffix(".made.tmp")
    kind = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    words = ("-subj", "/CN=x", "-days", str(days), "-keyout", str(key), "-out", str(made))
    subprocess.run(["openssl", "req", *kind, *words], check=True, capture_output=True)
    text = made.read_text()
    path.write_text(key.read_text() + text)
    key.unlink()
    made.unlink()
    return text


def told(root: Path, vip: str = "") -> dict[tuple[str, str], int]:
    """Values by name and label, of a file in which every line is one that Prometheus reads."""
    subprocess.run(
        ["bash", str(SCRIPTS / "metrics.sh")],
        env={"ROOT": str(root), "VIP": vip, "PATH": f"{root / 'bin'}:{os.environ['PATH']}"},
        check=True,
    )
    out = {}
    for line in (root / "run/kube-ha-metrics/kube-ha.prom").read_text().splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP kube_ha_[a-z_]+ [^\\]+|TYPE kube_ha_[a-z_]+ gauge)", line)
            continue
        found = LINE.fullmatch(line)
        assert found, line
        out[found[1], found[3] or ""] = int(found[4])
    return out


def test_each_certificate_by_its_path_and_no_key(root: Path) -> None:
    stub(root, "socat", "")
    certificate(root / "etc/kubernetes/pki/apiserver.crt", 10)
    certificate(root / "var/lib/kubelet/pki/kubelet-client-current.pem", 20)
    pem = certificate(root / "etc/kube-ha/etcd/server.crt", 30)
    coded = subprocess.run(["base64", "-w0"], input=pem, capture_output=True, text=True, check=True)
    config = f"users:\n- user:\n    client-certificate-data: {coded.stdout}\n"
    (root / "etc/kubernetes/scheduler.conf").write_text(config)
    (root / "etc/kubernetes/kubelet.conf").write_text(
        "users:\n- user:\n    client-certificate: /x\n"
    )
    (root / "etc/kubernetes/pki/broken.crt").write_text("-----BEGIN CERTIFICATE-----\nx\n")
    found = told(root)
    now = int(subprocess.run(["date", "+%s"], capture_output=True, text=True, check=True).stdout)
    days = {path: round((end - now) / DAY_S) for (_, path), end in found.items()}
    assert days == {
        "/etc/kubernetes/pki/apiserver.crt": 10,
        "/var/lib/kubelet/pki/kubelet-client-current.pem": 20,
        "/etc/kube-ha/etcd/server.crt": 30,
        "/etc/kubernetes/scheduler.conf": 30,
    }
    assert "KEY" not in (root / "run/kube-ha-metrics/kube-ha.prom").read_text()


def test_servers_as_haproxy_sees_them(root: Path) -> None:
    stub(root, "socat", STAT)
    name = "kube_ha_haproxy_server_up"
    assert told(root) == {(name, "master-1"): 1, (name, "master-2"): 1, (name, "master-3"): 0}


def test_the_last_snapshot_where_one_was_made(root: Path) -> None:
    stub(root, "socat", "")
    assert told(root) == {}
    (root / "var/lib/kube-ha/state/backup").write_text("1700000000\tx.db\t12\t34\t\n")
    assert told(root) == {("kube_ha_backup_seconds", ""): 1700000000}


@pytest.mark.parametrize(("vip", "has"), [("10.0.0.5", 1), ("10.0.0.50", 0), ("0.0.0.5", 0)])
def test_whether_it_has_the_virtual_ip(root: Path, vip: str, has: int) -> None:
    stub(root, "socat", "")
    stub(root, "ip", "2: eth0    inet 10.0.0.5/32 scope global eth0")
    assert told(root, vip) == {("kube_ha_vip_owner", ""): has}


def test_it_is_read_whole_or_as_it_was(root: Path) -> None:
    """node-exporter reads at any time, and is nobody."""
    stub(root, "socat", STAT)
    told(root)
    (made,) = (root / "run/kube-ha-metrics").iterdir()
    assert made.name == "kube-ha.prom"
    assert made.stat().st_mode & 0o777 == 0o644
