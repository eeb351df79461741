"""The probe: what it asks a machine, and that no answer is ever a secret, a change or a wait without end."""

from __future__ import annotations

import base64
import fcntl
from pathlib import Path

import pytest

from tests.scripts import node_list
from tests.scripts.shell import OWNER, Shell

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\nBBBB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN EC PRIVATE KEY-----\nHIDDEN\n-----END EC PRIVATE KEY-----\n"


def asked(
    shell: Shell, code: str, *, values: dict[str, str] | None = None, fails: bool = False
) -> list[list[str]]:
    """Lines of facts, each as its fields."""
    out = shell.run(code, phase="probe", values=values, fails=fails)
    return [line.split("\t") for line in out.splitlines()]


def test_a_fact_is_one_line_whatever_is_in_it(shell: Shell) -> None:
    assert shell.run("say word $'a\\tb\\nc' ''", phase="probe") == "word\ta b c\t\n"


def test_files_are_told_by_their_sums(shell: Shell) -> None:
    (shell.folder / "file").write_text("text\n")
    rows = asked(shell, 'FILES="$PWD/file"$\'\\n\'"$PWD/gone"; files')
    sum_ = "b9e68e1bea3e5b19ca6b2f98b73a54b73daafaa250484902e09982e07a12e733"
    assert rows == [
        ["file", f"{shell.folder}/file", sum_],
        ["file", f"{shell.folder}/gone", "missing"],
    ]


def test_what_was_changed_since_it_was_written_is_named_and_not_shown(shell: Shell) -> None:
    values = {"PKI_COUNT": "3"}
    for number, name in enumerate(("a.key", "b.key", "c.crt"), start=1):
        path = str(shell.folder / "keys" / name)
        values |= {f"PKI_MODE_{number}": "600", f"PKI_PATH_{number}": path, f"PKI_TEXT_{number}": name}  # fmt: skip
    shell.run("main", phase="pki", values=values)
    look = 'compare pki "$STATE/pki.sums"; open_keys'
    assert asked(shell, look) == [["sums", "pki", "kept"]]
    keys = shell.folder / "keys"
    (keys / "a.key").write_text("HIDDEN")
    (keys / "b.key").chmod(0o644)
    (keys / "c.crt").unlink()
    assert asked(shell, look) == [
        ["sums", "pki", "kept"],
        ["changed", "pki", f"{keys}/a.key", "changed"],
        ["changed", "pki", f"{keys}/c.crt", "missing"],
        ["changed", "pki", f"{keys}/b.key", "mode 644"],
    ]
    (shell.state / "pki.sums").unlink()
    assert asked(shell, look) == [["sums", "pki", "missing"]]


SHOW = """cat <<END
NRestarts=2
ActiveState=active
UnitFileState=enabled
ActiveEnterTimestamp=Thu 2026-01-01 00:00:10 UTC
END"""


def test_units_are_told_in_the_words_of_systemd(shell: Shell) -> None:
    shell.stub("systemctl", SHOW)
    rows = asked(shell, 'TZ=UTC UNITS="etcd"; units')
    assert rows == [
        ["sums", "etcd.service", "missing"],
        ["unit", "etcd", "active", "enabled", "1767225610", "2"],
    ]
    shell.stub("systemctl", "echo 'Failed to connect to bus' >&2; exit 1")
    assert asked(shell, 'UNITS="etcd"; units')[1] == ["unit", "etcd", "unknown", "missing", "", ""]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "missing"),
        ("a change is under way\n", "under-way"),
        ("0123  -\n", "settled"),
    ],
)
def test_a_change_that_broke_off_shows(shell: Shell, text: str | None, told: str) -> None:
    shell.state.mkdir(parents=True)
    if text is not None:
        (shell.state / "master.sum").write_text(text)
    assert asked(shell, 'SETTLED="master"; settled_marks') == [["mark", "master", told]]


def test_programs_tell_their_versions_themselves(shell: Shell) -> None:
    shell.stub("kubelet", "echo Kubernetes v1.36.3; echo more")
    shell.stub("etcd", "echo broken >&2; exit 1")
    rows = asked(shell, 'PROGRAMS="kubelet etcd no-such-program"; programs')
    assert rows == [
        ["program", "kubelet", "Kubernetes v1.36.3"],
        ["program", "etcd", "no answer: broken"],
        ["program", "no-such-program", "missing"],
    ]


