"""Snapshots of real etcd members in a real object store, sent by the real curl, and fetched by operations."""

from __future__ import annotations

import datetime
import functools
import hashlib
import ipaddress
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from operations.engine.engine import StackError
from operations.etcd_snapshots import object_store, snapshot_file
from operations.etcd_snapshots.object_store import Store
from operations.etcd_snapshots.snapshot_file import SnapshotError
from tests.scripts.real_etcd import BACKUP_KEY, CLUSTER_ID, Member, Members
from tests.scripts.s3_server import ACCESS_KEY, BUCKET, REGION, SECRET, S3Server

FOLDER = f"clusters/dev-{CLUSTER_ID}"


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Members]:
    """Three members that serve; tests leave them so."""
    cluster = Members(tmp_path_factory.mktemp("store"))
    for member in cluster.all.values():
        (member.pki / "store.key").write_text(f"{SECRET}\n")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    found = S3Server(tmp_path / "s3")
    try:
        found.start()
        yield found
    finally:
        found.stop()


def values(endpoint: str, **others: str) -> dict[str, str]:
    return {
        "REASON": "manual",
        "BACKUP_KEEP": "3",
        "BACKUP_DIRECTORY": "",
        "BACKUP_ENCRYPT": "1",
        "BACKUP_STORE": f"{endpoint}/{BUCKET}/clusters",
        "BACKUP_REGION": REGION,
        "BACKUP_ACCESS_KEY": ACCESS_KEY,
        "BACKUP_PRUNE": "1",
        "STILL_S": "2",
        **others,
    }


def save(
    members: Members, member: Member, endpoint: str, *, fails: bool = False, **others: str
) -> str:
    given = values(endpoint, MEMBERS=members.words, **others)
    return member.run("snapshot", fails=fails, **given)


def kept(member: Member, out: str) -> Path:
    """The file on the machine, by the line for operations."""
    (row,) = [line.split("\t") for line in out.splitlines() if line.startswith("snapshot\t")]
    file = Path(row[1])
    assert file.exists()
    assert file.parent == member.shell.folder / "home/backups"
    return file


def reader(endpoint: str, secret: str = SECRET, ca: str | None = None) -> Store:
    """The store as this computer reads it."""
    return Store(
        endpoint=endpoint,
        bucket=BUCKET,
        folder=FOLDER,
        region=REGION,
        access_key=ACCESS_KEY,
        secret=secret,
        ca=ca,
    )


def test_a_snapshot_is_sent_with_its_checksum_and_comes_back_whole(
    members: Members, server: S3Server, tmp_path: Path
) -> None:
    member = members[1]
    out = save(members, member, server.endpoint)
    file = kept(member, out)
    assert server.objects == [f"{FOLDER}/{file.name}", f"{FOLDER}/{file.name}.sha256"]
    assert (server.bucket / FOLDER / file.name).read_bytes() == file.read_bytes()
    assert b"kube-ha-cluster" not in file.read_bytes()  # encrypted, as it is here
    marks = member.shell.state
    assert (marks / "backup.sent").read_text().split() == [
        (marks / "backup.sent").read_text().split()[0],
        file.name,
    ]
    assert not (marks / "backup.unsent").exists()
    assert not (marks / "backup.begun").exists()
    assert not list(file.parent.glob(".*"))
    checked = subprocess.run(
        ["sha256sum", "-c", f"{file.name}.sha256"],
        cwd=server.bucket / FOLDER,
        capture_output=True,
        check=False,
    )
    assert checked.returncode == 0
    store = reader(server.endpoint)
    assert store.names() == [file.name]
    fetched = object_store.taken(store, "store:latest", tmp_path / "here", BACKUP_KEY)
    assert fetched.read_bytes() == file.read_bytes()
    assert fetched.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / f"here/{file.name}.sha256").read_text().split()[1] == file.name
    # It is what a restore takes, and no other cluster's does.
    plain = snapshot_file.opened(fetched, BACKUP_KEY, tmp_path, sealed=True)
    check = functools.partial(
        snapshot_file.check, plain, named=fetched, cluster="dev", unmarked=False
    )
    check(cluster_id=CLUSTER_ID)
    with pytest.raises(SnapshotError, match="is of cluster dev"):
        check(cluster_id="ffffffffffff")
    with pytest.raises(SnapshotError, match="is not what the key of this stack has sealed"):
        snapshot_file.opened(fetched, "0" * 32, tmp_path, sealed=True)


