"""Whatever text the config lets through arrives as that text and as nothing else."""

from __future__ import annotations

import dataclasses
import string
import tomllib

import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from stacks.documents.yaml_text import documents
from stacks.render import apiserver, audit, authentication, containerd, etcd, kubeadm
from tests.unit.flags import SWITCHABLE
from tests.unit.render.examples import adopted, lab, local_api

# No deadline: other work on this computer is not a failure.
patient = settings(deadline=None, max_examples=40)
_GO_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
ENDS = string.ascii_letters + string.digits
label_values = st.one_of(
    st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,20}[A-Za-z0-9])?", fullmatch=True),
    st.sampled_from(["1e3", "0x10", "0o17", "y", "N", "null", "true", "1_000", "12.5", "on", "1"]),
)
flag_values = st.text(ENDS + "_.,:;=/@%+~*[](){}|<>?!&^# -", max_size=60)
dns_labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)


@patient
@given(st.text(max_size=80))
def test_any_text_comes_back_from_yaml(text: str) -> None:
    assert yaml.safe_load(documents({"key": text})) == {"key": text}


@patient
@given(label_values)
def test_labels_and_taints_stay_text(value: str) -> None:
    """Also for a parser that knows more numbers and booleans than PyYAML: those are quoted."""
    pools = {
        "master": {"roles": ["etcd", "master"], "count": 1},
        "worker": {
            "roles": ["worker"],
            "count": 1,
            "labels": {"example.com/x": value},
            "taints": [{"key": "example.com/x", "value": value, "effect": "NoSchedule"}],
        },
    }
    plan = lab(pools=pools)
    text = kubeadm.join_worker(plan, plan.workers[0])
    registration = yaml.safe_load(text)["nodeRegistration"]
    assert registration["taints"][0]["value"] == value
    flags = {each["name"]: each["value"] for each in registration["kubeletExtraArgs"]}
    assert flags["node-labels"] == f"example.com/x={value}"
    quoted = f'value: "{value}"\n' in text
    assert quoted or (value[0].isalpha() and value.lower() not in _GO_WORDS)


@patient
@given(label_values)
def test_zones_stay_the_value_of_one_label(zone: str) -> None:
    pools = {
        "master": {"roles": ["etcd", "master"], "count": 1},
        "worker": {"roles": ["worker"], "count": 1, "zones": [zone]},
    }
    plan = lab(pools=pools)
    text = kubeadm.join_worker(plan, plan.workers[0])
    arguments = yaml.safe_load(text)["nodeRegistration"]["kubeletExtraArgs"]
    flags = {each["name"]: each["value"] for each in arguments}
    assert flags["node-labels"] == f"topology.kubernetes.io/zone={zone}"


@patient
@given(flag_values)
def test_flags_stay_one_argument_of_one_component(value: str) -> None:
    plan = lab(controlPlane={"apiServerArgs": {"api-audiences": value}})
    cluster = list(yaml.safe_load_all(kubeadm.init(plan, plan.masters[0])))[1]
    flags = {each["name"]: each["value"] for each in cluster["apiServer"]["extraArgs"]}
    assert flags["api-audiences"] == value
    without = list(yaml.safe_load_all(kubeadm.init(lab(), lab().masters[0])))[1]
    assert len(flags) == len(without["apiServer"]["extraArgs"]) + 1


claims = st.text(ENDS + "_.,:;/@%+~*|!^#-", min_size=1, max_size=40)
flag_texts = st.text(ENDS + "_.,:;=/@%+~*[](){}|<>?!&^# -", min_size=1, max_size=60)


@patient
@example("x", "x", {"a": "1", "aa": "1"})  # the order of the claims is not that of the flags' texts
@given(flag_texts, claims, st.dictionaries(claims, flag_texts, max_size=4))
def test_words_of_an_identity_provider_stay_one_flag_or_one_value_each(
    text: str, claim: str, required: dict[str, str]
) -> None:
    assume(not text.startswith("system:"))
    oidc = {
        "issuerUrl": "https://id.example.com/x%20y/",
        "clientId": text,
        "usernameClaim": claim,
        "usernamePrefix": text,
        "groupsClaim": claim,
        "groupsPrefix": text,
        "requiredClaims": required,
    }
    (issuer,) = yaml.safe_load(authentication.configuration(lab(controlPlane={"oidc": oidc})))[
        "jwt"
    ]
    assert issuer["issuer"]["audiences"] == [text]
    prefix = "" if text == "-" else text
    assert issuer["claimMappings"]["username"] == {"claim": claim, "prefix": prefix}
    assert issuer["claimMappings"]["groups"] == {"claim": claim, "prefix": text}
    rules = issuer.get("claimValidationRules", [])
    assert {rule["claim"]: rule["requiredValue"] for rule in rules} == required

    plan = lab(controlPlane={"oidc": oidc, "anonymous": "all"})
    cluster = list(yaml.safe_load_all(kubeadm.init(plan, plan.masters[0])))[1]
    flags = [(each["name"], each["value"]) for each in cluster["apiServer"]["extraArgs"]]
    oidc_flags = [(name, value) for name, value in flags if name.startswith("oidc")]
    assert oidc_flags == [
        ("oidc-client-id", text),
        ("oidc-groups-claim", claim),
        ("oidc-groups-prefix", text),
        ("oidc-issuer-url", "https://id.example.com/x%20y/"),
        *(("oidc-required-claim", f"{key}={required[key]}") for key in sorted(required)),
        ("oidc-username-claim", claim),
        ("oidc-username-prefix", text),
    ]


