"""A kubelet asks for logins at registries: what it is told, and what its journal is told where there are none."""

from __future__ import annotations

import base64
import json
import os
import shlex
import subprocess

import pytest

from stacks.checks import addon_secrets
from tests.scripts.shell import SCRIPTS, Shell

FILE = "etc/kube-ha/credential-providers.yaml"
PROGRAM = "usr/local/lib/kube-ha/credential-providers/kube-ha-registry-login"
REQUEST = json.dumps(
    {
        "kind": "CredentialProviderRequest",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "image": "registry.example.com/team/app:1",
    }
)
SECRET = "https://127.0.0.1:3446/api/v1/namespaces/kube-system/secrets/registry-login"


def secret(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return json.dumps({"data": {".dockerconfigjson": base64.b64encode(text.encode()).decode()}})


def asked(
    shell: Shell, answer: str, status: int = 200, *, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """As the kubelet asks. The script sets PATH, so its curl comes by a function."""
    body = shell.folder / "answer"
    body.write_text(f"{answer}\n{status:03d}")
    log = shell.folder / "calls"
    curl = f'curl() {{ printf "%s\\n" "curl $*" >>{shlex.quote(str(log))}; cat {shlex.quote(str(body))}; return {code}; }}'
    done = subprocess.run(
        ["bash", "-c", f"{curl}; export -f curl; exec bash {SCRIPTS}/registry-login.sh"],
        input=REQUEST,
        capture_output=True,
        text=True,
        env=dict(os.environ),
        timeout=60,
        check=False,
    )
    return done


def test_the_kubelet_is_told_each_login_by_its_registry(shell: Shell) -> None:
    auths = {
        "https://registry.example.com/v2/": {"auth": base64.b64encode(b"ops:a:b c\"'$x").decode()},
        "192.0.2.7:5000": {"username": "robot$ci", "password": "pässword"},
        "https://index.docker.io/v1/": {
            "username": "me",
            "password": "x",
            "email": "me@example.com",
        },
        "harbor.example.com/team": {"username": "team", "password": "y"},
        "by-a-helper.example.com": {},
    }
    done = asked(shell, secret({"auths": auths, "HttpHeaders": {}}))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said = json.loads(done.stdout)
    assert said == {
        "kind": "CredentialProviderResponse",
        "apiVersion": "credentialprovider.kubelet.k8s.io/v1",
        "cacheKeyType": "Global",
        "cacheDuration": "10m0s",
        "auth": {
            "registry.example.com": {"username": "ops", "password": "a:b c\"'$x"},
            "192.0.2.7:5000": {"username": "robot$ci", "password": "pässword"},
            "docker.io": {"username": "me", "password": "x"},
            "harbor.example.com/team": {"username": "team", "password": "y"},
        },
    }
    (call,) = shell.calls
    assert call.endswith(SECRET)
    assert "--cert /var/lib/kubelet/pki/kubelet-client-current.pem" in call
    assert "--cacert /etc/kube-ha/ca.crt" in call
    assert "ops" not in call


def test_it_reads_a_registry_by_the_name_that_the_check_of_an_update_reads(shell: Shell) -> None:
    """Or an update would let pass what no kubelet finds, and the other way about."""
    login = {"username": "ops", "password": "x"}
    names = (
        *(
            "a.example.com",
            "http://b.example.com",
            "https://c.example.com:5000/v2",
            "d.example.com/v1/",
        ),
        *(
            "https://index.docker.io/v1/",
            "docker.io",
            "e.example.com/team/",
            "f.example.com/v3",
            "g/v2/x",
        ),
    )
    for name in names:
        done = asked(shell, secret({"auths": {name: login}}))
        assert [*json.loads(done.stdout)["auth"]] == [addon_secrets._host(name)]


@pytest.mark.parametrize(
    ("answer", "status", "code", "said"),
    [
        ('{"message":"secrets \\"registry-login\\" not found"}', 404, 0, 'HTTP 404 {"message":"secrets \\"registry-login\\" not found"}'),
        ("curl: (7) Failed to connect to 127.0.0.1 port 3446\x07", 0, 7, "HTTP 000 curl: (7) Failed to connect to 127.0.0.1 port 3446"),
        (secret("hunter2"), 200, 0, "holds no login that can be read"),
        (secret({"auths": "hunter2"}), 200, 0, "holds no login that can be read"),
        (json.dumps({"data": {"else": "aHVudGVyMg=="}}), 200, 0, "holds no login that can be read"),
        ("hunter2", 200, 0, "holds no login that can be read"),
    ],
)  # fmt: skip
def test_its_journal_is_told_why_there_is_none_and_no_value(
    shell: Shell, answer: str, status: int, code: int, said: str
) -> None:
    done = asked(shell, answer, status, code=code)
    assert done.returncode == 1
    assert done.stdout == ""
    assert said in done.stderr
    assert "hunter2" not in done.stderr
    assert done.stderr.startswith("registry-login: Secret kube-system/registry-login ")


def test_the_files_are_there_where_it_is_wanted_and_count_for_a_restart(shell: Shell) -> None:
    values = {"CREDENTIAL_PROVIDERS": '{"providers":[]}'}
    code = "registry_login; echo changes=$changes; kubelet_files"
    assert "changes=0" in shell.run(code, phase="node")
    told = shell.run(code, phase="node", values=values)
    assert "changes=2" in told
    assert str(shell.root / FILE) in told.splitlines()
    assert "changes=0" in shell.run(code, phase="node", values=values)
    assert (shell.root / FILE).read_text() == '{"providers":[]}\n'
    assert os.access(shell.root / PROGRAM, os.X_OK)
    told = shell.run(code, phase="node")
    assert "changes=1" in told
    assert str(shell.root / FILE) not in told
    assert not (shell.root / PROGRAM).parent.exists()
