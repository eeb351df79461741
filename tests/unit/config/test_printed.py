"""What is printed: no secrets, nothing that Markdown acts on, many problems of a kind summed up."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stacks.__main__ import main
from stacks.config import redaction, stack_file
from stacks.config.problems import Problem, in_order, shown, unrelated
from stacks.config.values import short
from stacks.explain import formats, markdown
from tests.unit.configs import adopted, lab, problems

KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
CUT = [
    ("http://u:pw9@proxy:3128", "http://***@proxy:3128"),
    ("u:pw9@proxy", "***@proxy"),
    ("https://pw9@host/x", "https://***@host/x"),
    ("http://u:p@s/pw9@host", "http://***@host"),
    ("https://host/x?token=pw9&a=b", "https://host/x?***"),
    ("https://host/x#pw9", "https://host/x#***"),
    (KEY, "wJal***"),
    (f"d64  tier={KEY}:NoSchedule", "d64  tier=wJal***:NoSchedule"),
    ("ghp_0123456789abcdefghijpw9", "ghp_***"),
    (
        "-----BEGIN RSA PRIVATE KEY-----\npw9\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY----- *** -----END RSA PRIVATE KEY-----",
    ),
]
KEPT = [
    "ops@192.0.2.11:22",
    "registry.k8s.io/pause:3.10@sha256:da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
    "https://mirror.example.com:8080/v2/a",
    "pools.worker: at 10:00 mail a@b",
]


@pytest.mark.parametrize(("said", "printed"), CUT, ids=lambda said: said[:16])
def test_secrets_are_cut_out(said: str, printed: str) -> None:
    assert redaction.without(said) == printed
    assert redaction.without(f"x: '{said}' is not a y") == f"x: '{printed}' is not a y"
    for words in (short(said), shown(said), shown({"a": [said]}), short(said + " x y" * 40)):
        assert "pw9" not in words
        assert KEY not in words


@pytest.mark.parametrize("odd", ["u:p'w9@h", 'u:p"w9@h', "http://u:p w9@h", "u: w9@h"])
def test_quotes_and_blanks_hide_no_password(odd: str) -> None:
    assert "w9" not in short(odd) + shown(odd) + shown([odd])


@pytest.mark.parametrize("said", KEPT)
def test_what_is_no_secret_stays(said: str) -> None:
    assert redaction.without(said) == said


SHAPED = "a9" + "Bc/" * 12 + "Zz"


def test_the_secret_in_place_of_the_keys_id_is_refused_and_not_shown() -> None:
    store = {"endpoint": "https://s3.example.com", "bucket": "acme", "accessKey": SHAPED[:40]}
    plain = {**store, "accessKey": SHAPED[:40].replace("/", "x")}
    for given in (store, plain):
        raw = lab({"etcd.backup": {"objectStore": given}, "backupSecretKey": {"secure": "x"}})
        [(path, words)] = problems(raw)
        assert path == "etcd.backup.objectStore.accessKey"
        assert given["accessKey"] not in words


MARKDOWN = [
    ("![x](http://a/b.png)", "\\!\\[x\\](http:&#47;/a/b.png)"),
    ("<img src=x>", "&lt;img src=x&gt;"),
    ("@octocat and #12", "@&#8203;octocat and \\#&#8203;12"),
    ("*a* _b_ ~c~ a_b", "\\*a\\* \\_b\\_ \\~c\\~ a_b"),
    ("a\n\n- b", "a - b"),
    ("- b", "\\- b"),
    ("1. b", "1&#8203;. b"),
    ("see www.example.com, GH-7", "see www&#8203;.example.com, GH&#8203;-7"),
    ("`a\\|b`", "`a\\|b`"),
    ("`allow: [x/y]` and |", "`allow: [x/y]` and \\|"),
    ("'`' <b>", "''' &lt;b&gt;"),
    ("``<b>``", "''&lt;b&gt;''"),
    ("a `b|c` d", "a `b\\|c` d"),
]


@pytest.mark.parametrize(("said", "written"), MARKDOWN)
def test_markdown_does_nothing_with_a_value(said: str, written: str) -> None:
    assert markdown.escaped(said) == written


def test_problems_stand_in_natural_order() -> None:
    paths = ["pools.a.hosts[10].name", "pools.a.hosts[2].name", "cluster.name", "pools.a"]
    found = in_order([Problem(path, "x") for path in [*paths, *paths]])
    assert [path for path, _ in found] == [paths[2], paths[3], paths[1], paths[0]]


def test_many_of_a_kind_are_summed_up() -> None:
    found = [Problem(f"pools.a.hosts[{n}].address", f"'10.0.0.{n}' is bad") for n in range(300)]
    lines = formats.problems("f", [*found, Problem("zone", "is bad")]).splitlines()
    assert lines[0] == "f: 301 problems, nothing was touched"
    assert lines[10] == "  pools.a.hosts[9].address: '10.0.0.9' is bad"
    assert lines[11:] == [
        "  pools.a.hosts[299].address: and 290 more of this kind, of which this is the last",
        "  zone: is bad",
    ]
    assert len(formats.problems_markdown("f", found).splitlines()) == 13
    assert len(formats.problems("f", found[:11]).splitlines()) == 12  # a line saved is not a gain


def test_a_wrong_address_hides_nothing_about_nodes() -> None:
    raw = adopted({"pools.worker.hosts.0.address": "x", "nodes": {"wrong": {"state": "lost"}}})
    assert [path for path, _ in problems(raw)] == ["nodes.wrong", "pools.worker.hosts[0].address"]
    raw = adopted({"pools.worker.hosts.0.name": "X", "nodes": {"wrong": {"state": "lost"}}})
    assert [path for path, _ in problems(raw)] == ["pools.worker.hosts[0].name"]


def test_what_stands_in_for_a_wrong_address_is_not_shown() -> None:
    raw = adopted({"pools.worker.hosts.0.address": "x", "pools.worker.hosts.0.hostKey": None})
    found = dict(problems(raw))
    assert "prints that of ADDRESS" in found["pools.worker.hosts[0].hostKey"]


def test_unrelated_is_quick_with_thousands() -> None:
    wrong = [Problem(f"pools.a.hosts[{n}].address", "x") for n in range(20_000)]
    late = [Problem(f"pools.a.hosts[{n}].port", "x") for n in range(20_000)]
    assert unrelated(late, to=wrong) == late
    assert (
        unrelated([Problem("pools.a", "x"), Problem("pools.a.hosts[3].address.y", "x")], to=wrong)
        == []
    )


def _file(folder: Path, name: str, raw: dict[str, object]) -> str:
    file = folder / name
    file.write_text(json.dumps({"config": {f"kube-ha:{key}": raw[key] for key in raw}}))
    return str(file)


def test_problems_of_config_edit_and_files_are_told_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edits = {
        "etcd": {"heartbeatIntervalMs": 1},
        "cluster.podCidr": "10.200.0.0/16",
        "addons": {"x": {"manifests": [str(tmp_path / "none.yaml")]}},
    }
    now, then = _file(tmp_path, "now", lab(edits)), _file(tmp_path, "then", lab())
    assert main([now, "--previous", then]) == 1
    said = capsys.readouterr().err
    assert re.search(r"^  cluster.podCidr: cannot change from", said, re.MULTILINE)
    assert re.search(r"^  etcd.heartbeatIntervalMs: 1 is too small", said, re.MULTILINE)
    assert re.search(r"^warning: addons.x.manifests\[0\]: .* cannot be read", said, re.MULTILINE)


def test_what_stands_in_place_of_a_wrong_value_is_not_told_as_an_edit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    then = _file(tmp_path, "then", lab())
    for edits in ({"pools.worker.count": "x"}, {"cluster.name": "X"}, {"pools.master": 5}):
        now = _file(tmp_path, "now", lab(edits))
        assert main([now, "--previous", then]) == 1
        assert len(capsys.readouterr().err.splitlines()) <= 3, edits


def test_what_was_accepted_once_is_compared_with_though_it_would_be_refused_today(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = lab({"allow": ["host-key/*"], "controlPlane.featureGates": {"GoneByNow": True}})
    now, then = _file(tmp_path, "now", lab()), _file(tmp_path, "then", old)
    assert main([now, "--previous", then]) == 0
    assert "compared with the config last applied" in capsys.readouterr().out
    none = _file(tmp_path, "none", lab({"pools": {}}))
    assert main([now, "--previous", none]) == 1
    assert "--previous" in capsys.readouterr().err


def test_the_program_too_names_keys_of_a_project_that_is_nearly_this_one(
    tmp_path: Path,
) -> None:
    given = {
        "PULUMI_CONFIG": json.dumps({"kubeha:etcd": "{}", "kube-ha:os": "{}", "aws:region": "x"})
    }
    [(path, words)] = stack_file.of_engine(given, tmp_path).problems
    assert path == '"kubeha:etcd"'
    assert words.endswith("write kube-ha:etcd")
