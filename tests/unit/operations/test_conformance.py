"""Upstream's tests: which run, on whose cluster, and how their end is told; stand-ins play kubectl and ginkgo."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from operations.conformance import cluster, images, report
from operations.conformance.__main__ import main
from operations.conformance.report import Choice
from operations.conformance.suite import LOG, REPORT, Suite
from operations.engine.engine import StackError
from operations.engine.kubectl import Kubectl
from tests.unit.render.examples import lab

REGISTRY = "registry.k8s.io/e2e-test-images"
NOT_FOUND = f'failed to pull image "{REGISTRY}/nautilus:1.8": failed to resolve reference "{REGISTRY}/nautilus:1.8": not found'


def program(file: Path, text: str) -> Path:
    """An executable of these lines of Python."""
    file.write_text(f"#!{sys.executable}\n{text}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def kubectl(tmp_path: Path) -> Callable[[dict[str, object]], Kubectl]:
    """A kubectl that gives the answer whose key is among its words, and notes what it was asked."""

    def make(answers: dict[str, object]) -> Kubectl:
        text = (
            "import json, pathlib, sys\n"
            f"answers = json.loads({json.dumps(json.dumps(answers))})\n"
            "words = ' '.join(sys.argv[1:])\n"
            f"with open({str(tmp_path / 'asked')!r}, 'a') as asked: asked.write(words + '\\n')\n"
            "print(next((json.dumps(a) for key, a in answers.items() if key in words), ''))"
        )
        return Kubectl(program=program(tmp_path / "kubectl", text), kubeconfig=tmp_path / "config")

    return make


def node(name: str, *, ready: bool = True) -> dict[str, object]:
    status = {"conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}]}
    return {"metadata": {"name": name}, "status": status}


def answers(*nodes: dict[str, object], version: str = "v1.36.3") -> dict[str, object]:
    pods = [{"metadata": {"namespace": space}} for space in ("kube-system", "shop", "default")]
    return {
        "/version": {"gitVersion": version},
        "get nodes": {"items": list(nodes)},
        "get pods": {"items": pods},
    }


def test_a_cluster_that_is_the_stacks_is_told_with_what_is_at_risk(
    kubectl: Callable[[dict[str, object]], Kubectl],
) -> None:
    plan = lab(1, 1)
    found = cluster.see(kubectl(answers(node("master-1"), node("worker-1", ready=False))), plan)
    assert found.unready == ("worker-1",)
    assert found.foreign == ("shop",)
    assert "pods of somebody run in: shop" in found.risk


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(
            answers(node("master-1"), node("other-7")),
            "nodes that the stack does not: other-7",
            id="another cluster",
        ),
        pytest.param(
            answers(node("master-1"), version="v1.35.4"),
            "the API server is v1.35.4, and the config says v1.36.3",
            id="another version",
        ),
        pytest.param(
            answers(node("master-1", ready=False)), "no node is Ready", id="nothing is Ready"
        ),
    ],
)
def test_another_cluster_is_refused(
    kubectl: Callable[[dict[str, object]], Kubectl], given: dict[str, object], words: str
) -> None:
    with pytest.raises(StackError, match=words):
        cluster.see(kubectl(given), lab(1, 1))


def test_a_kubectl_that_fails_is_told_with_its_last_words(tmp_path: Path) -> None:
    broken = program(tmp_path / "kubectl", "import sys; sys.exit('no route to host')")
    with pytest.raises(StackError, match="no route to host"):
        Kubectl(program=broken, kubeconfig=tmp_path).items("nodes")


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        ("[sig-network] DNS should provide DNS for services [Conformance]", "glibc-dns-testing"),
        (
            "[sig-cli] Kubectl client Update Demo should scale a replication controller",
            "nautilus",
        ),
        ("[sig-api-machinery] Garbage collector should orphan pods [Conformance]", "nginx"),
        (
            "[sig-api-machinery] Aggregator Should be able to support the 1.17 Sample API Server",
            "etcd",
        ),
    ],
)
def test_a_spec_is_left_out_where_its_image_cannot_be_pulled_and_there_alone(
    spec: str, image: str
) -> None:
    needs = images.read()
    ref = f"{REGISTRY}/{image}:1"
    assert set(needs.of([ref, f"{REGISTRY}/kitten:1"], [spec])) == {ref}
    assert needs.lacking(spec, {ref: "not found"}) == f"image {ref} cannot be pulled: not found"
    assert needs.lacking(spec, {f"{REGISTRY}/kitten:1": "not found"}) == ""
    assert needs.lacking("[sig-apps] Job should run a job", {ref: "not found"}) == ""


def test_images_of_most_specs_are_asked_for_always_and_private_ones_never() -> None:
    refs = [
        f"{REGISTRY}/agnhost:2.63.0",
        "gcr.io/k8s-authenticated-test/agnhost:2.6",
        f"{REGISTRY}/busybox:1.36.1-1",
    ]
    assert images.read().of(refs, []) == {refs[0]: "agnhost"}


def container(number: int, **state: object) -> dict[str, object]:
    return {"name": f"image-{number}", "imageID": "", "state": state}


def test_a_node_is_asked_which_images_it_can_pull(
    kubectl: Callable[[dict[str, object]], Kubectl],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(images, "_PATIENCE_S", -1)
    refs = [f"{REGISTRY}/{name}" for name in ("agnhost:2.63.0", "nautilus:1.8", "nginx:1.15-4")]
    statuses = [
        container(0, terminated={"reason": "StartError"}),
        container(1, waiting={"reason": "ErrImagePull", "message": NOT_FOUND}),
        container(2, waiting={"reason": "RunContainerError"}),
    ]
    asked = kubectl({"get pod": {"status": {"containerStatuses": statuses}}})
    assert images.missing(asked, refs) == {refs[1]: "not found"}
    lines = (tmp_path / "asked").read_text().splitlines()
    assert "delete namespace kube-ha-conformance --wait=false" in lines[-1]


def test_a_first_refusal_and_an_image_that_is_still_coming_decide_nothing() -> None:
    statuses = [
        container(0, waiting={"reason": "ErrImagePull", "message": NOT_FOUND}),
        container(1, waiting={"reason": "ContainerCreating"}),
    ]
    found = images._judged({"containerStatuses": statuses}, ["a", "b"], final=False)
    assert found == {"a": None, "b": None}


CHOICE = Choice(focus=r"\[Conformance\]", skip="slow")


def spec(text: str, state: str, message: str = "", *, kind: str = "It") -> dict[str, object]:
    return {
        "ContainerHierarchyTexts": ["[sig-apps] Job"],
        "LeafNodeText": text,
        "LeafNodeType": kind,
        "State": state,
        "RunTime": 2_500_000_000,
        "CapturedGinkgoWriterOutput": "events\x1b[0m",
        **({"Failure": {"Message": message}} if message else {}),
    }


KNOWN = spec("by address [Conformance]", "failed", "1 wrong result")
REPORTS = [
    spec("runs [Conformance]", "passed"),
    spec("counts [Conformance]", "failed", "expected 2\n  but got 1"),
    spec("hangs [Conformance]", "timedout"),
    spec("updates nautilus [Conformance]", "skipped"),
    spec("needs three nodes [Conformance]", "skipped", "not enough nodes"),
    spec("comes last [Conformance]", "skipped"),
    KNOWN,
    spec("is slow [Conformance]", "skipped"),
    spec("is no conformance", "skipped"),
    spec("", "passed", kind="SynchronizedBeforeSuite"),
]


def read(tmp_path: Path, reports: list[dict[str, object]]) -> list[report.Spec]:
    file = tmp_path / REPORT
    file.write_text(json.dumps([{"SpecReports": reports}]))
    return report.read(
        file,
        CHOICE,
        lacking=lambda name: "no image" if "nautilus" in name else "",
        known=lambda name: "as documented" if "by address" in name else "",
    )


def test_every_wanted_spec_is_passed_failed_or_not_run_with_a_reason(tmp_path: Path) -> None:
    found = {one.name.removeprefix("[sig-apps] Job "): one for one in read(tmp_path, REPORTS)}
    assert {name: one.result for name, one in found.items()} == {
        "runs [Conformance]": "passed",
        "counts [Conformance]": "failed",
        "hangs [Conformance]": "failed",
        "updates nautilus [Conformance]": "not run",
        "needs three nodes [Conformance]": "not run",
        "comes last [Conformance]": "not run",
        "by address [Conformance]": "known",
    }
    assert found["updates nautilus [Conformance]"].words == "no image"
    assert found["needs three nodes [Conformance]"].words == "not enough nodes"
    assert found["comes last [Conformance]"].words == "the run ended before it"
    assert found["hangs [Conformance]"].words == "timedout"


def test_the_screen_names_what_failed_and_why_the_rest_did_not_run(tmp_path: Path) -> None:
    text = "\n".join(report.screen(read(tmp_path, REPORTS), 1, seconds=600))
    assert "passed   1\nfailed   2\n" in text
    assert "[sig-apps] Job counts [Conformance]\n    expected 2 but got 1" in text
    assert "not run  3\n" in text
    assert "known    1, " in text
    assert "  as documented: 1\n    [sig-apps] Job by address [Conformance]" in text
    assert "  no image: 1\n    [sig-apps] Job updates nautilus [Conformance]" in text
    assert text.endswith("took 10 min")


def test_junit_says_the_same_and_can_be_parsed(tmp_path: Path) -> None:
    report.junit(read(tmp_path, REPORTS), tmp_path / "junit.xml", "kubernetes-e2e")
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 (made just now)
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("7", "2", "4")
    reasons = {one.get("message") for one in root.iter("skipped")}
    assert reasons == {
        *("no image", "not enough nodes", "the run ended before it", "as documented"),
    }
    assert root.find("testcase/failure") is not None


@pytest.mark.parametrize(
    ("reports", "code", "verdict"),
    [
        pytest.param(REPORTS[:1], 0, "pass", id="what ran passed"),
        pytest.param([REPORTS[0], REPORTS[3]], 0, "pass", id="one was left out"),
        pytest.param([REPORTS[3]], 0, "no pass", id="nothing ran"),
        pytest.param(REPORTS[:1], 1, "no pass", id="ginkgo is not content"),
        pytest.param(REPORTS[:2], 0, "no pass", id="one failed"),
        pytest.param([REPORTS[0], KNOWN], 1, "pass", id="one failed as documented"),
        pytest.param([KNOWN], 1, "no pass", id="nothing passed"),
        pytest.param([*REPORTS[:2], KNOWN], 1, "no pass", id="another one failed"),
        pytest.param([REPORTS[0], KNOWN, REPORTS[5]], 1, "no pass", id="it ended early"),
        pytest.param(
            [REPORTS[0], spec("", "failed", "no nodes", kind="SynchronizedBeforeSuite")],
            0,
            "no pass",
            id="set-up failed",
        ),
    ],
)
def test_only_a_run_with_passes_and_no_failure_is_a_pass(
    tmp_path: Path, reports: list[dict[str, object]], code: int, verdict: str
) -> None:
    assert report.good(read(tmp_path, reports), code) is (verdict == "pass")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """A ginkgo that writes its words down, and a test program with two specs."""
    listed = "print('The following:\\n    a.go:1: [sig-apps] Job runs [Conformance]\\n    b/c.go:22: other')"
    ginkgo = (
        "import json, os, sys, time\n"
        "print(json.dumps([sys.argv[1:], os.environ.get('KUBECONFIG')]), flush=True)\n"
        "time.sleep(60 if '--focus=hang' in sys.argv else 0)"
    )
    return Suite(
        program=program(tmp_path / "e2e.test", listed),
        ginkgo=program(tmp_path / "ginkgo", ginkgo),
        kubectl=tmp_path / "kubectl",
        kubeconfig=tmp_path / "config",
        folder=tmp_path,
    )


def test_names_of_specs_are_those_that_the_program_lists(suite: Suite) -> None:
    assert suite.specs() == ["[sig-apps] Job runs [Conformance]", "other"]


def test_the_run_gets_the_kubeconfig_of_the_stack_and_no_other(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/home/me/production")
    code = suite.run(focus="x y", skip=["a", "b|c"], at_once=3, unready=1, limit_s=60)
    words, environment = json.loads((suite.folder / LOG).read_text())
    assert (code, environment) == (0, None)
    assert f"--kubeconfig={suite.kubeconfig}" in words[words.index("--") :]
    assert "--allowed-not-ready-nodes=1" in words
    assert {"--procs=3", "--focus=x y", "--skip=a", "--skip=b|c", "--timeout=60s"} <= {*words}


def test_an_interrupted_run_interrupts_its_specs(suite: Suite, tmp_path: Path) -> None:
    text = (
        "from pathlib import Path\n"
        "from operations.conformance.suite import Suite\n"
        f"p = Path({str(tmp_path)!r})\n"
        "suite = Suite(program=p / 'e2e.test', ginkgo=p / 'ginkgo', kubectl=p, kubeconfig=p, folder=p)\n"
        "suite.run(focus='hang', skip=[], at_once=1, unready=0, limit_s=60)"
    )
    with subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.DEVNULL) as outer:
        end = time.monotonic() + 20
        log = tmp_path / LOG
        while time.monotonic() < end and not (log.exists() and log.read_text()):
            time.sleep(0.05)
        outer.send_signal(signal.SIGINT)
        assert outer.wait(20) != 0
    assert "KeyboardInterrupt" in log.read_text()


def test_an_expression_that_is_none_is_refused_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["there-is-none", "--focus", "["]) == 2
    assert "FOCUS: '[' is not a regular expression" in capsys.readouterr().err
