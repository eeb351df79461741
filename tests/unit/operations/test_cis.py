"""The controls of the CIS benchmark: each decider on a machine as it should be, and on one that is not."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable, Mapping
from functools import partial

import pytest
import yaml

from operations import cis
from operations.cis import __main__ as command
from operations.cis import facts, page, verdicts
from operations.cis.controls import CONTROLS, PATHS
from operations.cis.facts import KUBELET_CONFIG, Facts, Mode
from operations.observe.answers import UnreadableAnswerError
from stacks.render import apiserver, audit, authentication, etcd, kubeadm, kubelet
from tests.unit.render.examples import lab
from tests.unit.render.kubeadm_documents import arguments, at, init_of

BY_ID = {control.id: control for control in CONTROLS}
DECIDED = {control.id for control in CONTROLS if control.decide is not None}
ROOT = Mode(bits=0o600, owner="root:root")
_ETC, _PKI = "/etc/kubernetes", "/etc/kubernetes/pki"
MANAGER, SCHEDULER = "kube-controller-manager", "kube-scheduler"


def _rendered() -> dict[str, dict[str, str]]:
    """Flags of the product's own rendering, and those that kubeadm adds to them."""
    cluster = init_of(lab())["ClusterConfiguration"]
    api = arguments(at(cluster, "apiServer", "extraArgs"))
    manager = arguments(at(cluster, "controllerManager", "extraArgs"))
    return {
        "kube-apiserver": {
            **api,
            "authorization-mode": "Node,RBAC",
            "client-ca-file": f"{_PKI}/ca.crt",
            "etcd-cafile": f"{_PKI}/etcd/ca.crt",
            "etcd-certfile": f"{_PKI}/apiserver-etcd-client.crt",
            "etcd-keyfile": f"{_PKI}/apiserver-etcd-client.key",
            "kubelet-client-certificate": f"{_PKI}/apiserver-kubelet-client.crt",
            "kubelet-client-key": f"{_PKI}/apiserver-kubelet-client.key",
            "service-account-key-file": f"{_PKI}/sa.pub",
            "tls-cert-file": f"{_PKI}/apiserver.crt",
            "tls-private-key-file": f"{_PKI}/apiserver.key",
        },
        MANAGER: {
            **manager,
            "bind-address": "127.0.0.1",
            "root-ca-file": f"{_PKI}/ca.crt",
            "service-account-private-key-file": f"{_PKI}/sa.key",
            "use-service-account-credentials": "true",
        },
        SCHEDULER: {
            **arguments(at(cluster, "scheduler", "extraArgs")),
            "bind-address": "127.0.0.1",
        },
        "kubelet": {"hostname-override": "master-1"},
        "etcd": dict(etcd.FLAGS),
    }


def good() -> Facts:
    """A master with a member, of a new cluster."""
    plan = lab()
    said = kubelet.configuration(plan)
    # What kubeadm adds.
    said["authentication"] = {
        "anonymous": {"enabled": False},
        "x509": {"clientCAFile": f"{_PKI}/ca.crt"},
    }
    texts = {
        kubeadm.AUDIT_POLICY: audit.policy(plan),
        kubeadm.AUTHENTICATION: authentication.configuration(plan),
        kubeadm.ADMISSION: apiserver.admission_configuration(plan),
    }
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    return Facts(
        flags=_rendered(),
        modes={
            **{f"{_ETC}/manifests/{name}.yaml": ROOT for name in names},
            **{
                f"{_ETC}/{name}.conf": ROOT
                for name in ("admin", "scheduler", "controller-manager", "kubelet")
            },
            "/etc/cni/net.d/10-kube-ha.conflist": ROOT,
            etcd.DATA: Mode(bits=0o700, owner="etcd:etcd"),
            _PKI: Mode(bits=0o755, owner="root:root"),
            f"{_PKI}/ca.crt": Mode(bits=0o644, owner="root:root"),
            f"{_PKI}/ca.key": ROOT,
            f"{_PKI}/etcd/ca.crt": Mode(bits=0o644, owner="root:root"),
            "/etc/kube-ha/etcd/server.key": Mode(bits=0o600, owner="etcd:etcd"),
            "/etc/systemd/system/kubelet.service": ROOT,
            "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf": ROOT,
            KUBELET_CONFIG: ROOT,
            "/var/lib/kubelet/kubeadm-flags.env": ROOT,
        },
        documents={
            KUBELET_CONFIG: said,
            **{path: yaml.safe_load(text) for path, text in texts.items()},
        },
        providers=("secretbox", "identity"),
        proxy_metrics=("127.0.0.1:10249",),
    )


