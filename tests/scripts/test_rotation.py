"""The end of a rotation's step: what pods, joining nodes and extension API servers trust, and Secrets under their key."""

from __future__ import annotations

import base64
import json

from tests.scripts.shell import Shell

OLD = "-----BEGIN CERTIFICATE-----\nb2xk\n-----END CERTIFICATE-----\n"
NEW = "-----BEGIN CERTIFICATE-----\nbmV3\n-----END CERTIFICATE-----\n"
VALUES = {"KEYS": "", "ETCD_ENDPOINTS": "https://127.0.0.1:2379", "ENCRYPTS": "key-2"}


def trusting(shell: Shell, text: str) -> None:
    """This master trusts these CAs."""
    folder = shell.root / "etc/kubernetes/pki"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("ca.crt", "front-proxy-ca.crt"):
        (folder / name).write_text(text)


def run(shell: Shell, code: str = "main", *, fails: bool = False, **values: str) -> str:
    return shell.run(code, phase="rotation", values={**VALUES, **values}, fails=fails)


def copies(shell: Shell, *known: str, **fixed: str) -> None:
    """kubectl lists two namespaces, the copies of these, and immutable ones of other data by namespace: uid."""
    spaces = [{"metadata": {"name": name}, "status": {"phase": "Active"}} for name in ("default", "kube-system")]  # fmt: skip
    found: list[dict[str, object]] = [{"metadata": {"namespace": name, "uid": "0"}, "data": {"ca.crt": NEW + OLD}} for name in known]  # fmt: skip
    found += [{"metadata": {"namespace": name, "uid": uid}, "immutable": True} for name, uid in fixed.items()]  # fmt: skip
    for name, items in (("namespaces", spaces), ("configmaps", found)):
        (shell.folder / name).write_text(json.dumps({"items": items}))
    shell.stub(
        "kubectl",
        f'case "$*" in *"get namespaces"*) cat {shell.folder}/namespaces ;; *"get configmaps"*) cat {shell.folder}/configmaps ;; '
        f"*delete*) cat >>{shell.folder}/deleted ;; esac",
    )


def test_pods_know_a_ca_when_every_namespace_has_it(shell: Shell) -> None:
    trusting(shell, NEW + OLD)
    copies(shell, "default", "kube-system")
    run(shell, "await_pods")
    copies(shell, "default")
    out = run(shell, "CA_S=0; await_pods", fails=True)
    assert "not yet in kube-system" in out
    trusting(shell, NEW)
    copies(shell, "default", "kube-system")
    run(shell, "CA_S=0; await_pods", fails=True)


def test_a_copy_was_seen_right_once_whatever_is_made_of_it_later(shell: Shell) -> None:
    trusting(shell, NEW + OLD)
    copies(shell, "kube-system")
    code = (
        f"pods_know_the_ca || true; cp {shell.folder}/later {shell.folder}/configmaps; await_pods"
    )
    later = {"items": [{"metadata": {"namespace": "default"}, "data": {"ca.crt": NEW + OLD}}]}
    (shell.folder / "later").write_text(json.dumps(later))
    run(shell, code)


def test_one_namespace_that_keeps_other_cas_holds_up_nobody(shell: Shell) -> None:
    """Whoever may edit objects there can make its copy immutable; it has no data at all here."""
    trusting(shell, NEW + OLD)
    copies(shell, "kube-system", default="1f-2e")
    out = run(shell, "await_pods")
    [asked] = (shell.folder / "deleted").read_text().splitlines()
    assert json.loads(asked)["preconditions"] == {"uid": "1f-2e"}
    assert "WARNING ConfigMap kube-root-ca.crt of namespace default is immutable" in out
    assert "--raw /api/v1/namespaces/default/configmaps/kube-root-ca.crt" in "\n".join(shell.calls)


def test_an_api_that_does_not_answer_knows_nothing(shell: Shell) -> None:
    trusting(shell, NEW)
    shell.stub("kubectl", "exit 1")
    run(shell, "if pods_know_the_ca; then exit 0; else exit 3; fi", fails=True)


CLUSTER_INFO = 'clusters:\n- cluster:\n    certificate-authority-data: {}\n  name: ""\n'


