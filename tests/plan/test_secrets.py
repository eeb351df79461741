"""Private keys, tokens and the encryption key: in Pulumi secrets, on stdin and nowhere else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator

import pytest

from tests.plan.providers import COMMAND, COPY, LOCAL, STASH
from tests.plan.recording import RunError
from tests.plan.registration import Resource, Run
from tests.plan.settled import Stacks
from tests.unit.configs import adopted, aws, edited, gcp, hcloud, lab, with_store
from toolchain.values import Properties, Secret, Value, plain

# Where a secret may stand: (type of resource, input or output). The PKI's own resources hold keys.
PLACES = {
    *((COMMAND, key) for key in ("stdin", "connection", "stdout", "stderr")),
    (COPY, "connection"),
    (LOCAL, "stdin"),
    # cloud-init gets the host key from there.
    ("gcp:compute/instance:Instance", "metadata"),
    ("aws:ec2/instance:Instance", "userData"),
    ("hcloud:index/server:Server", "userData"),
}


@pytest.fixture(scope="module", params=["lab", "adopted", "gcp", "aws", "hcloud"])
def run(
    request: pytest.FixtureRequest, stacks: Stacks, tmp_path_factory: pytest.TempPathFactory
) -> Run:
    if request.param == "lab":
        return stacks.settled(lab())[1]
    if made := {"gcp": gcp, "aws": aws, "hcloud": hcloud}.get(request.param):
        return stacks.settled(made())[1]
    key = tmp_path_factory.mktemp("keys") / "id"
    key.write_text(
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{'k' * 70}\n-----END OPENSSH PRIVATE KEY-----\n"
    )
    key.chmod(0o600)
    raw = adopted()
    ssh = {"machines.ssh": {"privateKeyFile": str(key)}}
    return stacks.settled(edited(raw, ssh))[1]


def words(value: Value) -> Iterator[str]:
    """Every text in a value that is not marked secret."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from words(item)
        case dict():
            for item in value.values():
                yield from words(item)