def flagged(program: str, **flags: str | None) -> Facts:
    """The good machine with other flags of one program; None takes one out."""
    found = good()
    named = {name.replace("_", "-"): value for name, value in flags.items()}
    new = {**found.flags[program], **named}
    kept = {name: value for name, value in new.items() if value is not None}
    return dataclasses.replace(found, flags={**found.flags, program: kept})


def filed(path: str, bits: int = 0o600, owner: str = "root:root") -> Facts:
    """The good machine with another mode or owner of one file."""
    found = good()
    return dataclasses.replace(found, modes={**found.modes, path: Mode(bits=bits, owner=owner)})


def written(path: str, **values: object) -> Facts:
    """The good machine with other values in one document."""
    found = good()
    return dataclasses.replace(
        found, documents={**found.documents, path: {**found.documents[path], **values}}
    )


API = "kube-apiserver"
OPEN, STRANGER = 0o644, "nobody:root"
PAIRS = {
    1: f"{_ETC}/manifests/kube-apiserver.yaml",
    3: f"{_ETC}/manifests/kube-controller-manager.yaml",
    5: f"{_ETC}/manifests/kube-scheduler.yaml",
    7: f"{_ETC}/manifests/etcd.yaml",
    9: "/etc/cni/net.d/10-kube-ha.conflist",
    13: f"{_ETC}/admin.conf",
    15: f"{_ETC}/scheduler.conf",
    17: f"{_ETC}/controller-manager.conf",
}
BAD: dict[str, Callable[[], Facts]] = {
    **{f"1.1.{first}": partial(filed, path, OPEN) for first, path in PAIRS.items()},
    **{f"1.1.{first + 1}": partial(filed, path, owner=STRANGER) for first, path in PAIRS.items()},
    "1.1.11": lambda: filed(etcd.DATA, 0o755, "etcd:etcd"),
    "1.1.12": lambda: filed(etcd.DATA, 0o700),
    "1.1.19": lambda: filed(f"{_PKI}/etcd/ca.crt", OPEN, STRANGER),
    "1.1.20": lambda: filed(f"{_PKI}/ca.crt", 0o664),
    "1.1.21": lambda: filed("/etc/kube-ha/etcd/server.key", 0o640, "etcd:etcd"),
    "1.2.1": lambda: flagged(API, authentication_config=None),
    "1.2.2": lambda: flagged(API, token_auth_file="/x"),
    "1.2.3": lambda: flagged(API, enable_admission_plugins="NodeRestriction"),
    "1.2.4": lambda: flagged(API, kubelet_client_key=None),
    "1.2.5": lambda: flagged(API, kubelet_certificate_authority=None),
    "1.2.6": lambda: flagged(API, authorization_mode="Node,RBAC,AlwaysAllow"),
    "1.2.7": lambda: flagged(API, authorization_mode="RBAC"),
    "1.2.8": lambda: flagged(API, authorization_mode="Node"),
    "1.2.10": lambda: flagged(API, enable_admission_plugins="AlwaysAdmit"),
    "1.2.12": lambda: flagged(API, disable_admission_plugins="ServiceAccount"),
    "1.2.13": lambda: flagged(API, disable_admission_plugins="X,NamespaceLifecycle"),
    "1.2.14": lambda: flagged(API, enable_admission_plugins="AlwaysPullImages"),
    "1.2.15": lambda: flagged(API, profiling=None),
    "1.2.16": lambda: flagged(API, audit_log_path=None),
    "1.2.17": lambda: flagged(API, audit_log_maxage="29"),
    "1.2.18": lambda: flagged(API, audit_log_maxbackup="2"),
    "1.2.19": lambda: flagged(API, audit_log_maxsize=None),
    "1.2.20": lambda: flagged(API, request_timeout="24h"),
    "1.2.21": lambda: flagged(API, service_account_lookup="false"),
    "1.2.22": lambda: flagged(API, service_account_key_file=None),
    "1.2.23": lambda: flagged(API, etcd_certfile=None),
    "1.2.24": lambda: flagged(API, tls_cert_file=None),
    "1.2.25": lambda: flagged(API, client_ca_file=None),
    "1.2.26": lambda: flagged(API, etcd_cafile=None),
    "1.2.27": lambda: flagged(API, encryption_provider_config=None),
    "1.2.28": lambda: dataclasses.replace(good(), providers=("identity", "secretbox")),
    "1.2.29": lambda: flagged(API, tls_cipher_suites="TLS_RSA_WITH_AES_128_CBC_SHA"),
    "1.2.30": lambda: flagged(API, service_account_extend_token_expiration=None),
    "1.3.1": lambda: flagged(MANAGER, terminated_pod_gc_threshold="0"),
    "1.3.2": lambda: flagged(MANAGER, profiling="true"),
    "1.3.3": lambda: flagged(MANAGER, use_service_account_credentials=None),
    "1.3.4": lambda: flagged(MANAGER, service_account_private_key_file=None),
    "1.3.5": lambda: flagged(MANAGER, root_ca_file=None),
    "1.3.6": lambda: flagged(MANAGER, feature_gates="RotateKubeletServerCertificate=false"),
    "1.3.7": lambda: flagged(MANAGER, bind_address="0.0.0.0"),  # noqa: S104 - what it warns of
    "1.4.1": lambda: flagged(SCHEDULER, profiling=None),
    "1.4.2": lambda: flagged(SCHEDULER, bind_address=None),
    "2.1": lambda: flagged("etcd", cert_file=None),
    "2.2": lambda: flagged("etcd", client_cert_auth="false"),
    "2.3": lambda: flagged("etcd", auto_tls="true"),
    "2.4": lambda: flagged("etcd", peer_key_file=None),
    "2.5": lambda: flagged("etcd", peer_client_cert_auth=None),
    "2.6": lambda: flagged("etcd", peer_auto_tls="true"),
    "2.7": lambda: flagged("etcd", trusted_ca_file=f"{_PKI}/ca.crt"),
    "3.2.1": lambda: flagged(API, audit_policy_file=None),
    "3.2.2": lambda: written(kubeadm.AUDIT_POLICY, rules=[{"level": "Metadata"}]),
    "4.1.1": lambda: filed("/etc/systemd/system/kubelet.service.d/10-kubeadm.conf", OPEN),
    "4.1.2": lambda: filed("/etc/systemd/system/kubelet.service", owner=STRANGER),
    "4.1.3": lambda: filed("/var/lib/kube-proxy/kubeconfig.conf", OPEN),
    "4.1.4": lambda: filed("/var/lib/kube-proxy/kubeconfig.conf", owner=STRANGER),
    "4.1.5": lambda: filed(f"{_ETC}/kubelet.conf", OPEN),
    "4.1.6": lambda: filed(f"{_ETC}/kubelet.conf", owner=STRANGER),
    "4.1.7": lambda: filed(f"{_PKI}/ca.crt", 0o666),
    "4.1.8": lambda: filed(f"{_PKI}/ca.crt", OPEN, STRANGER),
    "4.1.9": lambda: filed("/var/lib/kubelet/kubeadm-flags.env", OPEN),
    "4.1.10": lambda: filed(KUBELET_CONFIG, owner=STRANGER),
    "4.2.1": lambda: flagged("kubelet", anonymous_auth="true"),
    "4.2.2": lambda: written(KUBELET_CONFIG, authorization={"mode": "AlwaysAllow"}),
    "4.2.3": lambda: written(KUBELET_CONFIG, authentication={}),
    "4.2.4": lambda: written(KUBELET_CONFIG, readOnlyPort=10255),
    "4.2.5": lambda: written(KUBELET_CONFIG, streamingConnectionIdleTimeout="0"),
    "4.2.6": lambda: written(KUBELET_CONFIG, makeIPTablesUtilChains=False),
    "4.2.8": lambda: written(KUBELET_CONFIG, eventRecordQPS=0),
    "4.2.9": lambda: written(KUBELET_CONFIG, serverTLSBootstrap=False),
    "4.2.10": lambda: written(KUBELET_CONFIG, rotateCertificates=False),
    "4.2.11": lambda: written(
        KUBELET_CONFIG, featureGates={"RotateKubeletServerCertificate": False}
    ),
    "4.2.12": lambda: written(KUBELET_CONFIG, tlsCipherSuites=["TLS_RSA_WITH_AES_128_CBC_SHA"]),
    "4.2.13": lambda: written(KUBELET_CONFIG, podPidsLimit=-1),
    "4.2.14": lambda: written(KUBELET_CONFIG, seccompDefault=False),
    "4.3.1": lambda: dataclasses.replace(good(), proxy_metrics=("0.0.0.0:10249",)),
    "5.1.7": lambda: filed(f"{_ETC}/super-admin.conf"),
    "5.2.1": lambda: written(kubeadm.ADMISSION, plugins=[]),
}
# Meant: a machine that has it says so, with the reason.
MEANT = {"1.2.9", "1.2.11", "4.2.7", "5.2.2", "5.2.3", "5.2.4", "5.2.5", "5.5.1"}
MEANT_TOO: dict[str, Callable[[], Facts]] = {"1.2.1": good}


