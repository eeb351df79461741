"""Answers of probe.sh read: lines with tabs become facts."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence

from cryptography import x509

from operations.observe.facts import (
    MISSING,
    SYSTEM_DISK,
    Backup,
    Certificate,
    Cluster,
    Disk,
    KubernetesNode,
    Machine,
    Member,
    MemberStatus,
    Refusal,
    Sending,
    Unit,
)

_Rows = Mapping[str, Sequence[Sequence[str]]]


class UnreadableAnswerError(ValueError):
    """An answer that is cut off or no probe's; the text says what is wrong with it."""


def machine(text: str) -> Machine:
    """The facts of a machine. Raises UnreadableAnswerError."""
    rows = rows_of(text)
    try:
        return _machine(rows)
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise UnreadableAnswerError(f"its answer cannot be read: {error!r}") from None


def cluster(text: str) -> Cluster:
    """The facts of the cluster. Raises UnreadableAnswerError, also when the API refused."""
    rows = rows_of(text)
    for said in rows.get("refused", ()):
        raise UnreadableAnswerError(" ".join(said))
    try:
        return Cluster(
            nodes={row[0]: _node(row) for row in rows.get("node", ())},
            asked=frozenset(row[0] for row in rows.get("asked", ())),
            endpoints=frozenset(row[0] for row in rows.get("endpoint", ())),
            has_settings=_one(rows, "settings") == "2",
        )
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise UnreadableAnswerError(f"its answer cannot be read: {error!r}") from None


def rows_of(text: str) -> dict[str, list[list[str]]]:
    """Fields by first word; lines of other programs, as a banner, have words of their own."""
    rows: dict[str, list[list[str]]] = {}
    for line in text.split("\n"):
        word, *fields = line.split("\t")
        rows.setdefault(word, []).append(fields)
    if "end" not in rows:
        last = text.splitlines()[-1] if text else "no answer"
        raise UnreadableAnswerError(f"the probe was interrupted: {last[:200]}")
    return rows


def _machine(rows: _Rows) -> Machine:
    balancer = dict(_pairs(rows, "balancer"))
    refused = balancer.pop("-", "")
    status, said = _json(_one(rows, "etcd-status")), _one(rows, "etcd-status")
    members = _json(_one(rows, "etcd-list"))
    _, epoch, mark = (_one(rows, "etcd-identity").split() + [""] * 3)[:3]
    return Machine(
        clock_s=float(_one(rows, "clock")),
        owner=_one(rows, "owner"),
        incarnation=int(_one(rows, "incarnation") or 1),
        applied=_one(rows, "applied"),
        is_busy=_one(rows, "busy") == "1",
        files=dict(_pairs(rows, "file")),
        sums=frozenset(name for name, state in _pairs(rows, "sums") if state != MISSING),
        changed=_changed(rows),
        units={row[0]: _unit(row) for row in rows.get("unit", ())},
        marks=dict(_pairs(rows, "mark")),
        programs=dict(_pairs(rows, "program")),
        artefacts=dict(_pairs(rows, "artefact")),
        touched=frozenset(row[0] for row in rows.get("artefact", ()) if row[2] == "touched"),
        certificates={path: _certificate(pem) for path, pem in _pairs(rows, "certificate")},
        scripts=dict(_pairs(rows, "script")),
        disks=dict(_disks(rows)),
        balancer=balancer,
        balancer_error=refused,
        has_vip=_one(rows, "vip") == "1" if "vip" in rows else None,
        firewall=_one(rows, "firewall"),
        readyz=_one(rows, "readyz"),
        etcd=_status(status) if status is not None else None,
        etcd_error=said if status is None else "",
        etcd_epoch=int(epoch or 0),
        etcd_mark=mark,
        etcd_refused=_refusal(_one(rows, "etcd-refused")),
        members=_members(members) if members is not None else None,
        backup=_backup(rows),
        backup_begun_s=int(_one(rows, "backup-begun")) if _one(rows, "backup-begun") else None,
        backup_timer=_one(rows, "backup-timer"),
        backup_sent=_sending(rows, "backup-sent"),
        backup_unsent=_sending(rows, "backup-unsent"),
    )


