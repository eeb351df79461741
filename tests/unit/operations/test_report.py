"""A report holds what a supporter needs, of all machines that answer, and no secret of the stack whatever they print."""

from __future__ import annotations

import base64
import gzip
import json
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from components.ssh.hop import Hop
from operations import preview, report
from operations.engine import stack
from operations.observe import observation
from operations.reports import machines
from operations.reports.secrets import Secrets
from operations.ssh import client
from operations.ssh.client import Answer, Target
from operations.users import certificate
from tests.unit.configs import host_key, lab, planned
from tests.unit.operations import probed

SIGNATURE = "4dabf18193072939515e22adb298388d"
KEY = (
    certificate.new_key()
    .private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    .decode()
)
LINES = [line for line in KEY.splitlines() if "-----" not in line]
IN_KUBECONFIG = base64.b64encode(KEY.encode()).decode()
ENCRYPTION = base64.b64encode(bytes(range(32))).decode()
BACKUP, STORE = "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "a-secret: of the object store"
VALUE = "a-value: of a Secret"
TOKEN, JWT = "abcdef.0123456789abcdef", "eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrdWJl.c2lnbmF0dXJl"


def secret(value: object) -> dict[str, str]:
    """As the engine exports one with --show-secrets."""
    return {SIGNATURE: "x", "plaintext": json.dumps(value)}


STATE = {
    "deployment": {
        "manifest": {"version": "v3.250.0"},
        "resources": [
            {"outputs": {"privateKeyPem": secret(KEY), "publicKeyPem": secret("PUBLICPUBLICPUBLICPUBLICPUBLIC")}},
            {"inputs": {"stdin": secret(f"PKI_TEXT_1='{KEY}'\nENC='  secret: {ENCRYPTION}'\n")}},
            {"outputs": {"kubeconfig": secret(f"client-key-data: {IN_KUBECONFIG}\n")}},
        ]
    }
}  # fmt: skip
ALL = [*LINES[:2], IN_KUBECONFIG, ENCRYPTION, BACKUP, STORE, VALUE, TOKEN, JWT]
# Of real journals: nothing of it is a secret, and a supporter needs all of it.
JOURNAL = """\
2026-11-23T12:00:01+0000 master-1 etcd[311]: {"level":"warn","msg":"apply request took too long","took":"120.5ms","expected-duration":"100ms","request":"header:<ID:8372612345678901234 > lease_revoke:<id:742f8b0c1d2e3f40>"}
2026-11-23T12:00:02+0000 master-1 kubelet[900]: E1123 12:00:02.000001 900 pod_workers.go:1324] "Error syncing pod" err="failed to start" pod="kube-system/coredns-7d764666f9-abcde" podUID="2f1c7a9e-3b1d-4c55-9e77-0a1b2c3d4e5f"
2026-11-23T12:00:03+0000 master-1 containerd[400]: time="2026-11-23T12:00:03Z" level=info msg="PullImage \\"registry.k8s.io/pause@sha256:278fb9dbcca9518083ad1e11276933a2e96f23de604a3a08cc3c80002767d24c\\""
2026-11-23T12:00:04+0000 master-1 haproxy[500]: Server kubernetes-api/master-2 is DOWN, reason: Layer4 timeout, check duration: 2001ms.
2026-11-23T12:00:05+0000 master-1 Keepalived_vrrp[600]: (api) Entering MASTER STATE"""


@pytest.fixture(scope="module")
def secrets() -> Secrets:
    return Secrets.of(STATE, [BACKUP, STORE, VALUE, ""])


@pytest.mark.parametrize("one", ALL, ids=[str(number) for number in range(len(ALL))])
@pytest.mark.parametrize("around", ["{}", "key={} next", '{{"x":"{}"}}', "prefix{}", "b'{}\\n'"])
def test_no_secret_is_left_in_a_text(secrets: Secrets, one: str, around: str) -> None:
    if around == "prefix{}" and one in (TOKEN, JWT, STORE, VALUE):
        around = "prefix {}"  # which is how a token is told from a name
    left = secrets.without(around.format(one))
    assert "***" in left
    for at in range(0, len(one) - 16, 4):
        assert one[at : at + 16] not in left
    assert not secrets.are_in(left)


def test_a_key_is_found_over_its_lines_and_in_what_lies_around_it(secrets: Secrets) -> None:
    text = f"before\n{KEY}after\n" + json.dumps({"stdin": KEY})
    left = secrets.without(text)
    assert secrets.are_in(text)
    assert not secrets.are_in(left)
    assert left.startswith("before\n")
    assert "after\n" in left


