"""What each phase makes sure of: functions of its scripts that end it where something is not so.

The change plan tells these as what is checked; a test looks whether the script still calls them.
"""

from __future__ import annotations

from collections.abc import Mapping

CHECKS: Mapping[str, tuple[str, ...]] = {
    "snapshot": ("verified",),
    "retire": ("expect_quorum", "quorum_without"),
    "preflight": ("main",),
    "node": ("settle", "local_api"),
    "pki": ("await_resumed",),
    "etcd-member": ("etcd_successor", "promote", "answers"),
    "master": ("others_serve", "api_server_ready"),
    "rotation": ("await_pods", "tell_extension_servers", "encrypt_again"),
    "addon": ("apply",),
    "manifests": ("apply",),
    "join": ("announce",),
    "wave": ("await_wave",),
    "balancer": ("wait_for",),
    "nodes": ("wait_for_nodes", "quorum_without"),
    "decommission": ("nothing_runs",),
    "etcd-absent": ("still_votes",),
    "ingress": ("main",),
    "vip": ("validated", "listens", "expect_adverts"),
    "vip-peers": ("validated",),
    "vip-away": ("virtual_ip_gone",),
    "gate": ("check_api", "rolled_out"),
    "leave": ("nothing_runs",),
}
