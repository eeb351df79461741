"""The ingress tier on one machine: made, changed, refused, taken away."""

from __future__ import annotations

import pytest

from tests.scripts.shell import Shell

VALUES = {
    "INGRESS_CFG": "frontend https",
    "INGRESS_UNIT": "[Service]",
    "PEMS": "own.pem given-1.pem",
    "CERTIFICATES": "0",
}
UP = (
    "if [[ $1 == is-active && $2 == kube-ha-ingress.service && ! -e up ]]; "
    "then touch up; exit 1; fi"
)


@pytest.fixture
def master(shell: Shell) -> Shell:
    """Certificates are there, and one of a host that has left the config."""
    folder = shell.root / "etc/kube-ha/ingress"
    folder.mkdir(parents=True)
    for name in ("own", "given-1", "given-2"):
        (folder / f"{name}.pem").write_text(name)
    shell.stub("haproxy")
    shell.stub("systemctl", UP)
    return shell


def run(shell: Shell, *, fails: bool = False, **values: str) -> str:
    return shell.run("main", phase="ingress", values={**VALUES, **values}, fails=fails)


def there(shell: Shell) -> set[str]:
    return {file.name for file in (shell.root / "etc/kube-ha/ingress").iterdir()}


def test_it_is_made_once_and_shows_no_certificate_that_left(master: Shell) -> None:
    run(master)
    assert there(master) == {"own.pem", "given-1.pem"}
    assert (master.root / "etc/haproxy/ingress.cfg").read_text() == "frontend https\n"
    assert run(master).splitlines()[-1].endswith("done, changes=0")


def test_a_new_certificate_is_a_reload(master: Shell) -> None:
    run(master)
    master.forget()
    (master.root / "etc/kube-ha/ingress/own.pem").write_text("renewed")
    run(master, CERTIFICATES="1")
    assert "systemctl reload kube-ha-ingress.service" in master.calls
    assert not [call for call in master.calls if "restart" in call]


def test_what_haproxy_does_not_take_replaces_nothing(master: Shell) -> None:
    run(master)
    master.forget()
    master.stub("haproxy", "echo 'unable to load certificate'; exit 1")
    out = run(master, fails=True, INGRESS_CFG="rubbish")
    assert "HAProxy refuses its new configuration, the running one stays: unable to load" in out
    assert (master.root / "etc/haproxy/ingress.cfg").read_text() == "frontend https\n"
    assert not [call for call in master.calls if "reload" in call]


def test_a_certificate_that_is_missing_is_named(master: Shell) -> None:
    (master.root / "etc/kube-ha/ingress/own.pem").unlink()
    assert "etc/kube-ha/ingress/own.pem is missing" in run(master, fails=True)


def test_a_config_without_it_takes_it_away(master: Shell) -> None:
    run(master)
    unit = master.root / "etc/systemd/system/kube-ha-ingress.service"
    assert unit.exists()
    out = master.run("without_ingress", phase="node", values={"INGRESS": ""})
    assert "the ingress tier stopped here" in out
    assert "systemctl disable -q --now kube-ha-ingress" in master.calls
    assert not unit.exists()
    assert not (master.root / "etc/kube-ha/ingress").exists()
    master.forget()
    master.run("without_ingress", phase="node", values={"INGRESS": ""})
    assert master.calls == []
