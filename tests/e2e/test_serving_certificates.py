"""Story: kubelets that sign their own certificates get those of the cluster's CA, then API servers check them; one that shows another is refused."""

from __future__ import annotations

from tests.e2e.harness import config, kubelets
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import LabError
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NODES = {"master-1", "worker-1"}
FIELD = "kubelet.servingCertificates"
# One that the kubelet made itself would look the same to whoever does not ask the CA.
_FORGE = rf"""
set -e
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /O=system:nodes/CN=system:node:worker-1 \
  -addext subjectAltName=DNS:worker-1,IP:$address -keyout /run/forged.key -out /run/forged.crt 2>/dev/null
cat /run/forged.crt /run/forged.key >/var/lib/kubelet/pki/forged.pem
rm /run/forged.*
ln -sfn /var/lib/kubelet/pki/forged.pem {kubelets.PEM}
systemctl restart kubelet
"""


def wanted() -> config.Config:
    out = config.lab("test-serving", "10.93.58.0/24", masters=1, workers=1)
    out["kubelet"] = {"servingCertificates": "self-signed"}
    return out


def test_steps_follow_each_other_and_logs_are_read_after_each(cluster: Stack) -> None:
    kubelets.assert_reached(cluster, NODES)
    cluster.edit(FIELD, "verified")
    assert "cannot go from 'self-signed' to 'verified'" in cluster.preview(fails=True).output
    for step in ("issued", "verified"):
        cluster.edit(FIELD, step)
        update = cluster.up()
        cluster.took(f"{step}", update.seconds)
        kubelets.assert_certified(cluster, NODES)
        kubelets.assert_reached(cluster, NODES)
    cluster.edit(FIELD, "self-signed")
    assert "cannot go from 'verified' to 'self-signed'" in cluster.preview(fails=True).output
    cluster.edit(FIELD, "verified")


def test_second_up_changes_nothing(cluster: Stack) -> None:
    assert_up_changes_nothing(cluster)


def test_a_kubelet_that_shows_another_certificate_is_refused_and_gets_a_new_one(
    cluster: Stack,
) -> None:
    worker, pod = cluster.node("worker-1"), kubelets.pods(cluster)["worker-1"]
    worker.run(f"address={kubelets.internal_ip(cluster, 'worker-1')}\n{_FORGE}")

    def read() -> str:
        try:
            cluster.kubectl("-n", "kube-system", "logs", "--tail=1", pod)
        except LabError as error:
            return str(error)
        return ""

    def not_refused() -> str:
        said = read()
        return (
            "" if "certificate signed by unknown authority" in said else f"logs: {said or 'read'}"
        )

    wait_for("logs refused", not_refused, limit_s=60)
    # By the kubelet's own request, which the approver answers.
    worker.run(f"rm -f {kubelets.PEM} /var/lib/kubelet/pki/forged.pem; systemctl restart kubelet")
    seconds = wait_for("logs read again", read, limit_s=90)
    cluster.measured(f"a kubelet without certificate is reached after {seconds:.0f} s")
    kubelets.assert_certified(cluster, {"worker-1"})