def test_every_control_with_a_decider_has_a_machine_that_fails_it() -> None:
    assert set(BAD) | MEANT | set(MEANT_TOO) == DECIDED


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_machine_that_is_otherwise_fails_it(name: str) -> None:
    result, text = verdicts.of_machine(BY_ID[name], BAD[name]())
    assert result == "FAIL"
    assert text


@pytest.mark.parametrize("name", sorted(DECIDED))
def test_a_machine_of_a_new_cluster_passes_it_or_says_why_not(name: str) -> None:
    result, text = verdicts.of_machine(BY_ID[name], good())
    if name in MEANT | {"1.2.1"}:
        assert result == "BY-DESIGN"
        assert BY_ID[name].reason in text
        assert not BY_ID[name].scored
    else:
        assert result in ("PASS", "N-A"), text


@pytest.mark.parametrize("name", sorted(MEANT_TOO))
def test_what_is_meant_has_its_reason(name: str) -> None:
    result, text = verdicts.of_machine(BY_ID[name], MEANT_TOO[name]())
    assert result == "BY-DESIGN"
    assert BY_ID[name].reason in text


@pytest.mark.parametrize("program", ["kube-apiserver", MANAGER, SCHEDULER, "kubelet", "etcd"])
def test_a_program_that_does_not_run_passes_nothing(program: str) -> None:
    """No flag is not an answer: a machine that is half made must not look good."""
    found = good()
    others = {name: flags for name, flags in found.flags.items() if name != program}
    silent = dataclasses.replace(found, flags=others)
    words = {
        control.id: verdicts.of_machine(control, silent)
        for control in CONTROLS
        if control.decide is not None
    }
    gone = {name for name, (_, text) in words.items() if f"{program} does not run" in text}
    passed = {name for name, (result, _) in words.items() if result == "PASS"}
    assert gone
    assert not gone & passed


