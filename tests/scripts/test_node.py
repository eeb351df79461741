"""Mirrors of registries on a node: written, taken away with the config, and those of others left alone."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from tests.scripts.shell import Shell

CODE = "CERTS=$PWD/certs.d; registries; finish"


def values(hosts: Mapping[str, str]) -> dict[str, str]:
    lines = (f"{host}\t{base64.b64encode(text.encode()).decode()}" for host, text in hosts.items())
    return {"REGISTRY_HOSTS": "\n".join(lines)}


def run(shell: Shell, hosts: Mapping[str, str]) -> str:
    return shell.run(CODE, phase="node", values=values(hosts))


def there(shell: Shell) -> dict[str, str]:
    found = (shell.folder / "certs.d").glob("*/hosts.toml")
    return {path.parent.name: path.read_text() for path in found}


def put(shell: Shell, host: str, text: str) -> None:
    file = shell.folder / "certs.d" / host / "hosts.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


HUB = {"docker.io": 'server = "a"', "quay.io:443": 'server = "b"'}


def test_mirrors_are_written_once(shell: Shell) -> None:
    run(shell, HUB)
    assert there(shell) == {host: f"{text}\n" for host, text in HUB.items()}
    assert run(shell, HUB).splitlines()[-1].endswith("done, changes=0")


def test_without_mirrors_a_second_run_changes_nothing(shell: Shell) -> None:
    run(shell, {})
    assert run(shell, {}).splitlines()[-1].endswith("done, changes=0")


def test_mirrors_that_left_the_config_are_taken_away(shell: Shell) -> None:
    run(shell, HUB)
    out = run(shell, {"docker.io": "new"})
    assert there(shell) == {"docker.io": "new\n"}
    assert "removed" in out
    assert "quay.io:443/hosts.toml" in out
    assert run(shell, {"docker.io": "new"}).splitlines()[-1].endswith("done, changes=0")


def test_mirrors_that_the_machine_has_of_its_own_stay(shell: Shell) -> None:
    put(shell, "registry.example.com", "mine")
    run(shell, HUB)
    run(shell, {})
    assert there(shell) == {"registry.example.com": "mine"}


def test_mirrors_from_before_there_was_a_list_are_taken_away(shell: Shell) -> None:
    put(shell, "ghcr.io", "old")
    put(shell, "registry.k8s.io", "old")
    run(shell, {"ghcr.io": "new"})
    assert there(shell) == {"ghcr.io": "new\n"}


def test_mirrors_that_a_killed_run_wrote_are_known_to_the_next(shell: Shell) -> None:
    killed = f"put() {{ [[ $2 == *hosts.toml ]] || {{ cat >$2; return; }}; mkdir -p ${{2%/*}}; cat >$2; kill -9 $$; }}; {CODE}"
    shell.run(killed, phase="node", values=values(HUB), fails=True)
    assert list(there(shell)) == ["docker.io"]
    run(shell, {})
    assert there(shell) == {}