def telling(text: str) -> Iterator[str]:
    """Of every private key in a text a line or more that holds nothing of the public half."""
    pem = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----\n(.*?)\n-----END", re.DOTALL)
    for kind, body in pem.findall(text):
        lines = body.splitlines()
        if kind == "RSA ":
            yield from lines[len(lines) // 2 : -1]  # behind the modulus
        elif kind == "OPENSSH ":
            yield body  # the public half stands before and within
        else:
            yield lines[0]  # SEC 1 and PKCS 8: the private half comes first


def secrets_of(run: Run) -> set[str]:
    """Lines of all private keys, the join token, the encryption key, host keys."""
    found: set[str] = set()
    for resource in run.custom:
        for properties in (resource.inputs, resource.outputs):
            text = json.dumps({key: plain(value) for key, value in properties.items()})
            found.update(telling(text.replace("\\n", "\n")))
        stdin = resource.text("stdin")
        found.update(re.findall(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b", stdin))
        found.update(re.findall(r"secret: ['\"]*([A-Za-z0-9+/]{43}=)", stdin))
    return found


def shown(resource: Resource) -> str:
    """Everything of a resource that state, preview and log hold in plain text."""
    return "\n".join([resource.name, *words(dict(resource.inputs)), *words(dict(resource.outputs))])


def test_secrets_are_found_at_all(run: Run) -> None:
    found = secrets_of(run)
    assert any(re.fullmatch(r"[a-z0-9]{6}\.[a-z0-9]{16}", secret) for secret in found)
    assert any(secret.endswith("=") and len(secret) == 44 for secret in found)
    assert len(found) > 60


def test_no_secret_stands_anywhere_in_clear(run: Run) -> None:
    found = secrets_of(run)
    for resource in run.custom:
        text = shown(resource)
        assert not [secret for secret in found if secret in text], resource.name


def test_secrets_stand_on_stdin_and_in_connections_only(run: Run) -> None:
    for resource in run.custom:
        if resource.type.startswith("tls:"):
            continue
        for key in _secret_keys(resource.inputs) | _secret_keys(resource.outputs):
            assert (resource.type, key) in PLACES, f"{resource.name}: {key}"


def _secret_keys(properties: Properties) -> set[str]:
    return {key for key, value in properties.items() if isinstance(value, Secret)}


def test_what_commands_print_is_secret(run: Run) -> None:
    for resource in run.commands:
        assert {"stdout", "stderr"} <= resource.secret_outputs, resource.name


def test_what_a_reviewer_may_read_shows_its_diff(run: Run) -> None:
    """Only commands that carry keys or tokens hide their values."""
    hidden = {
        re.sub(r"^[a-z]+-((master|worker)-\d+-)?", "", resource.name)
        for resource in run.commands
        if resource.is_secret("stdin")
    }
    assert hidden == {"etcd-keys", "master-keys", "master-shared-keys", "join", "join-token"}


def test_only_masters_get_what_acts_on_other_nodes(run: Run) -> None:
    for resource in run.commands:
        if "-worker-" in resource.name:
            assert "PRIVATE KEY" not in resource.text("stdin"), resource.name


def test_keys_of_etcd_and_front_proxy_ca_are_sent_nowhere(run: Run) -> None:
    authorities = [r for r in run.custom if re.search(r"-(etcd|front-proxy)-ca-key$", r.name)]
    assert len(authorities) == 2
    for authority in authorities:
        key = set(telling(str(plain(authority.outputs["privateKeyPem"]))))
        for resource in run.commands:
            sent = str(plain(dict(resource.inputs)))
            assert not [line for line in key if line in sent], resource.name


def test_stamps_hold_no_hash_of_secrets(stacks: Stacks) -> None:
    """Two clusters of one config have other keys, and the same triggers but for certificates."""
    stamps = [r for r in stacks.settled(lab())[1].custom if r.type == STASH]
    assert stamps
    assert all(isinstance(plain(stamp.trigger), str) for stamp in stamps)
    assert not [stamp.name for stamp in stamps if isinstance(stamp.trigger, Secret)]


def test_kubeconfig_and_ssh_keys_leave_the_stack_as_secrets(stacks: Stacks) -> None:
    outputs = stacks.settled(lab())[0].outputs
    in_clear = {key for key, value in outputs.items() if not isinstance(value, Secret)}
    assert in_clear == {"endpoint", "loadBalancer", "dnsRecords", "nodes", "readme", "clusterId"}
    assert isinstance(outputs["kubeconfig"], Secret)
    assert isinstance(outputs["ssh"], Secret)


SECRET = "topsecret-of-the-object-store"


def test_the_secret_of_an_object_store_goes_to_etcd_machines_alone(stacks: Stacks) -> None:
    """On stdin of the one command that places keys; neither its text nor a hash stands elsewhere."""
    raw = lab({**with_store(), "backupSecretKey": {"secure": SECRET}})
    engine, run = stacks.settled(raw)
    holding = {r.name for r in run.custom if SECRET in json.dumps(plain(dict(r.inputs)))}
    assert holding == {f"dev-master-{number}-etcd-keys" for number in (1, 2, 3)}
    for resource in run.custom:
        assert SECRET not in shown(resource), resource.name
    assert SECRET not in json.dumps(plain(dict(engine.outputs)))
    # Another secret of the same key: its three commands, and nothing that restarts anything.
    again = engine.up({**raw, "backupSecretKey": {"secure": "another-one"}})
    assert {change.name for change in again.changes} == holding


def test_a_broken_secret_stops_the_program_before_anything_is_registered(stacks: Stacks) -> None:
    raw = lab({**with_store(), "backupSecretKey": {"secure": "two words"}})
    engine = stacks.new(raw)
    with pytest.raises(RunError, match="backupSecretKey") as refused:
        engine.up(raw)
    assert "two words" not in str(refused.value)
    assert not engine.resources


VALUES = {
    "loki": "topsecret-of-loki",
    "registry": '{"auths": {"r.example.com": {"auth": "b3BzOnRvcHNlY3JldA=="}}}',
}
BRINGS = {
    "addons.team": {
        "secrets": {
            "header": {"namespaces": ["kube-system"], "data": {"authorization": "loki"}},
            "pull": {
                "namespaces": ["a", "b"],
                "type": "kubernetes.io/dockerconfigjson",
                "data": {".dockerconfigjson": "registry"},
            },
        }
    }
}


def bringing(**values: str) -> dict[str, object]:
    """An add-on of Secrets alone."""
    hidden = {name: {"secure": text} for name, text in {**VALUES, **values}.items()}
    return lab({**BRINGS, "addonSecrets": hidden})


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_values_of_secrets_of_add_ons_go_to_one_command_alone(stacks: Stacks) -> None:
    """On stdin, in base64; neither a text nor a hash that a guess could be tried on stands elsewhere."""
    engine, run = stacks.settled(bringing())
    texts = [*VALUES.values(), *map(in_base64, VALUES.values())]
    holding = {
        one.name
        for one in run.custom
        for text in texts
        if text in json.dumps(plain(dict(one.inputs)))
    }
    assert holding == {"dev-addon-team"}
    command = run.named("dev-addon-team")
    assert command.is_secret("stdin")
    assert all(in_base64(text) in command.text("stdin") for text in VALUES.values())
    seen = "\n".join(shown(one) for one in run.custom)
    for text in texts:
        assert text not in seen
        assert text not in json.dumps(plain(dict(engine.outputs)))
        for kind in ("md5", "sha1", "sha256", "sha512"):
            assert hashlib.new(kind, text.encode()).hexdigest()[:8] not in seen
    memory = json.loads(str(plain(engine.outputs["applied"])))
    assert all(total not in seen for total in memory["outside"].values())


def test_another_value_runs_its_command_alone_and_one_that_fails_is_taken_back(
    stacks: Stacks,
) -> None:
    engine, _ = stacks.settled(bringing())
    assert engine.up(bringing()).changes == []
    again = {"! dev-addon-team-attempt", "~ dev-addon-team"}
    assert {str(one) for one in engine.fork().up(bringing(loki="other")).changes} == again
    with pytest.raises(RunError):
        engine.up(bringing(loki="other"), failing=["dev-addon-team"])
    assert {str(one) for one in engine.up(bringing()).changes} == again


def test_a_value_that_cannot_be_used_stops_the_program(stacks: Stacks) -> None:
    engine = stacks.new(bringing())
    with pytest.raises(
        RunError, match=r"addonSecrets\.registry: is not a login at registries"
    ) as refused:
        engine.up(bringing(registry="hunter2"))
    assert "hunter2" not in str(refused.value)
    assert not engine.resources