def test_a_paths_own_pattern_is_asked_for() -> None:
    """A decider of files that nobody asks the machine about would find nothing, forever."""
    shell = " ".join(PATHS)
    for path in good().modes:
        folder = path.rpartition("/")[0]
        assert path in PATHS or f"{folder}/*" in shell, path


def test_ids_are_there_once_and_in_order() -> None:
    ids = [control.id for control in CONTROLS]
    assert ids == sorted(set(ids), key=lambda text: [int(part) for part in text.split(".")])
    assert len(ids) == 131


def _line(*fields: str) -> str:
    return "\t".join(fields)


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_an_answer_is_read_back() -> None:
    answer = "\n".join(
        [
            "a banner",
            _line(
                "process",
                "kube-controller",
                _coded("kube-controller-manager\0--profiling=false\0--x\0"),
            ),
            _line("mode", _coded("/a b\n"), "640", "root:root"),
            _line("text", KUBELET_CONFIG, _coded("maxPods: 5\n")),
            _line("providers", "secretbox identity"),
            _line("proxy", "127.0.0.1:10249 [::1]:10249"),
            "end",
        ]
    )
    found = facts.read(answer)
    assert found.flags == {MANAGER: {"profiling": "false", "x": "true"}}
    assert found.modes == {"/a b": Mode(bits=0o640, owner="root:root")}
    assert found.documents == {KUBELET_CONFIG: {"maxPods": 5}}
    assert found.providers == ("secretbox", "identity")
    assert found.proxy_metrics == ("127.0.0.1:10249", "[::1]:10249")


@pytest.mark.parametrize(
    "answer", ["", "mode\tx", "text\ta\t%\nend", "mode\tQQ==\t9\tx\nend", "text\ta\teDogOg==\nend"]
)
def test_an_answer_that_is_none_is_said_to_be_none(answer: str) -> None:
    with pytest.raises(UnreadableAnswerError):
        facts.read(answer)


def _judged(found: Mapping[str, Facts | None]) -> list[verdicts.Judged]:
    wanted = [BY_ID["1.1.12"], BY_ID["3.1.1"]]
    return verdicts.judge(wanted, {control.id: list(found) for control in wanted}, found)


def test_machines_that_differ_are_told_apart_the_worst_first() -> None:
    judged = _judged({"m-1": good(), "m-2": BAD["1.1.12"](), "m-3": good()})
    assert [(each.result, each.nodes) for each in judged[0].verdicts] == [
        ("FAIL", ("m-2",)),
        ("PASS", ("m-1", "m-3")),
    ]
    lines = verdicts.table(judged)
    assert lines[0].startswith("1.1.12  FAIL ")
    assert lines[1] == f"        m-2: {etcd.DATA} is root:root's"
    assert lines[-1] == "2 controls: 1 FAIL, 1 MANUAL; 1 scored ones FAIL"
    assert command.code(judged) == 1
    assert verdicts.document(judged)["scoredFailures"] == ["1.1.12"]


def test_a_machine_that_does_not_answer_is_no_pass() -> None:
    judged = _judged({"m-1": good(), "m-2": None})
    assert judged[0].result == "UNKNOWN"
    assert judged[1].result == "MANUAL"
    assert command.code(judged) == 2
    assert command.code(_judged({"m-1": good()})) == 0


def test_the_page_is_that_of_the_controls() -> None:
    assert page.PAGE.read_text() == page.text(), "run: python -m operations.cis.page"
    assert cis.__name__ == "operations.cis"
