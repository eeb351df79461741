"""systemd's own opinion of the units."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stacks.cluster.plan import Plan
from stacks.render import containerd, etcd, kubelet
from tests.unit.render.examples import adopted, lab, program

PROXY = {"https": "http://proxy.example.com:3128", "noProxy": [".example.com"]}


@pytest.mark.parametrize("plan", [lab(proxy=PROXY), adopted(proxy=PROXY)], ids=["lab", "adopted"])
def test_systemd_knows_every_word(plan: Plan, tmp_path: Path) -> None:
    """A misplaced setting is only a warning in the journal, and has no effect."""
    texts = {
        "containerd.service": containerd.unit(plan),
        "containerd.service.d/proxy.conf": containerd.proxy(plan),
        "etcd.service": etcd.unit(plan),
        "kubelet.service": kubelet.unit(),
        "kubelet.service.d/10-kubeadm.conf": kubelet.drop_in(plan),
    }
    analyze = program("systemd-analyze", tmp_path)
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        # The programs themselves are not on this computer.
        path.write_text(text.replace("/usr/local/bin/", "/bin/true "))
    units = [name for name in texts if name.endswith(".service")]
    done = subprocess.run(
        [analyze, "verify", *units],
        cwd=tmp_path,
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    complaints = [line for line in done.stderr.splitlines() if str(tmp_path) in line]
    assert complaints == []
