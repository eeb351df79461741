"""Add-ons of a drawn config: names that mean something, with settings that are theirs."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.dice import Dice

Draw = Callable[[Dice], object]


def manifests(dice: Dice, _: Draw) -> object:
    """Files that are there, but for the last one."""
    listed = ("tests/fuzz/widgets.yaml", "tests/fuzz/gadgets.yaml", "tests/fuzz/none.yaml")
    first = dice.below(3)
    return list(listed[first : first + dice.between(1, 2)])


def chart(_dice: Dice, _: Draw) -> object:
    """None, where manifests may be drawn beside it."""
    return None


def _chart(dice: Dice) -> dict[str, object]:
    """Of a file that is not there: helm would take its time. tests/unit/cluster/test_charts.py has some that are."""
    said: dict[str, object] = {
        "namespace": dice.one_of(("shop", "bank")),
        "createNamespace": dice.chance(50),
        "values": {"a": [1, {"b": None}], "c.d": dice.one_of(("x", True, 1.5))},
        "valuesFiles": ["tests/fuzz/none.yaml"],
        "apiVersions": ["monitoring.coreos.com/v1", "v1beta1"][: dice.between(1, 2)],
        "hooks": dice.one_of(("refuse", "skip")),
    }
    kept = {key: value for key, value in said.items() if dice.chance(50)}
    return {"file": "charts/none.tgz", "sha256": f"{dice.below(10)}" * 64, **kept}


def addons(dice: Dice, by_type: Draw) -> object:
    """Of the catalogue, too: names that mean something, with settings that are theirs."""
    drawn = by_type(dice)
    assert isinstance(drawn, dict)
    for one in drawn.values():
        if not dice.chance(3):  # a name of the user's has manifests alone: anything else is refused
            files = one.get("manifests") or ["tests/fuzz/gadgets.yaml"]
            one.clear()
            one["manifests"] = files
            if dice.chance(30):
                one["secrets"] = {f"own-{dice.below(1000)}": _secret(dice)}
    if dice.chance(40):
        said: dict[str, object] = {
            "default": dice.chance(50),
            "path": dice.one_of(("/var/volumes", "/srv/a/b.c")),
        }
        drawn["local-path"] = {key: value for key, value in said.items() if dice.chance(50)}
    if dice.chance(30):
        said = {
            "retentionDays": dice.between(1, 40),
            "storageGi": dice.between(2, 100),
            "alertmanagers": ["am.example.com:9093"],
        }
        drawn["prometheus"] = {key: value for key, value in said.items() if dice.chance(50)}
    if dice.chance(5):
        drawn["default-deny"] = {"namespaces": ["shop", "bank"][: dice.between(1, 2)]}
    if dice.chance(15):
        drawn["metallb"] = {
            "addresses": [dice.one_of(("10.92.3.240-10.92.3.245", "192.168.200.0/28"))]
        }
    if dice.chance(30):
        drawn["logs"] = _logs(dice)
    if dice.chance(8):
        drawn["traefik"] = {"default": dice.chance(50)}
    if dice.chance(10):
        drawn["of-a-chart"] = {"chart": _chart(dice)}
    if dice.chance(10):
        drawn["registries"] = {"secrets": {"pull": _login(dice)}}
    if dice.chance(10):
        drawn["registry-login"] = {
            "hosts": [*LOGIN_HOSTS[dice.below(2) :]],
            "secrets": {"registry-login": _nodes_login()},
        }
    if dice.chance(30):
        drawn["toolbox"] = {"nodes": {"tier": "edge"}} if dice.chance(50) else {}
    if dice.chance(30):
        drawn["metrics-server"] = {}
    for one in drawn.values():
        if dice.chance(10):
            one["reconcile"] = dice.chance(70)
    return drawn


LOGIN_HOSTS = ("registry.example.com", "192.0.2.7:5000")  # of which the value `login` has a login
VALUES = ("token", "login", "other")  # of which drawn configs have all, or none


def _secret(dice: Dice) -> dict[str, object]:
    spaces = ["shop", "bank"][: dice.between(1, 2)]
    keys = ("key", "a.b-c_d")[: dice.between(1, 2)]
    return {"namespaces": spaces, "data": {key: dice.one_of(VALUES) for key in keys}}


def _login(dice: Dice) -> dict[str, object]:
    kind = dice.one_of(("kubernetes.io/dockerconfigjson", "Opaque"))
    return {**_secret(dice), "type": kind, "data": {".dockerconfigjson": "login"}}


def _nodes_login() -> dict[str, object]:
    kind = "kubernetes.io/dockerconfigjson"
    return {"namespaces": ["kube-system"], "type": kind, "data": {".dockerconfigjson": "login"}}


def _logs(dice: Dice) -> dict[str, object]:
    """With a store of the user's, or that of the cluster."""
    said: dict[str, object] = {"bufferMib": dice.between(16, 2048)} if dice.chance(50) else {}
    if dice.chance(50):
        said["endpoint"] = "https://loki.example.com/otlp"
        return said | ({"secret": "loki-header"} if dice.chance(50) else {})
    return said | ({"retentionDays": dice.between(1, 90)} if dice.chance(50) else {})