def test_of_a_file_with_certificate_and_key_only_the_certificate_leaves(shell: Shell) -> None:
    (shell.folder / "both.pem").write_text(CERTIFICATE + KEY)
    (shell.folder / "other.pem").write_text(KEY + CERTIFICATE + CERTIFICATE)
    (shell.folder / "cut.pem").write_text(CERTIFICATE.replace("-----END", "---END") + KEY)
    (shell.folder / "user.conf").write_text(
        "users:\n- user:\n    client-certificate-data: QUJD\n    client-key-data: SElEREVO\n"
    )
    names = ("both.pem", "other.pem", "cut.pem", "user.conf", "gone.pem")
    values = {"CERTIFICATES": "\n".join(str(shell.folder / name) for name in names)}
    rows = asked(shell, "certificates", values=values)
    sent = base64.b64encode(CERTIFICATE.encode()).decode()
    assert [row[2] for row in rows] == [sent, sent, "", "QUJD", "missing"]


def test_artefacts_that_were_swapped_by_hand_show(shell: Shell) -> None:
    binary = shell.folder / "thing"
    binary.write_text("a")
    shell.run(f"mark_installed thing 0123 {binary}", phase="downloads")
    look = 'ARTEFACTS="thing other"; artefacts'
    assert asked(shell, look) == [
        ["artefact", "thing", "0123", "untouched"],
        ["artefact", "other", "", "untouched"],
    ]
    binary.write_text("another")
    assert asked(shell, look)[0] == ["artefact", "thing", "0123", "touched"]


STAT = """# pxname,svname,...,status
kubernetes-api,FRONTEND,,,,,,,,,,,,,,,,OPEN
kubernetes-api,master-1,,,,,,,,,,,,,,,,UP
kubernetes-api,master-2,,,,,,,,,,,,,,,,DOWN 1/2
kubernetes-api,master-1-unchecked,,,,,,,,,,,,,,,,no check
kubernetes-api,BACKEND,,,,,,,,,,,,,,,,UP"""


def test_the_load_balancer_is_asked_for_its_view_of_the_masters(shell: Shell) -> None:
    shell.stub("socat", f"cat <<'END'\n{STAT}\nEND")
    assert asked(shell, "balancer") == [
        ["balancer", "master-1", "UP"],
        ["balancer", "master-2", "DOWN 1/2"],
    ]
    shell.stub("socat", "echo 'connect: No such file' >&2; exit 1")
    assert asked(shell, "balancer") == [["balancer", "-", "connect: No such file"]]


def test_an_api_server_that_is_not_ready_says_why(shell: Shell) -> None:
    shell.stub("curl", "printf 'ok'")
    assert asked(shell, "ADDRESS=10.0.0.11; apiserver") == [["readyz", "ok"]]
    assert "https://10.0.0.11:6443/readyz" in shell.calls[0]
    shell.stub("curl", "echo '[+]ping ok'; echo 'readyz check failed'; exit 0")
    assert asked(shell, "ADDRESS=10.0.0.11; apiserver") == [["readyz", "readyz check failed"]]


def test_etcd_answers_in_json_or_says_why_not(shell: Shell) -> None:
    shell.stub("etcdctl", "echo warning >&2; echo '[1]'; echo bye >&2")
    assert asked(shell, "open_port() { :; }; member") == [
        ["etcd-status", "[1]"],
        ["etcd-list", "[1]"],
    ]
    shell.stub("etcdctl", "echo one; echo 'Error: deadline exceeded' >&2; exit 1")
    assert asked(shell, "open_port() { :; }; member")[1] == [
        "etcd-list",
        "no answer: Error: deadline exceeded",
    ]
    shell.stub("etcdctl", "echo nothing")
    assert asked(shell, "open_port() { :; }; member")[0] == ["etcd-status", "no answer: no JSON"]


def test_whose_data_etcd_has_is_told_and_why_it_may_not_serve(shell: Shell) -> None:
    shell.stub(
        "etcdctl",
        """printf '"ClusterID" : 14841639068965178418\n"Key" : "/kube-ha/cluster"\n"Value" : "kube-ha-cluster:dev:0123456789ab;"\n'
printf '"Key" : "/kube-ha/epoch"\n"Value" : "1795312345"\n'""",
    )
    shell.state.mkdir(parents=True)
    (shell.state / "etcd.refused").write_text("empty 1795312000 0 there is no data\n")
    assert asked(shell, "open_port() { :; }; whose_data") == [
        ["etcd-identity", "14841639068965178418 1795312345 ours"],
        ["etcd-refused", "empty 1795312000 0 there is no data"],
    ]


