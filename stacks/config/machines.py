"""Config sections of where machines come from, and how they are reached."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stacks.config.clouds import AwsSpec, GcpSpec, HcloudSpec
from stacks.config.fields import (
    Cidr,
    FilePath,
    Host,
    HostKey,
    Port,
    Section,
    User,
    is_unsaid,
)
from stacks.config.firewall import FirewallSpec


class BastionSpec(Section):
    address: Host = Field(description="machine through which all others are reached")
    user: User = Field("root", description="login name on the bastion")
    port: Port = Field(22, description="SSH port of the bastion")
    host_key: HostKey | None = Field(None, description="its public host key, 'type base64'")
    private_key_file: FilePath | None = Field(
        None, description="key for the bastion; default: as for the machines"
    )


class SshSpec(Section):
    user: User = Field("root", description="login name on machines; needs sudo without password")
    port: Port = Field(22, description="SSH port of the machines")
    private_key_file: FilePath | None = Field(
        None, description="OpenSSH private key without passphrase, readable by you alone"
    )
    agent: bool = Field(
        default=False, description="use the SSH agent of the caller in place of a key file"
    )
    bastion: BastionSpec | None = Field(None, description="jump host, where there is one")
    insecure_ignore_host_key: bool = Field(
        default=False,
        description="connect to machines without hostKey, unprotected against impostors",
    )


class LabSpec(Section):
    subnet: Cidr = Field(
        "10.92.0.0/24",
        description="network of the lab; its first address is this computer, its second the mirror",
    )


class MachinesSpec(Section):
    provider: Literal["lab", "adopt", "gcp", "aws", "hcloud"] = Field(
        description="lab: containers on this computer; adopt: machines that are there, over SSH; "
        "gcp, aws, hcloud (Hetzner): machines made in that cloud"
    )
    lab: LabSpec = Field(LabSpec(), description="settings of the lab")
    gcp: GcpSpec | None = Field(None, description="settings of machines on Google Cloud")
    aws: AwsSpec | None = Field(None, description="settings of machines on AWS")
    hcloud: HcloudSpec | None = Field(
        None, exclude_if=is_unsaid, description="settings of machines on Hetzner Cloud"
    )
    ssh: SshSpec = Field(SshSpec(), description="how adopted machines are reached")
    on_release: Literal["wipe", "keep"] = Field(
        "keep",
        description="adopted machines that leave for good. keep: everything of kube-ha is stopped, "
        "its files and data stay, and a host that is put back is adopted again; wipe: all of it is "
        "removed, data too",
    )
    containers: bool = Field(
        default=False, description="adopted machines are containers: relax what they cannot set"
    )
    firewall: FirewallSpec | None = Field(
        None,
        exclude_if=is_unsaid,
        description="machines of the lab, adopted ones and those of hcloud drop what comes to "
        "them, but for what the table of ports and this section let in; default: nothing is "
        "filtered",
    )