def test_the_secret_is_in_no_command_line_log_or_mark(members: Members, server: S3Server) -> None:
    member = members[1]
    real = subprocess.run(["which", "curl"], capture_output=True, text=True, check=True).stdout
    record = member.shell.folder / "argv"
    member.shell.stub(
        "curl",
        f'tr "\\0" " " </proc/$$/cmdline >>{record}; env >>{record}; exec {real.strip()} "$@"',
    )
    try:
        out = save(members, member, server.endpoint)
        (member.pki / "store.key").write_text("not-the-secret\n")
        out += save(members, member, server.endpoint, fails=True)
    finally:
        (member.shell.folder / "bin/curl").unlink()
        (member.pki / "store.key").write_text(f"{SECRET}\n")
    assert "aws-sigv4" in record.read_text()
    for secret in (SECRET, SECRET.replace("\\", "\\\\").replace('"', '\\"'), "not-the-secret"):
        assert secret not in record.read_text()
        assert secret not in out
        for mark in member.shell.state.iterdir():
            assert secret not in mark.read_text(errors="replace")
    assert "SignatureDoesNotMatch" in out


def test_old_ones_go_by_reason_and_what_is_not_ours_stays(
    members: Members, server: S3Server
) -> None:
    folder = server.bucket / FOLDER
    folder.mkdir(parents=True)
    for day in range(1, 6):
        for reason in ("manual", "change"):
            for ending in ("", ".sha256"):
                (folder / f"dev-2026010{day}T000000Z-7-master-2-{reason}.db{ending}").write_text(
                    "x"
                )
    others = {
        "dev-20251231T000000Z-7-manual.db.sha256",  # a checksum whose snapshot never came
        "notes & more.txt",
        "dev-2-20260101T000000Z-7-manual.db",
    }
    for name in others:
        (folder / name).write_text("x")
    elsewhere = server.bucket / "clusters/dev-ffffffffffff/dev-20260101T000000Z-7-manual.db"
    elsewhere.parent.mkdir()
    elsewhere.write_text("of a stack of the same name")
    out = save(members, members[2], server.endpoint)
    name = kept(members[2], out).name
    left = [path.removeprefix(f"{FOLDER}/") for path in server.objects if path.startswith(FOLDER)]
    manual = [path for path in left if path.endswith("-manual.db") and path.startswith("dev-20")]
    assert manual == [
        "dev-20260104T000000Z-7-master-2-manual.db",
        "dev-20260105T000000Z-7-master-2-manual.db",
    ]
    assert {name, f"{name}.sha256"} < set(left)
    assert len([path for path in left if "change" in path]) == 10
    assert {"notes & more.txt", "dev-2-20260101T000000Z-7-manual.db"} < set(left)
    assert "dev-20251231T000000Z-7-manual.db.sha256" not in left
    assert elsewhere.exists()
    assert "deleted 7 old objects" in out


def test_more_names_than_one_answer_holds(members: Members, server: S3Server) -> None:
    folder = server.bucket / FOLDER
    folder.mkdir(parents=True)
    for number in range(1100):
        (folder / f"dev-20260101T{number:06d}Z-7-master-2-manual.db").write_text("x")
    assert len(reader(server.endpoint).names()) == 1100
    out = save(members, members[2], server.endpoint, BACKUP_KEEP="1090")
    assert "deleted 11 old objects" in out
    assert f"{FOLDER}/dev-20260101T000010Z-7-master-2-manual.db" not in server.objects
    assert f"{FOLDER}/dev-20260101T000011Z-7-master-2-manual.db" in server.objects


