"""Images come by their digests, whatever a registry says of their tags."""

from __future__ import annotations

import pytest

from tests.scripts.shell import Shell

PAUSE, PROXY = "registry.k8s.io/pause:3.10.2", "registry.k8s.io/kube-proxy:v1.36.3"
OF = {PAUSE: f"sha256:{'a' * 64}", PROXY: f"sha256:{'b' * 64}"}
MOVED = f"sha256:{'f' * 64}"
ARTEFACTS = "\n".join(
    [
        "kubelet http://m/kubelet 00",
        f"image/pause {PAUSE} {OF[PAUSE]}",
        f"image/kube-proxy {PROXY} {OF[PROXY]}",
    ]
)

# The store is a file of lines `reference digest pinned`; what is pulled by a tag would be the moved one.
CTR = f"""
store=$PWD/images; touch $store
put() {{ sed -i "\\|^$1 |d" $store; echo "$1 $2 ${{3:--}}" >>$store; }}
ref=${{@: -1}}
case "$*" in
  *"images ls -q labels"*) awk '$3 == "pinned" {{print $1}}' $store ;;
  *"images ls -q"*) awk '{{print $1}}' $store ;;
  *"images ls name=="*) echo "REF TYPE DIGEST SIZE"; awk -v r="${{ref#name==}}" '$1 == r {{print $1, "type", $2, "1 MiB"}}' $store ;;
  *"images pull"*) [[ $ref == *@* ]] && put "$ref" "${{ref#*@}}" || put "$ref" {MOVED} ;;
  *"images tag --force"*) put "$ref" "${{6#*@}}" ;;
  *"io.cri-containerd.pinned=pinned"*) put "$5" "$(awk -v r="$5" '$1 == r {{print $2}}' $store)" pinned ;;
  *"io.cri-containerd.pinned="*) put "$5" "$(awk -v r="$5" '$1 == r {{print $2}}' $store)" ;;
esac"""


@pytest.fixture
def node(shell: Shell) -> Shell:
    shell.stub("ctr", CTR)
    return shell


def pinned(node: Shell, artefacts: str = ARTEFACTS) -> str:
    return node.run(
        "pinned_images; echo changes=$changes", phase="node", values={"ARTEFACTS": artefacts}
    )


def store(node: Shell) -> dict[str, tuple[str, str]]:
    lines = (node.folder / "images").read_text().splitlines()
    return {ref: (digest, mark) for ref, digest, mark in map(str.split, lines)}


def pulls(node: Shell) -> list[str]:
    return [call.split()[-1] for call in node.calls if " images pull " in call]


def test_every_image_is_pulled_by_its_digest_and_gets_its_tag_here(node: Shell) -> None:
    pinned(node)
    assert pulls(node) == [f"{ref.rpartition(':')[0]}@{digest}" for ref, digest in OF.items()]
    assert {ref: store(node)[ref] for ref in OF} == {ref: (OF[ref], "pinned") for ref in OF}


def test_a_second_run_pulls_nothing(node: Shell) -> None:
    pinned(node)
    node.forget()
    assert pinned(node).splitlines()[-1] == "changes=0"
    assert pulls(node) == []


def test_a_tag_that_leads_elsewhere_is_put_right(node: Shell) -> None:
    (node.folder / "images").write_text(f"{PAUSE} {MOVED} -\n")
    pinned(node)
    assert store(node)[PAUSE] == (OF[PAUSE], "pinned")


def test_the_version_before_may_be_collected(node: Shell) -> None:
    old, other = "registry.k8s.io/kube-proxy:v1.36.1", "registry.k8s.io/kube-proxy-tool:v1"
    rows = [f"{old} {MOVED} pinned", f"{other} {MOVED} pinned"]
    (node.folder / "images").write_text("".join(f"{row}\n" for row in rows))
    pinned(node)
    assert store(node)[old] == (MOVED, "-")
    assert store(node)[other] == (MOVED, "pinned")


def test_without_digests_nothing_is_pulled(node: Shell) -> None:
    assert pinned(node, "kubelet http://m/kubelet 00").splitlines()[-1] == "changes=0"
    assert pulls(node) == []