def test_a_key_that_the_stack_does_not_know_is_cut_out_too(secrets: Secrets) -> None:
    other = certificate.pem(certificate.new_key()).decode()
    lines = other.splitlines()[1:-1]
    indented = other.replace("\n", "\n      ")
    for text in (other, f"{JOURNAL}\n{indented}\n{JOURNAL}", "\n".join([*lines[1:], "-----END PRIVATE KEY-----", JOURNAL])):  # fmt: skip
        left = secrets.without(text)
        assert not [line for line in lines if line in left]
        assert JOURNAL not in text or left.endswith(JOURNAL)
    held = base64.b64encode(other.encode()).decode()
    assert held not in secrets.without(f"    client-key-data: {held}")


def test_what_is_no_secret_stays_as_it_is(secrets: Secrets) -> None:
    assert secrets.without(JOURNAL) == JOURNAL
    assert secrets.without("PUBLICPUBLICPUBLICPUBLICPUBLIC") == "PUBLICPUBLICPUBLICPUBLICPUBLIC"


@given(
    one=st.text("abcdefgh0123+/=_-", min_size=12, max_size=80),
    before=st.text("abcdefgh0123+/=_-XYZ .\"'", max_size=30),
    behind=st.text("abcdefgh0123+/=_-XYZ .\"'", max_size=30),
)
def test_a_secret_is_found_wherever_it_is(one: str, before: str, behind: str) -> None:
    text = f"{before}{one}{behind}"
    found = Secrets([one])
    assert found.are_in(text)
    assert one not in found.without(text)


def packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode())).decode()


def test_a_machine_adds_what_was_asked_of_it_and_no_more() -> None:
    names = {"etcd": "nodes/a/etcd.txt", "facts": "nodes/a/facts.txt", "pods": "cluster/pods.txt"}
    coloured = packed("first\x1b[2J")
    bomb = packed("x" * 50 * machines.FILE_BYTES)
    rows = [
        f"file\tetcd\t{coloured}",
        f"file\tetcd\t{packed('second')}",
        f"file\t../../etc/passwd\t{packed('x')}",
        f"file\tnodes/a/etcd.txt\t{packed('x')}",
        f"file\tfacts\t{bomb}",
        "file\tpods\tnot base64",
        "noise",
    ]
    found = machines.parsed("\n".join(rows), names)
    assert set(found) == set(names.values())
    assert found["nodes/a/etcd.txt"] == "first [2J"
    assert len(found["nodes/a/facts.txt"]) <= machines.FILE_BYTES
    assert "cannot be read" in found["cluster/pods.txt"]


