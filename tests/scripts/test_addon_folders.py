"""What add-ons of the catalogue keep on a machine, and that it goes with them."""

from __future__ import annotations

from tests.scripts.shell import Shell

CODE = "drop_addon_folders; finish"


def dropped(shell: Shell, *wanted: str) -> str:
    values = {"ADDON_FOLDERS": " ".join(wanted)} if wanted else {}
    return shell.run(CODE, phase="node", values={**values, "ROOT": str(shell.root)})


def keep(shell: Shell, *names: str) -> None:
    for name in names:
        (shell.root / "var/lib/kube-ha-addons" / name / "queue").mkdir(parents=True)


def test_a_folder_goes_with_its_add_on_alone(shell: Shell) -> None:
    keep(shell, "logs", "log", "others")
    folder = shell.root / "var/lib/kube-ha-addons"
    assert "changes=1" in dropped(shell, "others", "logs")
    assert sorted(path.name for path in folder.iterdir()) == ["logs", "others"]
    assert "changes=0" in dropped(shell, "others", "logs")


def test_where_there_is_none_nothing_is_left(shell: Shell) -> None:
    assert "changes=0" in dropped(shell)
    keep(shell, "logs")
    told = dropped(shell)
    assert "no add-on of this cluster has it" in told
    assert not (shell.root / "var/lib/kube-ha-addons").exists()
