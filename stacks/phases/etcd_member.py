"""What phase `etcd-member` is told, and the phase that takes a snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.cluster import rotation
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Node, Plan
from stacks.phases import downloads, nodes, object_store, scripts
from stacks.render import etcd, value


def of_member(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the etcd-member phase, but for ARTEFACTS and BOOTSTRAP."""
    return {
        "ADDRESS": node.address,
        "MEMBERS": nodes.members(plan.etcd),
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


def whole(plan: Plan, node: Node, files: Mapping[str, File]) -> dict[str, str]:
    """The same with ARTEFACTS; `files` is what nodes fetch."""
    return {**of_member(plan, node), "ARTEFACTS": downloads.artefacts(files, ("etcd",))}


def founding(
    values: Mapping[str, str], *, leaving: Mapping[str, str], now_s: float, newborn: bool
) -> dict[str, str]:
    """Values of the founding run, of those that the member has later.

    A later run on an emptied machine could found a second, empty cluster in place of the lost one:
    what is written down here forever says itself when its time is over. And in a living stack,
    which is not `newborn`, another member may have become the first one: it never bootstraps.
    `leaving`: addresses by name of members that go in this update. Where all members are new, those
    know the cluster.
    """
    # Founding is told once and for all, and what is said of backups may change.
    told = {name: text for name, text in values.items() if not name.startswith("BACKUP_")}
    gone = [f"{name}={address}" for name, address in sorted(leaving.items())]
    members = " ".join([values["MEMBERS"], *gone])
    until = scripts.until(now_s)
    may = {"BOOTSTRAP": "1", "BOOTSTRAP_UNTIL": until} if newborn else {"BOOTSTRAP": "0"}
    return {**told, "MEMBERS": members, **may, "UNTIL": until}


def secret_keys(plan: Plan) -> str:
    """Which of a member's secrets they are that no public file tells."""
    store, seed = plan.spec.etcd.backup.object_store, rotation.signing(plan.spec.pki.rotation.seed)
    # The secret of an access key is replaced together with it.
    words = [store.access_key] if store and store.access_key else []
    if seed > 1 and plan.spec.etcd.backup.encrypt:
        words.append(f"seed={seed}")
    return " ".join(words)


def snapshot(plan: Plan, node: Node) -> dict[str, str]:
    """Values of the snapshot phase on an etcd machine, but for REASON."""
    return {"ADDRESS": node.address, "MEMBERS": nodes.members(plan.etcd), **_backups(plan)}


def _backups(plan: Plan) -> dict[str, str]:
    said = plan.spec.etcd.backup
    return {
        "BACKUP_KEEP": str(said.keep),
        "BACKUP_DIRECTORY": said.directory or "",
        "BACKUP_ENCRYPT": "1" if said.encrypt else "0",
        **object_store.values(plan.spec),
    }


def _etcd_ca(plan: Plan) -> dict[str, str]:
    # Which of them signs makes no difference to a member: it reads its own certificates again for
    # every connection, and its CAs when it starts.
    wanted = plan.spec.pki.rotation.etcd
    trusted = ",".join(map(str, sorted(rotation.generations(wanted))))
    return {"ETCD_CA": trusted} if rotation.has_begun(wanted) else {}
