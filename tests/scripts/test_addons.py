"""What `make drift` asks of add-ons on a master: kubectl's own comparison, told by object."""

from __future__ import annotations

import pytest

from tests.scripts.shell import Shell

# Two folders as kubectl makes them, compared by what it is told to compare with.
KUBECTL = """
printf '%s ' "$@" >>"$HERE/asked"; cat >>"$HERE/given"
mkdir -p "$HERE/LIVE-11" "$HERE/MERGED-22"
cd "$HERE"
for file in LIVE-11 MERGED-22; do
  echo same >"$file/v1.ConfigMap.kube-system.same"
  echo "in $file" >"$file/apps.v1.Deployment.kube-system.web"
  printf 'diff of\\n@@ a b\\n- %s\\n' "$file" >"$file/rbac.authorization.k8s.io.v1.ClusterRole..system:web"
done
: >LIVE-11/v1.Service.default.gone
echo there >MERGED-22/v1.Service.default.gone
$KUBECTL_EXTERNAL_DIFF "$HERE/LIVE-11" "$HERE/MERGED-22"
"""


@pytest.fixture
def master(shell: Shell) -> Shell:
    shell.stub("kubectl", KUBECTL.replace("$HERE", str(shell.folder)))
    return shell


def test_each_object_that_differs_is_a_line(master: Shell) -> None:
    out = master.run("main", phase="addons", values={"OWN": "kind: A", "CONFIGURED": "kind: B"})
    lines = [line for line in out.splitlines() if "\t" in line or line == "end"]
    each = [
        "differs\tapps.v1.Deployment.kube-system.web",
        "differs\trbac.authorization.k8s.io.v1.ClusterRole..system:web",
        "missing\tv1.Service.default.gone",
    ]
    assert lines == [*each, *each, "end"]
    asked = (master.folder / "asked").read_text()
    assert asked.count("diff --server-side --force-conflicts") == 2
    assert asked.index("--field-manager kube-ha ") < asked.index("--field-manager kube-ha-addons ")
    assert (master.folder / "given").read_text() == "kind: A\nkind: B\n"


def test_no_add_on_of_the_config_is_no_question(master: Shell) -> None:
    master.run("main", phase="addons", values={"OWN": "kind: A", "CONFIGURED": ""})
    assert "kube-ha-addons" not in (master.folder / "asked").read_text()


def test_what_cannot_be_compared_is_told_and_the_rest_is_compared(shell: Shell) -> None:
    shell.stub("kubectl", 'echo "error: the server was unavailable" >&2; exit 2')
    out = shell.run("main", phase="addons", values={"OWN": "kind: A", "CONFIGURED": "kind: B"})
    assert out.splitlines().count("trouble\terror: the server was unavailable") == 2
    assert out.splitlines()[-1] == "end"
