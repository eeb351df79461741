"""The clients of the end-to-end stories, with a curl that plays the API and etcd."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.harness import history, members
from tests.e2e.harness.history import Attempt

CLIENTS = Path(__file__).parents[1] / "e2e/harness/clients"

# One number with a version in the file `store`. `plan` holds what happens to each call that changes or reads it:
# ok, none (it never arrives), late (it is done, and the answer gets lost); the last one stays. With a ! the client is told to stop.
CURL = r"""#!/usr/bin/env python3
import base64, json, pathlib, sys
here = pathlib.Path(__file__).parents[1]
words = sys.argv[1:]
url, data = words[-1], words[words.index("-d") + 1] if "-d" in words else None
store = json.loads((here / "store").read_text())
plan = (here / "plan").read_text().split()
member_list, new = "member/list" in url, "POST" in words
fate = "ok" if member_list or new else plan.pop(0)
(here / "plan").write_text(" ".join(plan or [fate]))
if fate.endswith("!"):
    (here / "stop").touch()
    fate = fate[:-1]
body, status = json.loads(data) if data else {}, 200
if member_list:
    voters = [{"name": door[0], "clientURLs": [f"https://{door}"]} for door in (here / "voters").read_text().split()]
    answer = {"members": [*voters, {"name": "c", "clientURLs": ["https://c:1"], "isLearner": True}]}
elif new:
    answer, status = {}, 409
elif fate == "none":
    answer, status = None, 0
elif "kv/range" in url:
    found = {"mod_revision": str(store["version"]), "value": base64.b64encode(str(store["n"]).encode()).decode()}
    answer = {"kvs": [found]} if store["version"] else {}
elif "kv/txn" in url:
    answer = {}
    if int(body["compare"][0]["mod_revision"]) == store["version"]:
        value = base64.b64decode(body["success"][0]["request_put"]["value"]).decode()
        store = {"n": int(value), "version": store["version"] + 1}
        answer = {"succeeded": True}
elif "PUT" in words:
    answer = {}
    if int(body["metadata"]["resourceVersion"]) == store["version"]:
        store = {"n": int(body["data"]["n"]), "version": store["version"] + 1}
    else:
        status = 409
else:
    answer = {"metadata": {"resourceVersion": str(store["version"])}, "data": {"n": str(store["n"])}}
(here / "store").write_text(json.dumps(store))
(here / "answer").write_text(json.dumps(answer))
if fate == "late":
    status = 0