def test_one_of_a_clock_that_was_behind_is_not_deleted_by_itself(
    members: Members, server: S3Server
) -> None:
    folder = server.bucket / FOLDER
    folder.mkdir(parents=True)
    for day in range(1, 4):
        (folder / f"dev-2999010{day}T000000Z-7-master-2-manual.db").write_text("x")
    name = kept(members[1], save(members, members[1], server.endpoint)).name
    assert f"{FOLDER}/{name}" in server.objects
    assert len(server.objects) == 5


def test_where_the_bucket_deletes_nothing_is_listed_and_nothing_deleted(
    members: Members, server: S3Server
) -> None:
    for _ in range(2):
        save(members, members[1], server.endpoint, BACKUP_KEEP="1", BACKUP_PRUNE="0")
        time.sleep(1)  # names hold the second
    assert len(server.objects) == 4


def test_two_leaders_in_the_same_second_do_not_meet(members: Members, server: S3Server) -> None:
    outs: dict[str, str] = {}

    def one(member: Member) -> None:
        outs[member.name] = save(members, member, server.endpoint, REASON="manual")

    threads = [threading.Thread(target=one, args=(m,)) for m in members.all.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(outs) == set(members.all)
    assert len(reader(server.endpoint).names()) == 3
    for path in (server.bucket / FOLDER).glob("*.sha256"):
        subprocess.run(["sha256sum", "-c", "--quiet", path.name], cwd=path.parent, check=True)


class _Answer(BaseHTTPRequestHandler):
    """Answers every request as `server.answer` says."""

    def _say(self) -> None:
        status, body = self.server.answer  # type: ignore[attr-defined]
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append(self.command)  # type: ignore[attr-defined]
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_DELETE = _say  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def liar() -> Iterator[ThreadingHTTPServer]:
    found = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    found.seen = []  # type: ignore[attr-defined]
    threading.Thread(target=found.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        found.shutdown()
        found.server_close()


def error(code: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>no \x1b[31m<b></b></Message></Error>".encode()


@pytest.mark.parametrize(
    ("status", "body", "todo"),
    [
        (403, error("RequestTimeTooSkewed"), "set the clock of master-1"),
        (403, error("AccessDenied"), "this key may write there"),
        (301, error("PermanentRedirect"), "have to be those of the bucket"),
        (404, error("NoSuchBucket"), "make that bucket"),
        (200 + 204, b"\xff\xfe not XML", "reaches it, and that it has room"),
    ],
)
def test_a_refusal_is_told_with_its_way_out_and_the_snapshot_stays(
    members: Members, liar: ThreadingHTTPServer, status: int, body: bytes, todo: str
) -> None:
    liar.answer = (status, body)  # type: ignore[attr-defined]
    member = members[1]
    out = save(members, member, f"http://127.0.0.1:{liar.server_port}", fails=True)
    assert todo in out
    assert "\x1b" not in out
    file = kept(member, out)
    assert (member.shell.state / "backup").read_text().split("\t")[1] == file.name
    said = (member.shell.state / "backup.unsent").read_text().split("\t")
    assert said[1] == file.name
    assert said[2].startswith(str(status))
    assert not (member.shell.state / "backup.begun").exists()
    assert liar.seen == ["PUT"]  # type: ignore[attr-defined] # nothing is followed, nothing tried again
    assert members.answer(member, "endpoint", "health")


def test_an_answer_without_end_does_not_fill_the_disk(
    members: Members, liar: ThreadingHTTPServer
) -> None:
    liar.answer = (200, b"x" * 20 * 1024**2)  # type: ignore[attr-defined]
    member = members[1]
    out = save(members, member, f"http://127.0.0.1:{liar.server_port}", fails=True)
    assert "curl" in (member.shell.state / "backup.unsent").read_text()
    assert not list(kept(member, out).parent.glob(".*"))


def test_a_store_that_is_away_or_stands_still_ends_in_time(members: Members) -> None:
    member = members[1]
    silent = ThreadingHTTPServer(("127.0.0.1", 0), _Answer, bind_and_activate=False)
    silent.server_bind()
    silent.server_activate()  # takes connections, and nobody serves them
    try:
        begun = time.monotonic()
        out = save(members, member, f"http://127.0.0.1:{silent.server_port}", fails=True)
    finally:
        silent.server_close()
    assert "too slow" in out
    assert time.monotonic() - begun < 55
    out = save(members, member, "http://127.0.0.1:9", fails=True)
    assert "Failed to connect to 127.0.0.1 port 9" in out
    assert kept(member, out).exists()


def test_after_a_failure_the_next_one_sends_and_the_trouble_is_forgotten(
    members: Members, server: S3Server
) -> None:
    member, marks = members[1], members[1].shell.state
    server.stop()
    save(members, member, server.endpoint, fails=True)
    assert (marks / "backup.unsent").exists()
    server.start()
    save(members, member, server.endpoint)
    assert not (marks / "backup.unsent").exists()
    assert not (marks / "backup.begun").exists()


@pytest.mark.parametrize("missing", ["bucket", "key", "secret", "region"])
def test_a_real_server_refuses_what_is_wrong(
    members: Members, server: S3Server, missing: str
) -> None:
    member = members[1]
    others = {
        "bucket": {"BACKUP_STORE": f"{server.endpoint}/no-such-bucket"},
        "key": {"BACKUP_ACCESS_KEY": "AKIAOTHER"},
        "secret": {},
        "region": {"BACKUP_REGION": "us-east-1"},
    }[missing]
    if missing == "secret":
        (member.pki / "store.key").write_text("wrong\n")
    try:
        out = save(members, member, server.endpoint, fails=True, **others)
    finally:
        (member.pki / "store.key").write_text(f"{SECRET}\n")
    word = {
        "bucket": "404 NoSuchBucket",
        "key": "404 XAdminUserNotFound",
        "secret": "403 SignatureDoesNotMatch",
        "region": "400 AuthorizationHeaderMalformed",
    }[missing]
    assert word in out
    if missing in ("key", "secret"):
        assert "kube-ha:backupSecretKey" in out
    assert server.objects == []


def test_a_curl_that_cannot_sign_says_so_and_asks_nobody(members: Members) -> None:
    member = members[1]
    member.shell.stub("curl", 'echo "curl 7.81.0 (x86_64) libcurl/7.81.0"')
    try:
        out = save(members, member, "http://127.0.0.1:9", fails=True)
    finally:
        (member.shell.folder / "bin/curl").unlink()
    assert "curl 7.81.0 here cannot sign it; 7.88 can" in out
    assert [call for call in member.shell.calls if call.startswith("curl")][-1] == (
        "curl -q --version"
    )


def test_a_member_that_is_left_is_saved_whatever_the_store_does(members: Members) -> None:
    out = save(members, members[1], "http://127.0.0.1:9", REASON="survivor")
    assert kept(members[1], out).name.endswith("-survivor.db.gz.enc")


def test_tls_is_checked_by_the_ca_of_the_config(members: Members, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    server = S3Server(tmp_path / "s3", tls=(cert, key))
    member = members[1]
    try:
        server.start()
        out = save(members, member, server.endpoint, fails=True)
        assert "etcd.backup.objectStore.ca" in out
        (member.pki / "store-ca.crt").write_bytes(cert.read_bytes())
        out = save(members, member, server.endpoint, BACKUP_CA="1")
        assert len(server.objects) == 2
        assert reader(server.endpoint, ca=cert.read_text()).names() == [kept(member, out).name]
        with pytest.raises(StackError, match=r"cannot be read: .*CERTIFICATE_VERIFY_FAILED"):
            reader(server.endpoint).names()
    finally:
        server.stop()


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    own = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "store")])
    now = datetime.datetime.now(datetime.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder(name, name, own.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(own, hashes.SHA256())
    )
    cert, key = folder / "store.crt", folder / "store.pem"
    cert.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert, key


def test_what_was_cut_or_changed_in_the_store_is_refused(
    members: Members, server: S3Server, tmp_path: Path
) -> None:
    name = kept(members[1], save(members, members[1], server.endpoint)).name
    file = server.bucket / FOLDER / name
    whole = file.read_bytes()
    store = reader(server.endpoint)
    file.write_bytes(whole[:-4096])
    with pytest.raises(StackError, match=r"is not what .*sha256 says"):
        store.fetch(name, tmp_path)
    assert not (tmp_path / name).exists()
    file.write_bytes(whole)
    fetched = store.fetch(name, tmp_path)
    fetched.write_bytes(whole[:-1])  # one that is here and is not whole is brought again
    assert store.fetch(name, tmp_path).read_bytes() == whole
    (server.bucket / FOLDER / f"{name}.sha256").unlink()
    with pytest.raises(StackError, match="404 NoSuchKey"):
        store.fetch(name, tmp_path)
    with pytest.raises(StackError, match="is not a name of a snapshot"):
        store.fetch("../../etc/passwd", tmp_path)


def test_the_latest_is_the_newest_that_bears_the_seal_whatever_names_say(
    members: Members, server: S3Server, tmp_path: Path
) -> None:
    real = kept(members[1], save(members, members[1], server.endpoint))
    folder = server.bucket / FOLDER

    def put(name: str, content: bytes) -> None:
        (folder / name).write_bytes(content)
        (folder / f"{name}.sha256").write_text(f"{hashlib.sha256(content).hexdigest()}  {name}\n")

    put("dev-20990101T000000Z-9-master-1-manual.db.enc", b"not encrypted at all")
    put("dev-20990102T000000Z-9-master-1-manual.db.gz.enc", b"no seal")
    put("dev-20990103T000000Z-9-master-1-manual.db.gz.enc", real.read_bytes())  # renamed
    store = reader(server.endpoint)
    found = object_store.taken(store, "store:latest", tmp_path, BACKUP_KEY)
    assert found.name == real.name
    assert object_store.taken(store, "store:latest", tmp_path, None).name.startswith("dev-20990103")
    (folder / real.name).unlink()
    with pytest.raises(StackError, match="bears the seal of this stack") as told:
        object_store.taken(store, "store:latest", tmp_path, BACKUP_KEY)
    assert "UNAUTHENTICATED=1" in str(told.value)
    for name in (path.name for path in folder.glob("dev-2099*.enc")):
        file = object_store.taken(store, f"store:{name}", tmp_path, BACKUP_KEY)
        with pytest.raises(SnapshotError, match=r"bears no seal|was made as"):
            snapshot_file.opened(file, BACKUP_KEY, tmp_path, sealed=True)


def test_operations_say_what_is_wrong_with_a_store(server: S3Server, tmp_path: Path) -> None:
    with pytest.raises(StackError, match="403 SignatureDoesNotMatch"):
        reader(server.endpoint, secret="wrong").names()
    with pytest.raises(StackError, match="there is no snapshot at"):
        object_store.taken(reader(server.endpoint), "store:latest", tmp_path, BACKUP_KEY)
    with pytest.raises(StackError, match="404 NoSuchBucket"):
        replace(reader(server.endpoint), bucket="no-such-bucket").names()
    with pytest.raises(StackError, match=r"cannot be read: .*refused"):
        reader("http://127.0.0.1:9").names()