@patient
@given(st.lists(dns_labels, max_size=5), st.sampled_from(["latest", "v1.30"]))
def test_exempted_namespaces_come_back(namespaces: list[str], version: str) -> None:
    wanted = {"enforce": "baseline", "version": version, "exemptNamespaces": namespaces}
    text = apiserver.admission_configuration(lab(controlPlane={"podSecurity": wanted}))
    configuration = yaml.safe_load(text)["plugins"][0]["configuration"]
    assert set(namespaces) <= set(configuration["exemptions"]["namespaces"])
    assert configuration["defaults"]["warn-version"] == version


@patient
@given(st.dictionaries(st.sampled_from(SWITCHABLE), st.booleans(), max_size=6))
def test_feature_gates_come_back(gates: dict[str, bool]) -> None:
    plan = lab(controlPlane={"featureGates": gates})
    cluster = list(yaml.safe_load_all(kubeadm.init(plan, plan.masters[0])))[1]
    flags = {each["name"]: each["value"] for each in cluster["scheduler"]["extraArgs"]}
    given_back = dict(pair.split("=") for pair in flags.get("feature-gates", "").split(",") if pair)
    assert given_back == {name: str(on).lower() for name, on in gates.items()}


amounts = st.from_regex(r"[1-9][0-9]{0,5}(\.[0-9]{1,3})?(k|Ki|M|Mi|G|Gi|T|Ti)", fullmatch=True)
parts = st.from_regex(r"[1-9][0-9]?%", fullmatch=True)
cpus = st.from_regex(r"[1-9][0-9]{0,3}(\.[0-9]{1,3})?m?", fullmatch=True)


@patient
@given(amounts | parts, amounts, cpus)
def test_amounts_stay_text(threshold: str, memory: str, cpu: str) -> None:
    """A kubelet that meets a number where it wants text does not start."""
    wanted = {
        "evictionHard": {"memory.available": threshold},
        "systemReserved": {"memory": memory, "cpu": cpu},
    }
    plan = lab(kubelet=wanted)
    made = list(yaml.safe_load_all(kubeadm.init(plan, plan.masters[0])))[2]
    assert made["evictionHard"]["memory.available"] == threshold
    assert made["systemReserved"] == {"memory": memory, "cpu": cpu}
    assert f'cpu: "{cpu}"' in kubeadm.init(plan, plan.masters[0])


hosts_and_ports = st.from_regex(
    r"[a-z]([a-z0-9-]{0,9}[a-z0-9])?(:[1-9][0-9]{0,3})?", fullmatch=True
)
paths = st.from_regex(r"(/[A-Za-z0-9_.~-]{1,9}){0,3}", fullmatch=True)


@patient
@given(hosts_and_ports, hosts_and_ports, paths)
def test_mirrors_of_registries_stay_in_their_quotes(registry: str, host: str, path: str) -> None:
    assume(registry != host)
    mirrors = {f"x.{registry}": [f"https://{host}{path}"]}
    text = containerd.hosts(adopted(runtime={"registryMirrors": mirrors}))[f"x.{registry}"]
    assert list(tomllib.loads(text)["host"]) == [f"https://{host}{path}"]
    assert list(tomllib.loads(text)) == ["host"]


@patient
@given(dns_labels)
def test_names_of_machines_end_where_they_end(name: str) -> None:
    pools = {name: {"roles": ["etcd", "master"], "count": 1}}
    plan = lab(pools=pools)
    node = plan.masters[0]
    servers = [line.split() for line in local_api(plan).splitlines() if "  server" in line]
    assert [each[1] for each in servers] == [node.name, f"{node.name}-unchecked"]
    assert f"ETCD_NAME={node.name}\n" in etcd.environment(plan, node)
    assert (
        yaml.safe_load(kubeadm.init(plan, node).split("---\n")[0])["nodeRegistration"]["name"]
        == node.name
    )


@patient
@given(st.recursive(st.none() | st.booleans() | st.text(max_size=20), st.lists, max_leaves=5))
def test_the_users_audit_policy_comes_back(rules: object) -> None:
    plan = lab()
    said = plan.spec.control_plane.audit.model_copy(update={"policy": {"rules": rules}})
    control_plane = plan.spec.control_plane.model_copy(update={"audit": said})
    spec = plan.spec.model_copy(update={"control_plane": control_plane})
    text = audit.policy(dataclasses.replace(plan, spec=spec))
    assert yaml.safe_load(text)["rules"] == rules


def test_percent_signs_reach_the_proxy_variable() -> None:
    spec = lab().spec
    proxy = spec.proxy.model_copy(update={"https": 'http://a%20b"\\:1'})
    plan = dataclasses.replace(lab(), spec=spec.model_copy(update={"proxy": proxy}))
    assert 'Environment="HTTPS_PROXY=http://a%%20b\\"\\\\:1"' in containerd.proxy(plan)