def test_the_last_backup_is_told_as_it_was_noted(shell: Shell) -> None:
    shell.stub("systemctl", "echo active")
    shell.state.mkdir(parents=True)
    assert asked(shell, "backups") == [["backup-timer", "active"], ["backup-begun", ""]]
    (shell.state / "backup").write_text("1790000000\ta.db\t4096\t17\t\n")
    (shell.state / "backup.begun").write_text("1790000001\n")
    assert asked(shell, "backups") == [
        ["backup-timer", "active"],
        ["backup", "1790000000", "a.db", "4096", "17", ""],
        ["backup-begun", "1790000001"],
    ]
    (shell.state / "backup.sent").write_text("1790000002\ta.db\n")
    (shell.state / "backup.unsent").write_text("1790000003\tb.db\t403 AccessDenied: no\n")
    assert asked(shell, "backups")[3:] == [
        ["backup-sent", "1790000002", "a.db"],
        ["backup-unsent", "1790000003", "b.db", "403 AccessDenied: no"],
    ]


def test_the_cluster_is_asked_of_the_api_or_it_is_told_why_not(shell: Shell) -> None:
    failed = f"{'b' * 16} 12:05 no disk"
    node = node_list.one("worker-1", applied="a" * 16, ready="True", failed=failed, kubelet="v1.36.3", runtime="c://2.3.7")  # fmt: skip
    (shell.folder / "nodes").write_text(node_list.listed(node))
    shell.stub(
        "kubectl",
        """case "$*" in
        *"get nodes"*) echo 'Warning: something'; cat nodes ;;
        *kube-ha-nodes*) echo '{"data": {"known": "worker-[1-2]", "joining.worker-9": "1"}}' ;;
        *endpointslices*) echo '{"endpoints": [{"addresses": ["10.0.0.11"]}]}' ;;
        *configmaps*) printf 'configmap/kubeadm-config\\nconfigmap/kubelet-config\\n' ;;
        esac""",
    )
    assert asked(shell, "ASK=cluster; main") == [
        [
            "node",
            "worker-1",
            "True",
            "",
            "v1.36.3",
            "c://2.3.7",
            "a" * 16,
            "",
            f"{'b' * 16} 12:05 no disk",
        ],
        *(["asked", name] for name in ("worker-1", "worker-2", "worker-9")),
        ["endpoint", "10.0.0.11"],
        ["settings", "2"],
        ["end"],
    ]
    shell.stub("kubectl", "echo 'connection refused' >&2; exit 1")
    assert asked(shell, "ASK=cluster; main") == [["refused", "connection refused"], ["end"]]


EVERYTHING = {
    "ASK": "machine balancer master member cluster",
    "ADDRESS": "10.0.0.11",
    "FILES": "/gone/a\n/gone/b",
    "CERTIFICATES": "/gone/c.crt\n/gone/d.conf",
    "UNITS": "haproxy etcd",
    "PROGRAMS": "kubelet no-such-program",
    "ARTEFACTS": "runc",
    "SETTLED": "master",
    "SCRIPTS": "lib.sh no-such.sh",
}
COMMANDS = ("systemctl", "kubelet", "socat", "curl", "etcdctl", "kubectl")


def left(shell: Shell) -> dict[Path, int]:
    """Files of the machine's state with their times."""
    return {
        path: path.stat().st_mtime_ns for path in shell.folder.rglob("*") if path.name != "calls"
    }


def test_on_a_machine_where_nothing_works_every_question_has_an_answer(shell: Shell) -> None:
    for name in COMMANDS:
        shell.stub(name, "echo broken >&2; exit 1")
    shell.state.mkdir(parents=True)
    before = left(shell)
    rows = asked(shell, "main", values=EVERYTHING)
    assert rows[-1] == ["end"]
    assert {row[0] for row in rows} == {
        "clock", "owner", "applied", "incarnation", "busy", "file", "sums", "unit", "mark", "program", "artefact",
        "certificate", "script", "disk", "balancer", "readyz", "etcd-status", "etcd-list",
        "etcd-identity", "etcd-refused", "backup-timer", "backup-begun", "refused", "end",
    }  # fmt: skip
    assert left(shell) == before, "a look changes nothing"


def test_a_run_under_way_is_told_and_not_waited_for(shell: Shell) -> None:
    (shell.state).mkdir(parents=True)
    (shell.state / "owner").write_text(OWNER + "\n")
    with (shell.folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        rows = asked(shell, "identity")  # the lock is held until it has answered
    assert rows[1:] == [["owner", OWNER], ["applied", ""], ["incarnation", ""], ["busy", "1"]]
    assert asked(shell, "identity")[-1] == ["busy", "0"]


def test_a_lock_that_never_was_is_not_made(shell: Shell) -> None:
    assert asked(shell, "identity")[-1] == ["busy", "0"]
    assert not (shell.folder / "lock").exists()