def _disks(rows: _Rows) -> Iterator[tuple[str, Disk]]:
    for free, total, *path in rows.get("disk", ()):
        # A file system that hangs tells nothing, one in memory may have no size.
        if not free or not total:
            continue
        disk = Disk(free_kib=int(free), total_kib=int(total))
        if disk.total_kib > 0:
            yield path[0] if path else SYSTEM_DISK, disk


def _refusal(text: str) -> Refusal | None:
    _, time_s, _, words = (text.split(" ", 3) + [""] * 4)[:4]
    return Refusal(time_s=int(time_s), words=words) if time_s else None


def _backup(rows: _Rows) -> Backup | None:
    for time_s, name, size, revision, *_ in rows.get("backup", ()):
        return Backup(time_s=int(time_s), name=name, size=int(size), revision=int(revision))
    return None


def _sending(rows: _Rows, word: str) -> Sending | None:
    for time_s, name, *trouble in rows.get(word, ()):
        return Sending(time_s=int(time_s), name=name, trouble=" ".join(trouble))
    return None


def _one(rows: _Rows, word: str) -> str:
    found = rows.get(word)
    return found[0][0] if found else ""


def _pairs(rows: _Rows, word: str) -> list[tuple[str, str]]:
    return [(row[0], row[1]) for row in rows.get(word, ())]


def _changed(rows: _Rows) -> dict[str, dict[str, str]]:
    out: dict[str, dict[str, str]] = {}
    for record, path, how in rows.get("changed", ()):
        out.setdefault(record, {})[path] = how
    return out


def _unit(row: Sequence[str]) -> Unit:
    _, active, enabled, since, restarts = row
    return Unit(
        active=active,
        enabled=enabled or MISSING,  # systemd says nothing of units that it has no file of
        since_s=int(since) if since else None,
        restarts=int(restarts) if restarts else 0,
    )


def certificate(pem: str) -> Certificate | None:
    """The dates of a certificate; None where the text is none."""
    try:
        found = x509.load_pem_x509_certificate(pem.encode())
    except ValueError:
        return None
    return Certificate(begins=found.not_valid_before_utc, ends=found.not_valid_after_utc)


def _certificate(text: str) -> Certificate | None:
    """Of base64 of a PEM text."""
    try:
        return certificate(base64.b64decode(text, validate=True).decode())
    except (ValueError, binascii.Error):
        return None


def _json(text: str) -> object:
    """What etcdctl answered; None where that was not a JSON."""
    try:
        answer: object = json.loads(text)
    except ValueError:
        return None
    return answer


def _status(answer: object) -> MemberStatus:
    entry = _mapping(_list(answer)[0])
    status = _mapping(entry["Status"])
    header = _mapping(status["header"])
    return MemberStatus(
        id=_int(header["member_id"]),
        version=str(status["version"]),
        leader=_int(status.get("leader", 0)),
        raft_index=_int(status.get("raftIndex", 0)),
        size=_int(status.get("dbSize", 0)),
        in_use=_int(status["dbSizeInUse"]) if "dbSizeInUse" in status else None,
        quota=_int(status.get("dbSizeQuota", 0)),
        errors=tuple(str(text) for text in _list(status.get("errors") or [])),
        cluster=_int(header.get("cluster_id", 0)),
    )


def _members(answer: object) -> tuple[Member, ...]:
    entries = [_mapping(entry) for entry in _list(_mapping(answer)["members"])]
    return tuple(
        Member(
            id=_int(entry["ID"]),
            name=str(entry.get("name", "")),
            peer_url=",".join(str(url) for url in _list(entry.get("peerURLs") or [])),
            is_learner=bool(entry.get("isLearner")),
        )
        for entry in entries
    )


def _node(row: Sequence[str]) -> KubernetesNode:
    _, ready, cordoned, kubelet, runtime, applied, begun, failed = row
    return KubernetesNode(
        is_ready=ready == "True",
        is_cordoned=cordoned == "true",
        kubelet=kubelet,
        runtime=runtime,
        applied=applied,
        begun=begun,
        failed=failed,
    )


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} where a mapping should be")
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} where a list should be")
    return value


def _int(value: object) -> int:
    return int(str(value))
