"""User data of machines in a cloud: who may log in, by which host key they are known, their disk.

cloud-init does `bootcmd` before it makes users and host keys, so whoever can log in finds the disk
mounted.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from stacks.documents.yaml_text import documents
from stacks.providers.cloud import DATA, USER

_SCRIPT = Path(__file__).parents[2] / "components/machines/cloud_init.sh"
_SSHD = """\
# Made by kube-ha. Only the key that the stack knows is offered.
HostKey /etc/ssh/ssh_host_ecdsa_key
# A stack opens many sessions at once, on a bastion those of all machines.
MaxStartups 100:30:200
MaxSessions 100
"""
# Canonical's images of AWS have it, and then this does nothing; images of others bring their own.
_AGENT = "! command -v snap || snap install amazon-ssm-agent --classic"
# Google's agent makes host keys of its own at the first boot, in the place of those that were
# handed over, unless this says no (GoogleCloudPlatform/guest-agent, instance_configs.cfg).
_GUEST_AGENT = "[InstanceSetup]\nset_host_keys = false\n"
# Without its disk etcd would begin anew on the boot disk.
_ETCD_NEEDS_DISK = f"[Unit]\nRequiresMountsFor={DATA}\n"


def user_data(
    name: str,
    *,
    host_key: str,
    host_key_public: str,
    authorized_key: str,
    disks: Sequence[str] | None,
    ssm: bool = False,
    guest_agent: bool = False,
    pod_metadata: bool = False,
) -> str:
    """The text for one machine. Secret: it holds the private host key (PEM).

    `disks`: device paths that the disk of its own may have; None: it has none. `ssm`: AWS's Systems
    Manager points to it. `guest_agent`: the image has that of Google. `pod_metadata`: pods may read
    the metadata service.
    """
    files = [{"path": "/etc/ssh/sshd_config.d/10-kube-ha.conf", "content": _SSHD}]
    if disks is not None:
        path = "/etc/systemd/system/etcd.service.d/10-disk.conf"
        files.append({"path": path, "content": _ETCD_NEEDS_DISK})
    if guest_agent:
        files.append({"path": "/etc/default/instance_configs.cfg", "content": _GUEST_AGENT})
    values = {
        "hostname": name,
        "disable_root": True,
        "ssh_pwauth": False,
        "ssh_deletekeys": True,
        "ssh_keys": {"ecdsa_private": host_key, "ecdsa_public": host_key_public},
        "users": [
            {
                "name": USER,
                "shell": "/bin/bash",
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "lock_passwd": True,
                "ssh_authorized_keys": [authorized_key],
            }
        ],
        "bootcmd": [["bash", "-c", _script(disks or (), pod_metadata=pod_metadata)]],
        "write_files": files,
    }
    if ssm:
        values["runcmd"] = [["sh", "-c", _AGENT]]
    return "#cloud-config\n" + documents(values)


def _script(disks: Sequence[str], *, pod_metadata: bool) -> str:
    body = _SCRIPT.read_text()
    values = f"DISKS={shlex.quote(' '.join(disks))}\nPOD_METADATA={'1' if pod_metadata else ''}\n"
    return f"set -euo pipefail\n{values}{body}main\n"