def test_joining_nodes_are_told_of_the_cas_of_this_step(shell: Shell) -> None:
    trusting(shell, NEW + OLD)
    old = CLUSTER_INFO.format(base64.b64encode(OLD.encode()).decode())
    (shell.folder / "info").write_text(old)
    body = f'if [[ $* == *patch* ]]; then printf %s "${{@: -1}}" >{shell.folder}/patch; else cat {shell.folder}/info; fi'
    shell.stub("kubectl", body)
    run(shell, "tell_cluster_info")
    patch = json.loads((shell.folder / "patch").read_text())
    wanted = CLUSTER_INFO.format(base64.b64encode((NEW + OLD).encode()).decode())
    assert patch == {"data": {"kubeconfig": wanted}}
    (shell.folder / "info").write_text(wanted)
    (shell.folder / "patch").unlink()
    run(shell, "tell_cluster_info")
    assert not (shell.folder / "patch").exists()


def test_what_was_dropped_is_taken_from_extension_api_servers(shell: Shell) -> None:
    trusting(shell, NEW)
    (shell.folder / "has").write_text(OLD + NEW)
    body = (
        f'if [[ $* == *patch* ]]; then jq -er \'.data["client-ca-file"]\' <<<"${{@: -1}}" >{shell.folder}/has; '
        f"else cat {shell.folder}/has; fi"
    )
    shell.stub("kubectl", body)
    said = run(shell, "tell_extension_servers; echo changes=$changes")
    assert "changes=1" in said
    assert (shell.folder / "has").read_text().strip() == NEW.strip()
    assert "changes=0" in run(shell, "tell_extension_servers; echo changes=$changes")


def secrets(shell: Shell, *keys: str, stays: bool = False) -> None:
    """etcd holds Secrets under these keys; a `kubectl replace` writes them with key-2."""
    (shell.folder / "secrets").write_text("".join(f"{key}\n" for key in keys))
    shell.stub(
        "etcdctl",
        f"while read -r key; do printf 'k8s:enc:secretbox:v1:%s:\\xff\\x00\\n' $key; done <{shell.folder}/secrets",
    )
    again = "true" if stays else f"sed -i s/.*/key-2/ {shell.folder}/secrets"
    shell.stub(
        "kubectl",
        f"if [[ $* == *replace* ]]; then {again}; echo 'error: webhook says no'; else echo x; fi",
    )


def test_every_secret_is_written_anew_with_the_key_that_encrypts(shell: Shell) -> None:
    secrets(shell, "key-1", "key-2", "key-1")
    said = run(shell, KEYS="encryption=2,1")
    assert "writing Secrets again with key-2: 2 (round 1)" in said
    assert set((shell.folder / "secrets").read_text().split()) == {"key-2"}
    again = run(shell, KEYS="encryption=2,1")
    assert "writing" not in again
    assert "done, changes=0" in again


def test_a_key_of_another_seed_is_another_key(shell: Shell) -> None:
    secrets(shell, "key-2", "key-2-seed-2", "key-2-seed-20")
    said = run(shell, "encrypt_again || true", KEYS="seed=2,1", ENCRYPTS="key-2-seed-2", fails=True)
    assert "writing Secrets again with key-2-seed-2: 2 (round 1)" in said
    # Where nothing is encrypted there is nothing to write.
    assert "writing" not in run(shell, KEYS="seed=2,1", ENCRYPTS="")


def test_a_secret_that_stays_under_the_old_key_stops_the_step(shell: Shell) -> None:
    secrets(shell, "key-1", stays=True)
    said = run(shell, KEYS="encryption=2,1", fails=True)
    assert "1 Secrets are not encrypted with key-2: error: webhook says no" in said


def test_key_10_is_not_key_1(shell: Shell) -> None:
    secrets(shell, "key-10")
    assert "1 (round 1)" in run(
        shell, "encrypt_again || true", KEYS="encryption=1,10", ENCRYPTS="key-1", fails=True
    )


def test_what_was_not_rotated_is_not_looked_at(shell: Shell) -> None:
    shell.stub("kubectl")
    shell.stub("etcdctl")
    run(shell, KEYS="etcd=2,1 service-account=2,1")
    assert shell.calls == []