class Engine:
    """Knows the state, and an encrypted key of the config."""

    def __init__(self, stack: str) -> None:
        self.stack = stack
        self.environment = {"PULUMI_CONFIG_PASSPHRASE": "correct horse battery"}

    def state(self, *, clear: bool) -> object:
        assert clear
        return STATE

    def run(self, *words: str) -> object:
        class Done:
            returncode = 0
            stdout = ""

        if words[0] == "config":
            Done.stdout = json.dumps(
                {
                    "kube-ha:backupSecretKey": {"value": STORE, "secret": True},
                    "kube-ha:addonSecrets": {
                        "value": json.dumps({"token": VALUE}),
                        "objectValue": {"token": VALUE},
                        "secret": True,
                    },
                }
            )
        return Done


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stack of 3 masters and 2 workers; master-2 is dead, and all others print secrets. Its folder of reports."""
    plan = planned(lab())
    seen = probed.look(plan, {"master-2": "no route to host"})
    target = Target(hop=Hop(address="a", port=22, user="root", host_key=host_key(1), key=KEY))
    found = stack.Stack(
        plan=plan,
        targets=dict.fromkeys([node.name for node in plan.nodes], target),
        cluster_id="1",
        backup_key=BACKUP,
    )

    def run(_target: Target, phase: str, values: Mapping[str, str], *, limit_s: int) -> Answer:
        assert (phase, limit_s > 0) == ("report", True)
        text = "\n".join([f"{name} of {values['NODE']}" for name in values["ASK"].split()] + ALL)
        rows = [f"file\t{name}\t{packed(text)}" for name in values["ASK"].split()]
        ended = [] if values["NODE"] == "worker-2" else ["end"]
        return Answer(status=0, text="\n".join([*rows, *ended]), asked_at_s=0)

    monkeypatch.setattr(report, "Engine", Engine)
    monkeypatch.setattr(stack, "read", lambda *_, **__: found)
    monkeypatch.setattr(observation, "of", lambda *_: seen)
    monkeypatch.setattr(client, "run", run)
    monkeypatch.setattr(preview, "document", lambda _: json.dumps({"plan": TOKEN}))
    monkeypatch.delenv("KUBE_HA_STATE_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    config = {f"kube-ha:{key}": value for key, value in lab().items()}
    config["kube-ha:backupSecretKey"] = {"secure": "v1:abc:ciphertext"}
    text = yaml.safe_dump({"encryptionsalt": "v1:salt", "config": config})
    (tmp_path / "Pulumi.dev.yaml").write_text(text)
    (tmp_path / ".local/log").mkdir(parents=True)
    (tmp_path / ".local/log/up-dev.log").write_text(f"Updating\n{LINES[0]}\n")
    return tmp_path / ".local/reports/dev"


def contents(file: Path) -> dict[str, str]:
    with tarfile.open(file) as tar:
        found = {}
        for entry in tar:
            held = tar.extractfile(entry)
            assert held is not None
            found[entry.name.removeprefix("report/")] = held.read().decode()
        return found


def test_the_archive_holds_all_of_it_and_says_what_is_left_out(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.main(["dev"]) == 0
    (file,) = made.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = contents(file)
    own = {"about.json", "config.yaml", "plan.json", "status.json", "status.txt"}
    assert own | {"drift.json", "drift.txt", "last-update.txt"} <= set(found)
    assert {f"nodes/{name}/kubelet.txt" for name in ("master-1", "master-3", "worker-1", "worker-2")} <= set(found)  # fmt: skip
    assert {"nodes/master-1/members.txt", "nodes/master-3/kube-apiserver.txt"} <= set(found)
    assert "nodes/worker-1/members.txt" not in found
    assert not [path for path in found if "master-2" in path]
    assert {path for path in found if path.startswith("cluster/")} == {
        f"cluster/{name}.txt" for name in ("nodes", "pods", "events", "workloads", "requests")
    }
    about = json.loads(found["about.json"])
    assert set(about["leftOut"]) == {"master-2", "worker-2"}
    assert about["versions"]["engine"] == "v3.250.0"
    told = capsys.readouterr().out.splitlines()
    assert told[0] == str(file.relative_to(made.parents[2]))
    assert [line.split()[0] for line in told[1 : len(found) + 1]] == sorted(found)
    assert told[len(found) + 1 :][0] == "left out: master-2: no route to host"


def test_the_archive_holds_no_secret(made: Path) -> None:
    assert report.main(["dev"]) == 0
    (file,) = made.iterdir()
    for path, text in contents(file).items():
        for one in [*ALL, *LINES, "ciphertext", "v1:salt", "correct horse battery"]:
            assert one not in text, path
    for name in ("config.yaml", "plan.json", "status.json", "about.json"):
        assert yaml.safe_load(contents(file)[name])
    assert yaml.safe_load(contents(file)["config.yaml"])["backupSecretKey"] == {"secure": "***"}


def test_with_a_key_it_is_sealed_and_opens_with_that_key_alone(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBE_HA_STATE_KEY", Fernet.generate_key().decode())
    assert report.main(["dev"]) == 0
    (sealed,) = made.iterdir()
    assert sealed.name.endswith(".tar.gz.sealed")
    assert stat.S_IMODE(sealed.stat().st_mode) == 0o600
    assert report.main(["dev", "--open", str(sealed)]) == 0
    opened = sealed.with_name(sealed.name.removesuffix(".sealed"))
    assert capsys.readouterr().out.splitlines()[-1] == str(opened)
    assert "about.json" in contents(opened)
    monkeypatch.setenv("KUBE_HA_STATE_KEY", Fernet.generate_key().decode())
    assert report.main(["dev", "--open", str(sealed)]) == 1
    assert "does not open" in capsys.readouterr().err


def test_a_wrong_key_writes_nothing_in_plain_text(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBE_HA_STATE_KEY", "short")
    assert report.main(["dev"]) == 1
    assert "KUBE_HA_STATE_KEY is not a key" in capsys.readouterr().err
    assert not made.exists()


def test_what_would_still_hold_a_secret_is_not_written(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Secrets, "without", lambda _, text: text)
    assert report.main(["dev"]) == 1
    told = capsys.readouterr().err
    assert "nothing was written: " in told
    assert "nodes/master-1/kubelet.txt" in told
    assert not any(one in told for one in ALL)
    assert not made.exists()