print(f"{status:03d}", end="")
sys.exit(0 if status else 28)
"""


def counted(
    folder: Path, kind: str, plan: str, *, doors: str = "a:1 b:1", voters: str = "a:1 b:1"
) -> list[Attempt]:
    """The history of a client to whose reads and writes this happens, in turn; `voters` is what etcd says."""
    (folder / "bin").mkdir()
    (folder / "bin/curl").write_text(CURL)
    (folder / "bin/curl").chmod(0o755)
    first = 7 if kind == "api" else 0  # a key of etcd is not there at first
    (folder / "store").write_text(f'{{"n": 0, "version": {first}}}')
    (folder / "plan").write_text(plan)
    (folder / "doors").write_text(f"{doors}\n")
    (folder / "voters").write_text(voters)
    (folder / "key").write_text("count")
    (folder / "pause").write_text("0")
    done = subprocess.run(
        ["bash", str(CLIENTS / "count.sh"), kind, str(folder)],
        env={"PATH": f"{folder}/bin:/usr/local/bin:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
        check=True,
    )
    return history.attempts(done.stdout.splitlines())


def words(found: list[Attempt]) -> list[str]:
    return [f"{one.kind} {one.status} {one.base} {one.number} {one.door}" for one in found]


@pytest.mark.parametrize("kind", ["api", "etcd"])
def test_it_counts(tmp_path: Path, kind: str) -> None:
    found = counted(tmp_path, kind, "ok ok ok ok!", doors="a:1")
    assert words(found) == [
        "read 200 None 0 a:1",
        "write 200 0 1 a:1",
        "read 200 None 1 a:1",
        "write 200 1 2 a:1",
        "read 200 None 2 a:1",
    ]
    seen = history.seen(found)
    assert (seen.requests, seen.failed, seen.lost, seen.stale) == (5, 0, 0, 0)


@pytest.mark.parametrize("kind", ["api", "etcd"])
def test_a_write_whose_answer_gets_lost_is_tried_at_the_next_door_and_not_counted_twice(
    tmp_path: Path, kind: str
) -> None:
    found = counted(tmp_path, kind, "ok late ok ok ok!")
    tried = [one for one in found if one.kind == "write"]
    assert [(one.status, one.number) for one in tried] == [("000", 1), ("409", 1), ("200", 2)]
    assert tried[0].door != tried[1].door
    seen = history.seen(found)
    assert (seen.failed, seen.failed_twice, seen.lost, seen.stale) == (1, 0, 0, 0)


def test_a_write_that_nobody_answers_is_given_up_and_its_number_not_used_again(
    tmp_path: Path,
) -> None:
    found = counted(tmp_path, "api", "ok none none ok ok!")
    assert [(one.status, one.number) for one in found if one.kind == "write"] == [
        ("000", 1),
        ("000", 1),
        ("200", 2),
    ]
    assert history.seen(found).failed_twice == 1


def test_at_the_end_it_reads_until_there_is_an_answer(tmp_path: Path) -> None:
    found = counted(tmp_path, "api", "ok ok! none none ok")
    assert words(found)[-1].startswith("read 200 None 1")


def test_a_client_of_etcd_follows_those_that_vote(tmp_path: Path) -> None:
    counted(tmp_path, "etcd", " ".join(["ok"] * 9 + ["ok!"]), voters="a:1")
    assert (tmp_path / "doors").read_text() == "a:1\n"


def test_a_client_of_etcd_without_an_answer_asks_who_is_left(tmp_path: Path) -> None:
    found = counted(tmp_path, "etcd", "ok none ok ok ok!", doors="a:1 d:1", voters="b:1")
    assert words(found)[:3] == [
        "read 200 None 0 a:1",
        "write 000 0 1 a:1",
        "write 200 0 1 b:1",
    ]


def test_a_retry_is_never_at_the_door_that_just_failed_whatever_the_order_of_the_list(
    tmp_path: Path,
) -> None:
    found = counted(tmp_path, "etcd", "none ok ok ok!", doors="a:1 d:1", voters="d:1 a:1")
    assert words(found)[:2] == ["read 000 None None a:1", "read 200 None 0 d:1"]


def test_looks_at_members_tell_who_votes_and_who_is_silent(tmp_path: Path) -> None:
    listed = (
        '{"members": [{"ID": "1", "name": "a", "clientURLs": ["https://a:1"]},'
        '{"ID": "2", "name": "b", "clientURLs": ["https://b:1"], "isLearner": true}, {"ID": "3"}]}'
    )
    (tmp_path / "bin").mkdir()
    curl = tmp_path / "bin/curl"
    curl.write_text(
        f"#!/bin/bash\ncase $* in *member/list*) echo '{listed}'; touch {tmp_path}/stop ;; "
        '*a:1/version*) echo "200 a:1"; echo "000 b:1"; exit 28 ;; esac\n'
    )
    curl.chmod(0o755)
    (tmp_path / "doors").write_text("a:1\n")
    done = subprocess.run(
        ["bash", str(CLIENTS / "members.sh"), str(tmp_path)],
        env={"PATH": f"{tmp_path}/bin:/usr/local/bin:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
        check=True,
    )
    (look,) = members.looks(done.stdout.splitlines())
    assert [(one.name, one.votes, one.answers) for one in look.members] == [
        ("a", True, True),
        ("b", False, False),
        ("-", True, False),
    ]
