"""What phase `etcd-member` is told, and the phase that takes a snapshot."""

from __future__ import annotations

from stacks.cluster import rotation
from stacks.cluster.plan import Node, Plan
from stacks.phases import object_store
from stacks.render import etcd, value


def of_member(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the etcd-member phase, but for ARTEFACTS and BOOTSTRAP."""
    return {
        "ADDRESS": node.address,
        "MEMBERS": " ".join(f"{member.name}={member.address}" for member in plan.etcd),
        "ARCH_DIR": f"etcd-v{plan.versions.etcd}-linux-{node.arch}",
        "GENERATION": str(plan.spec.converge.generation),
        "ETCD_ENV": value.of(etcd.environment(plan, node)),
        # Not used by the script: once the machine has rebooted it proves that the member is back.
        "OS_PACKAGES": plan.spec.os.packages or "",
        "ETCD_UNIT": value.of(etcd.unit(plan)),
        **_etcd_ca(plan),
        "BACKUP_EVERY_H": str(plan.spec.etcd.backup.every_hours),
        **_backups(plan),
    }


def snapshot(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the snapshot phase on an etcd machine, but for REASON."""
    members = " ".join(f"{member.name}={member.address}" for member in plan.etcd)
    return {"ADDRESS": node.address, "MEMBERS": members, **_backups(plan)}


def _backups(plan: Plan) -> dict[str, str]:
    said = plan.spec.etcd.backup
    return {
        "BACKUP_KEEP": str(said.keep),
        "BACKUP_DIRECTORY": said.directory or "",
        "BACKUP_ENCRYPT": "1" if said.encrypt else "0",
        **object_store.values(said.object_store, plan.spec.proxy),
    }


def _etcd_ca(plan: Plan) -> dict[str, str]:
    # Which of them signs makes no difference to a member: it reads its own certificates anew for
    # every connection, and its CAs when it starts.
    wanted = plan.spec.pki.rotation.etcd
    trusted = ",".join(map(str, sorted(rotation.generations(wanted))))
    return {"ETCD_CA": trusted} if rotation.has_begun(wanted) else {}
