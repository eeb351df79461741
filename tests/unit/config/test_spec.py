"""Refused configs: each with the exact path and text a user reads."""

from __future__ import annotations

import pytest

from stacks.load import load
from tests.unit.configs import GONE, adopted, host, host_key, lab, problems

NO_LABEL_KEY = "is not a label key; use [domain/]name, up to 63 letters, digits and - _ ."


BAD = [
    ({"allow": ["mass-removal"]}, "allow[0]", "`mass-removal` does not say for what; write it as the refusal does: mass-removal/..."),
    ({"allow": ["mas-removal/a"]}, "allow[0]", "unknown id `mas-removal`; did you mean `mass-removal`?"),
    ({"allow": ["everything/a"]}, "allow[0]", "unknown id `everything`; known are balancer-replaced, cloud-controller, host-key, leave-together, machine-protected, mass-rebuild, mass-removal, network-backend, network-bgp-as-number, network-bgp-reflector-pools, network-bgp-topology"),
    ({"allow": ["fixed/cluster.name"]}, "allow[0]", "`fixed` cannot be allowed: the cluster cannot be changed into it"),
    ({"allow": ["a b"]}, "allow[0]", "'a b' is not an id; write it as the refusal does, kind/subject"),
    # Front doors
    ({"frontDoors.vip.address": "10.93.0.5"}, "frontDoors.vip.address", "10.93.0.5 is not within machines.lab.subnet 10.92.0.0/24, where the masters are; choose a free address of it"),
    ({"frontDoors.vip.address": "10.92.0.12"}, "frontDoors.vip.address", "10.92.0.12 is the address of master-2; choose one that no machine has"),
    ({"frontDoors.vip.address": "10.92.0.101"}, "frontDoors.vip.address", "10.92.0.101 is the address of worker-1; choose one that no machine has"),
    ({"frontDoors.vip.address": "10.92.0.2"}, "frontDoors.vip.address", "10.92.0.2 is the mirror's; choose a free one"),
    ({"frontDoors.vip.address": "10.92.0.255"}, "frontDoors.vip.address", "10.92.0.255 is the network's broadcast address; choose a free one"),
    ({"frontDoors.vip": {"address": "10.92.0.5", "subnet": "10.92.0.0/25"}}, "frontDoors.vip.subnet", "is machines.lab.subnet in the lab; leave it out"),
    ({"frontDoors.vip": {"port": 8443}}, "frontDoors.vip.address", "is missing (free address of the masters' network, or of that of the load balancers where there are any; one of them at a time has it)"),
    ({"frontDoors.vip": {"address": "10.92.0.5", "port": 6443}}, "frontDoors.vip.port", "6443 belongs to the API server on master-1; choose another one"),
    ({"frontDoors.vip": {"address": "10.92.0.5", "port": 2379}}, "frontDoors.vip.port", "2379 belongs to etcd's clients on master-1; choose another one"),
    ({"frontDoors.vip": {"address": "10.92.0.5", "port": 22}}, "frontDoors.vip.port", "22 belongs to sshd on master-1; choose another one"),
    ({"frontDoors.vip": {"address": "10.92.0.5", "port": 30443}}, "frontDoors.vip.port", "30443 is among the ports of Services of type NodePort, 30000 to 32767"),
    ({"frontDoors.vip": {"address": "10.92.0.5", "routerId": 0}}, "frontDoors.vip.routerId", "0 is too small; at least 1"),
    ({"frontDoors.vip": {"address": "10.92.0.5", "routerId": 256}}, "frontDoors.vip.routerId", "256 is too big; at most 255"),
    ({"frontDoors.vip": {"address": "10.92.0.5", "interface": "eth0; reboot"}}, "frontDoors.vip.interface", "'eth0; reboot' is not a name of an interface; use up to 15 letters, digits and - _ ., as 'eth0'"),
    ({"frontDoors.vip": {"address": "10.92.0.5", "failover": "own", "routerId": 7}}, "frontDoors.vip.routerId", "does nothing with failover own, which has no VRRP of kube-ha; leave it out"),
    ({"frontDoors.vip": {"address": "10.92.0.5"}, "cluster.endpoint": "10.92.0.5"}, "cluster.endpoint", "leads past HAProxy to the one API server of the master that holds the VIP; write 10.92.0.5:8443, or leave it out"),
    ({"frontDoors.verify": "here"}, "frontDoors.verify", "asks at cluster.endpoint, which is missing; name there what points to the masters"),
    ({"frontDoors.etcd": {"pools": ["master"]}}, "frontDoors.etcd.pools[0]", "master has etcd's members, which answer at 127.0.0.1:2379 already; leave it out"),
    ({"frontDoors.etcd": {"pools": ["workers"]}}, "frontDoors.etcd.pools[0]", "'workers' is not a pool; there are master, worker"),
    ({"frontDoors.etcd": {"pools": ["worker", "worker"]}}, "frontDoors.etcd.pools[1]", "worker is there twice"),
    ({"frontDoors.etcd": {"pools": []}}, "frontDoors.etcd.pools", "is empty; name a pool, or leave out frontDoors.etcd"),
    ({"frontDoors.etcd": {"pools": ["worker"], "port": 3446}}, "frontDoors.etcd.port", "3446 belongs to HAProxy, the node's way to the API on worker-1; choose another one"),
    ({"frontDoors.dns": "unmanaged"}, "frontDoors.dns", "looks at the name in cluster.endpoint, which is missing; write a name there, or none here"),
    ({"frontDoors.dns": "unmanaged", "cluster.endpoint": "10.92.0.11"}, "frontDoors.dns", "looks at the name in cluster.endpoint, which is 10.92.0.11; write a name there, or none here"),
    ({"frontDoors.dns": "unmanaged", "cluster.endpoint": "api.test:443"}, "cluster.endpoint", "api.test points to masters, where the API answers at 6443; write api.test:6443"),
    ({"frontDoors": {"dns": "unmanaged", "vip": {"address": "10.92.0.5"}}, "cluster.endpoint": "api.test"}, "cluster.endpoint", "api.test points to the VIP 10.92.0.5, where the API answers at 8443; write api.test:8443"),
    ({"frontDoors.ingress": {"hosts": ["a.test"]}}, "frontDoors.ingress", "listens at the VIP, which is missing; write frontDoors.vip too"),
    ({"frontDoors": {"vip": {"address": "10.92.0.5"}, "ingress": {}}}, "frontDoors.ingress.hosts", "is missing; name hosts for a certificate of the cluster's CA, or give certificates"),
    ({"frontDoors": {"vip": {"address": "10.92.0.5", "port": 443}, "ingress": {"hosts": ["a.test"]}}}, "frontDoors.vip.port", "443 is the ingress tier's; choose another one for the API"),
    ({"frontDoors": {"vip": {"address": "10.92.0.5"}, "ingress": {"hosts": ["a.test"], "pools": ["master"]}}}, "frontDoors.ingress.pools[0]", "'master' is not a pool with role worker; there are worker"),
    ({"frontDoors": {"vip": {"address": "10.92.0.5"}, "ingress": {"hosts": ["a.test"], "nodePort": 8080}}}, "frontDoors.ingress.nodePort", "8080 is not a port of a Service of type NodePort; those are 30000 to 32767"),
    ({"frontDoors": {"vip": {"address": "10.92.0.5"}, "ingress": {"hosts": ["a b"]}}}, "frontDoors.ingress.hosts[0]", "'a b' is not a DNS name; use a-z, 0-9, '-' and dots between labels"),
    ({"frontDoors": {"vip": {"address": "10.92.0.5"}, "ingress": {"certificates": [{"certificate": "/nowhere/a.pem", "key": "/nowhere/a.key"}]}}}, "frontDoors.ingress.certificates[0].certificate", "'/nowhere/a.pem' cannot be read (no such file or directory)"),
    # Names of keys
    ({"kublet": {"maxPods": 50}}, "kublet", "unknown key `kublet`; did you mean `kubelet`?"),
    ({"pools.worker.lables": {}}, "pools.worker.lables", "unknown key `lables`; did you mean `labels`?"),
    ({"cluster.podCIDR": "10.0.0.0/8"}, "cluster.podCIDR", "unknown key `podCIDR`; did you mean `podCidr`?"),
    ({"cluster.pod_cidr": "10.0.0.0/8"}, "cluster.pod_cidr", "unknown key `pod_cidr`; did you mean `podCidr`?"),
    ({"network.zzz": 1}, "network.zzz", "unknown key `zzz`; known are plugin, backend, kubeProxyReplacement, proxyMode, nodeCidrMask, dnsReplicas, mtu, bgpTopology, bgpReflectorPools, bgpAsNumber, bgpPeers, blockSize, typha, own"),
    ({"kubelet.maxPod": 1}, "kubelet.maxPod", "unknown key `maxPod`; did you mean `maxPods`?"),
    # Types
    ({"pools.worker.count": "2"}, "pools.worker.count", '"2" is not a whole number'),
    ({"pools.worker.count": 2.5}, "pools.worker.count", "2.5 is not a whole number"),
    ({"pools.worker.count": True}, "pools.worker.count", "true is not a whole number"),
    ({"pools.worker.count": -1}, "pools.worker.count", "-1 is too small; at least 0"),
    ({"pools.worker.count": 5001}, "pools.worker.count", "5001 is too big; at most 5000"),
    ({"cluster.kubernetes": 1.36}, "cluster.kubernetes", "1.36 is a number to YAML; write all three parts, in quotes; known are '1.36.3', '1.36.1', '1.35.4'"),
    ({"cluster": "dev"}, "cluster", '"dev" is not a mapping; write key: value lines below it'),
    ({"pools": []}, "pools", "[] is not a mapping; write key: value lines below it"),
    ({"pools.worker.roles": "worker"}, "pools.worker.roles", "\"worker\" is not a list; write [a, b] or lines that start with '-'"),
    ({"controlPlane.profiling": "no"}, "controlPlane.profiling", '"no" is neither true nor false'),
    ({"machines.provider": "azure"}, "machines.provider", "\"azure\" is not one of 'lab', 'adopt', 'gcp', 'aws', 'hcloud'"),
    ({"cluster": {"name": {"secure": "v1:x"}, "kubernetes": "1.36.3"}}, "cluster.name", "is encrypted; plans and previews show this value, so write it in plain text"),
    ({"machines": {"secure": ""}}, "machines", "is encrypted; plans and previews show this value, so write it in plain text"),
    ({"cluster.name": GONE}, "cluster.name", "is missing (first part of every resource name; fixed for life)"),
    ({"cluster": GONE}, "cluster", "is missing (what the cluster is)"),
    ({"pools": GONE}, "pools", "is missing (groups of equal machines, by name)"),
    # Cluster
    ({"cluster.name": "Dev"}, "cluster.name", "'Dev' is not an RFC 1123 label; use 1 to 63 of a-z, 0-9 and '-', not '-' at an end"),
    ({"cluster.name": "1dev"}, "cluster.name", "'1dev' starts with a digit; start with a letter"),
    ({"cluster.name": "d" * 33}, "cluster.name", f"'{'d' * 33}' has 33 characters; at most 32 fit resource names"),
    ({"cluster.name": "dev\n"}, "cluster.name", "'dev\\n' is not an RFC 1123 label; use 1 to 63 of a-z, 0-9 and '-', not '-' at an end"),
    ({"cluster.kubernetes": "v1.36.3"}, "cluster.kubernetes", "'v1.36.3': write it without the v, as '1.36.3'"),
    ({"cluster.kubernetes": "1.36"}, "cluster.kubernetes", "'1.36' is not a version; write major.minor.patch, as '1.36.3'"),
    ({"cluster.kubernetes": "latest"}, "cluster.kubernetes", "'latest' is not a version; write major.minor.patch, as '1.36.3'"),
    ({"cluster.kubernetes": "1.36.99"}, "cluster.kubernetes", "'1.36.99' is not in artifacts/lock.yaml; it has 1.36.3, 1.36.1, 1.35.4"),
    ({"cluster.podCidr": "10.244.0.0"}, "cluster.podCidr", "'10.244.0.0' is not an IPv4 network; write address/bits, as '10.244.0.0/16', or '10.244.0.0/32' for it alone"),
    ({"cluster.podCidr": "10.244.0.1/16"}, "cluster.podCidr", "'10.244.0.1/16' has host bits set; the network is '10.244.0.0/16'"),
    ({"cluster.podCidr": "fd00::/48"}, "cluster.podCidr", "'fd00::/48' is not an IPv4 network; write address/bits, as '10.244.0.0/16'"),
    ({"cluster.podCidr": "10.96.128.0/17"}, "cluster.serviceCidr", "10.96.0.0/16 overlaps cluster.podCidr 10.96.128.0/17; use networks of their own"),
    ({"machines.lab.subnet": "10.96.1.0/24"}, "machines.lab.subnet", "10.96.1.0/24 overlaps cluster.serviceCidr 10.96.0.0/16; use networks of their own"),
    ({"cluster.podCidr": "10.244.0.0/25"}, "cluster.podCidr", "/25 does not fit: every node takes a /24 of it, and kubeadm makes 65536 of those at most; use /8 to /24"),
    ({"cluster.serviceCidr": "10.128.0.0/11"}, "cluster.serviceCidr", "/11 does not fit: an API server takes a million addresses at most, and .10 is DNS; use /12 to /27"),
    ({"cluster.podCidr": "10.244.0.0/22"}, "cluster.podCidr", "10.244.0.0/22 has room for 4 nodes (a /24 each) of 5; use /21"),
    ({"cluster.podCidr": "10.128.0.0/9", "network.nodeCidrMask": 27, "kubelet.maxPods": 29}, "cluster.podCidr", "/9 does not fit: every node takes a /27 of it, and kubeadm makes 65536 of those at most; use /11 to /27"),
    ({"cluster.podCidr": "10.244.0.0/25", "network.nodeCidrMask": 27, "kubelet.maxPods": 29}, "cluster.podCidr", "10.244.0.0/25 has room for 4 nodes (a /27 each) of 5; use /24"),
    ({"cluster.podCidr": "169.254.0.0/16"}, "cluster.podCidr", "169.254.0.0/16 meets 169.254.0.0/16, which is link-local; use a private network"),
    ({"cluster.serviceCidr": "240.0.0.0/16"}, "cluster.serviceCidr", "240.0.0.0/16 meets 224.0.0.0/3, which is multicast and reserved; use a private network"),
    ({"cluster.endpoint": "127.0.0.1"}, "cluster.endpoint", "'127.0.0.1' is not an address of a machine (loopback, multicast or reserved)"),
    ({"cluster.endpoint": "localhost:6443"}, "cluster.endpoint", "localhost is whichever machine asks; name what clients outside reach the masters by"),
    ({"cluster.endpoint": "10.244.7.1"}, "cluster.endpoint", "10.244.7.1 is in cluster.podCidr 10.244.0.0/16, which nobody outside reaches"),
    ({"cluster.endpoint": "10.96.0.1:443"}, "cluster.endpoint", "10.96.0.1 is in cluster.serviceCidr 10.96.0.0/16, which nobody outside reaches"),
    ({"cluster.endpoint": "10.92.0.102"}, "cluster.endpoint", "10.92.0.102 is worker-2, where no API server listens; name a master or what points to the masters (a load balancer, a VIP)"),
    ({"cluster.endpoint": "10.92.0.51", "pools.etcd": {"roles": ["etcd"], "count": 1}}, "cluster.endpoint", "10.92.0.51 is etcd-1, where no API server listens; name a master or what points to the masters (a load balancer, a VIP)"),
    ({"cluster.dnsDomain": "Cluster.local"}, "cluster.dnsDomain", "'Cluster.local' is not a DNS name; use a-z, 0-9, '-' and dots between labels"),
    ({"cluster.endpoint": "api.example.com:70000"}, "cluster.endpoint", "'api.example.com:70000': the part after ':' is not a port; use 1 to 65535"),
    ({"cluster.endpoint": "https://api"}, "cluster.endpoint", "'https://api' is not a host[:port]; leave out scheme, path and user"),
    ({"cluster.endpoint": "10.0.0.300"}, "cluster.endpoint", "'10.0.0.300' is not an IPv4 address; write four numbers, as 10.0.0.11"),
    # Lab
    ({"machines.lab.subnet": "10.92.0.0/29"}, "machines.lab.subnet", "/29 does not fit: machines have numbers from 10 on in it, and a host has one such bridge; use /16 to /28"),
    ({"machines.ssh": {"user": "ops"}}, "machines.ssh", "is for provider adopt; the lab makes its own keys"),
    ({"pools.worker.count": GONE}, "pools.worker.count", "is missing; the lab makes this many machines"),
    ({"pools.worker.hosts": [host("worker", 1)]}, "pools.worker.hosts", "is for provider adopt; in the lab write count"),
    ({"pools.worker.count": 200}, "pools.worker.addressOffset", "10.92.0.101 to 10.92.1.44 is not within 10.92.0.3 to 10.92.0.254; lower it, or widen machines.lab.subnet"),
    ({"pools.worker.addressOffset": 12}, "pools.worker.addressOffset", "10.92.0.13 to 10.92.0.14 meets the addresses of pool master; move it by 1"),
    # Pools
    ({"pools.master.roles": ["etcd"]}, "pools", "no machine has role master; give it to a pool of at least 1, better 3 machines"),
    ({"pools.master.roles": ["master"]}, "pools", "no machine has role etcd; give it to a pool of at least 1, better 3 machines"),
    ({"pools.master.count": 9}, "pools", "9 etcd members are more than 7; use 3 or 5"),
    ({"pools.worker": GONE, "pools/" + "w" * 51: {"roles": ["worker"], "count": 2}}, f"pools.{'w' * 51}", f"{'w' * 51}-1 has 53 characters, 52 fit into the certificate that its kubelet serves with; take a shorter name, or set kubelet.servingCertificates: self-signed"),
    ({"pools.worker.roles": []}, "pools.worker.roles", "is empty; give at least one of etcd, master, worker, loadbalancer"),
    ({"pools.worker.roles": ["worker", "worker"]}, "pools.worker.roles", "[worker, worker] names a role twice"),
    ({"pools.worker.roles": ["wroker"]}, "pools.worker.roles[0]", "\"wroker\" is not one of 'etcd', 'master', 'worker', 'loadbalancer'"),
    ({"pools.worker.roles": ["etcd", "worker"]}, "pools.worker.roles", "etcd and worker: pods would slow the disk that every write of the cluster waits for; give etcd machines of its own, or share masters' ([etcd, master])"),
    ({"pools/Worker": {"roles": ["worker"], "count": 1}}, "pools.Worker", "'Worker' is not an RFC 1123 label; use 1 to 63 of a-z, 0-9 and '-', not '-' at an end"),
    ({"pools.worker.labels": {"a b": "c"}}, 'pools.worker.labels."a b"', f"'a b' {NO_LABEL_KEY}"),
    ({"pools.worker.labels": {"a": "b\n"}}, "pools.worker.labels.a", "'b\\n' is not a label value; use up to 63 letters, digits and - _ . between them"),
    ({"pools.worker.labels": {"a": True}}, "pools.worker.labels.a", "true is not a text; put it in quotes"),
    ({"pools.worker.labels": {"kubernetes.io/hostname": "x"}}, "pools.worker.labels", "`kubernetes.io/hostname` is given by Kubernetes itself; leave it out"),
    ({"nodes": {"worker-1": {"labels": {"kubernetes.io/os": ""}}}}, "nodes.worker-1.labels", "`kubernetes.io/os` is given by Kubernetes itself; leave it out"),
    ({"pools.worker.taints": [{"key": "a", "effect": "Never"}]}, "pools.worker.taints[0].effect", "\"Never\" is not one of 'NoSchedule', 'PreferNoSchedule', 'NoExecute'"),
    ({"pools.worker.taints": [{"key": "a/b/c", "effect": "NoSchedule"}]}, "pools.worker.taints[0].key", "'a/b/c': the part before '/' is not a DNS name"),
    ({"pools.worker.taints": [{"key": "a", "value": "b c", "effect": "NoSchedule"}]}, "pools.worker.taints[0].value", "'b c' is not a label value; use up to 63 letters, digits and - _ . between them"),
    ({"pools.worker.taints": [{"effect": "NoSchedule"}]}, "pools.worker.taints[0].key", "is missing ([domain/]name)"),
    ({"pools.worker.taints": [{"key": "a", "effect": "NoSchedule"}] * 2}, "pools.worker.taints[1]", "a:NoSchedule is there twice; a node has one value for it"),
    ({"pools.worker.zones": ["a b"]}, "pools.worker.zones[0]", "'a b' is not a name of a zone; use up to 63 letters, digits and - _ . between them, as 'eu-central-1a' or 'room-2'"),
    ({"pools.worker.zones": [""]}, "pools.worker.zones[0]", "'' is not a name of a zone; use up to 63 letters, digits and - _ . between them, as 'eu-central-1a' or 'room-2'"),
    ({"pools.worker.zones": ["a", "b", "a"]}, "pools.worker.zones", "[a, b, a] names a zone twice; machines take turns, so name each once"),
    ({"pools.worker": {"roles": ["worker"], "count": 1, "zones": ["a"], "labels": {"topology.kubernetes.io/zone": "a"}}}, "pools.worker.labels", "`topology.kubernetes.io/zone` stands beside the machine's zone; leave the label out"),
    ({"pools.worker.zones": ["a"], "nodes": {"worker-2": {"labels": {"topology.kubernetes.io/zone": "b"}}}}, "nodes.worker-2.labels", "`topology.kubernetes.io/zone` stands beside the machine's zone; leave the label out"),
    ({"pools.etcd": {"roles": ["etcd"], "count": 1, "labels": {"a": "b"}}}, "pools.etcd.labels", "an etcd machine is not a Kubernetes node; leave out labels and taints"),
    ({"pools.worker.arch": "x86"}, "pools.worker.arch", "\"x86\" is not one of 'amd64', 'arm64'"),
    ({"pools.worker.addressOffset": 1}, "pools.worker.addressOffset", "1 is too small; at least 2"),
    ({"nodes": {"worker-3": {}}}, "nodes.worker-3", "no node has this name; did you mean 'worker-2'?"),
    ({"nodes": {"x": {}}}, "nodes.x", "no node has this name; there are master-1, master-2, master-3, worker-1, worker-2"),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "path", "text"), BAD)
def test_a_bad_lab_config_is_refused_with_its_path_and_the_way_out(
    edits: dict[str, object], path: str, text: str
) -> None:
    assert problems(lab(edits)) == [(path, text)]


BAD_ADOPTED = [
    ({"machines.ssh": {}}, "machines.ssh.privateKeyFile", "is missing; name a private key file, or set machines.ssh.agent: true"),
    ({"machines.lab": {"subnet": "10.93.0.0/24"}}, "machines.lab", "is for provider lab; leave it out"),
    ({"machines.ssh.user": "root; reboot"}, "machines.ssh.user", "'root; reboot' is not a login name; use a-z, 0-9, '_' and '-'"),
    ({"machines.ssh.user": "-oProxyCommand=x"}, "machines.ssh.user", "'-oProxyCommand=x' is not a login name; use a-z, 0-9, '_' and '-'"),
    ({"machines.ssh.port": 0}, "machines.ssh.port", "0 is too small; at least 1"),
    ({"machines.ssh.bastion": {"address": "b.example.com"}}, "machines.ssh.bastion.hostKey", "is missing; `make hostkeys STACK=...` prints that of b.example.com: compare it with the machine's console and write it here (or, unprotected, set machines.ssh.insecureIgnoreHostKey: true)"),
    ({"machines.ssh.bastion": {"user": "x"}}, "machines.ssh.bastion.address", "is missing (machine through which all others are reached)"),
    ({"pools.worker.hosts.0.hostKey": GONE}, "pools.worker.hosts[0].hostKey", "is missing; `make hostkeys STACK=...` prints that of 192.0.2.101: compare it with the machine's console and write it here (or, unprotected, set machines.ssh.insecureIgnoreHostKey: true)"),
    ({"pools.worker.hosts.0.hostKey": "ssh-ed25519 AAAA"}, "pools.worker.hosts[0].hostKey", "'ssh-ed25519 AAAA': the key holds no ssh-ed25519 key; was it cut?"),
    ({"pools.worker.hosts.0.hostKey": "192.0.2.101 " + host_key(1)}, "pools.worker.hosts[0].hostKey", "'192.0.2.101 ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzd...' is a line of known_hosts; leave out its first word"),
    ({"pools.worker.hosts.0.hostKey": "SHA256:abc"}, "pools.worker.hosts[0].hostKey", "'SHA256:abc' is not an OpenSSH public key; write 'ecdsa-sha2-nistp256 AAAA...', as `make hostkeys` shows it, compared with the machine's console"),
    ({"pools.worker.hosts.0.hostKey": "ssh-ed25519 ä"}, "pools.worker.hosts[0].hostKey", "'ssh-ed25519 ä': the key is not base64; was it cut?"),
    ({"pools.worker.hosts.1.hostKey": host_key(101)}, "pools.worker.hosts[1].hostKey", "this key is taken by worker-1 (pools.worker.hosts[0])"),
    ({"pools.worker.hosts.1.address": "192.0.2.11"}, "pools.worker.hosts[1].address", "'192.0.2.11' is taken by master-1 (pools.master.hosts[0])"),
    ({"pools.worker.hosts.1.sshAddress": "Node_1"}, "pools.worker.hosts[1].sshAddress", "'Node_1' is not a DNS name; use a-z, 0-9, '-' and dots between labels"),
    ({"pools.worker.hosts.1.sshAddress": "127.0.0.1"}, "pools.worker.hosts[1].sshAddress", "'127.0.0.1' is not an address of a machine (loopback, multicast or reserved)"),
    ({"pools.worker.hosts.1.sshAddress": "localhost"}, "pools.worker.hosts[1].sshAddress", "localhost is whichever machine asks; write an address or name that all reach"),
    ({"pools.master.hosts.0.sshAddress": "192.0.2.101"}, "pools.master.hosts[0].sshAddress", "192.0.2.101, port 22, is the way to worker-1 (pools.worker.hosts[0]); each machine has its own address or port"),
    ({"pools.worker.hosts.0.sshAddress": "gate.example.com", "pools.worker.hosts.1.sshAddress": "gate.example.com"}, "pools.worker.hosts[1].sshAddress", "gate.example.com, port 22, is the way to worker-1 (pools.worker.hosts[0]); each machine has its own address or port"),
    ({"pools.worker.hosts.0.sshAddress": "192.0.2.5", "frontDoors.vip": {"address": "192.0.2.5"}}, "pools.worker.hosts[0].sshAddress", "192.0.2.5 is the VIP, which moves between machines; name an address that stays"),
    ({"pools.worker.hosts.1.name": "worker-1"}, "pools.worker.hosts[1].name", "'worker-1' is taken by worker-1 (pools.worker.hosts[0])"),
    ({"pools.worker.hosts.1.name": "w" * 53}, "pools.worker.hosts[1].name", f"{'w' * 53} has 53 characters, 52 fit into the certificate that its kubelet serves with; take a shorter name, or set kubelet.servingCertificates: self-signed"),
    ({"pools.worker.hosts.1.name": "worker_2"}, "pools.worker.hosts[1].name", "'worker_2' is not an RFC 1123 label; use 1 to 63 of a-z, 0-9 and '-', not '-' at an end"),
    ({"pools.worker.hosts.1.address": "127.0.0.1"}, "pools.worker.hosts[1].address", "'127.0.0.1' is not an address of a machine (loopback, multicast or reserved)"),
    ({"pools.worker.hosts.1.address": "224.0.0.5"}, "pools.worker.hosts[1].address", "'224.0.0.5' is not an address of a machine (loopback, multicast or reserved)"),
    ({"pools.worker.hosts.1.address": "255.255.255.255"}, "pools.worker.hosts[1].address", "'255.255.255.255' is not an address of a machine (loopback, multicast or reserved)"),
    ({"pools.worker.hosts.1.address": "0.0.0.12"}, "pools.worker.hosts[1].address", "'0.0.0.12' is not an address of a machine (loopback, multicast or reserved)"),
    ({"pools.worker.hosts.1.address": "169.254.3.4"}, "pools.worker.hosts[1].address", "169.254.3.4 is link-local, and may be another machine's after a boot; give the machine an address of its own"),
    ({"pools.worker.hosts.1.address": "10.96.3.4"}, "pools.worker.hosts[1].address", "10.96.3.4 is in cluster.serviceCidr 10.96.0.0/16; choose another network there"),
    ({"machines.ssh.port": 10250}, "machines.ssh.port", "10250 belongs to the kubelet on master-1; let sshd listen on another port"),
    ({"machines.ssh.port": 6443}, "machines.ssh.port", "6443 belongs to the API server on master-1; let sshd listen on another port"),
    ({"pools.master.hosts.1.port": 2380}, "pools.master.hosts[1].port", "2380 belongs to etcd's members on master-2; let sshd listen on another port"),
    ({"pools.worker.hosts.0.port": 3446}, "pools.worker.hosts[0].port", "3446 belongs to HAProxy, the node's way to the API on worker-1; let sshd listen on another port"),
    ({"pools.worker.hosts.1.address": "10.244.3.4"}, "pools.worker.hosts[1].address", "10.244.3.4 is in cluster.podCidr 10.244.0.0/16; choose another network there"),
    ({"pools.worker.hosts.1.address": "worker-2.example.com"}, "pools.worker.hosts[1].address", "'worker-2.example.com' is not an IPv4 address; write four numbers, as 10.0.0.11"),
    ({"pools.worker.hosts.1.address": GONE}, "pools.worker.hosts[1].address", "is missing (address by which the other nodes reach it, and you where sshAddress is missing)"),
    ({"pools.worker.hosts.1": "192.0.2.102"}, "pools.worker.hosts[1]", '"192.0.2.102" is not a mapping; write key: value lines below it'),
    ({"pools.worker.hosts.1.hostkey": "x"}, "pools.worker.hosts[1].hostkey", "unknown key `hostkey`; did you mean `hostKey`?"),
    ({"pools.worker.zones": ["a"]}, "pools.worker.zones", "does nothing for adopted machines; write the zone of each in hosts"),
    ({"pools.worker.hosts.1.zone": "a\n"}, "pools.worker.hosts[1].zone", "'a\\n' is not a name of a zone; use up to 63 letters, digits and - _ . between them, as 'eu-central-1a' or 'room-2'"),
    ({"pools.worker.hosts.1.zone": "a", "pools.worker.labels": {"topology.kubernetes.io/zone": "a"}}, "pools.worker.labels", "`topology.kubernetes.io/zone` stands beside the machine's zone; leave the label out"),
    ({"kubelet.shutdownGracePeriodS": 10, "kubelet.shutdownGracePeriodCriticalPodsS": 11}, "kubelet.shutdownGracePeriodCriticalPodsS", "11 is more than shutdownGracePeriodS 10, which it is a part of"),
    ({"pools.worker.hosts": GONE}, "pools.worker.hosts", "is missing; list the machines to adopt"),
    ({"pools.worker.count": 2}, "pools.worker.count", "is for machines that are made; adopted machines are in hosts"),
    ({"pools.worker.addressOffset": 20}, "pools.worker.addressOffset", "is for machines that are made; adopted machines have their own address"),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "path", "text"), BAD_ADOPTED)
def test_a_bad_config_of_adopted_machines_is_refused_with_its_path_and_the_way_out(
    edits: dict[str, object], path: str, text: str
) -> None:
    assert problems(adopted(edits)) == [(path, text)]


def test_names_that_fit_and_those_that_no_certificate_holds_are_no_problem() -> None:
    load(adopted({"pools.worker.hosts.1.name": "w" * 52}))
    self_signed = {"kubelet.servingCertificates": "self-signed"}
    load(adopted(self_signed | {"pools.worker.hosts.1.name": "w" * 63}))


def test_all_problems_come_at_once_those_across_fields_too() -> None:
    found = problems(
        lab(
            {
                "cluster.name": GONE,
                "cluster.podCidr": "10.96.0.0/16",
                "kublet": {"maxPods": 50},
                "pools.master.roles": ["master"],
                "pools.worker.count": "two",
                "nodes": {"worker-1": {"labels": {"a": "b"}}},
                "etcd.electionTimeoutMs": 100,
            }
        )
    )
    assert [path for path, _ in found] == [
        "cluster.name",
        "cluster.serviceCidr",
        "etcd.electionTimeoutMs",
        "kublet",
        "pools.worker.count",
    ]


def test_a_wrong_host_keeps_its_place_so_that_paths_of_others_are_right() -> None:
    found = problems(
        adopted(
            {
                "pools.worker.hosts": [
                    {"name": "worker-0"},
                    "worker-1",
                    host("worker", 2),
                    host("worker", 2) | {"name": "worker-3", "address": "192.0.2.103"},
                ]
            }
        )
    )
    assert [path for path, _ in found] == [
        "pools.worker.hosts[0].address",
        "pools.worker.hosts[0].hostKey",
        "pools.worker.hosts[1]",
        "pools.worker.hosts[3].hostKey",
    ]


def test_without_masters_both_their_roles_are_missing() -> None:
    assert [text.split(";")[0] for _, text in problems(lab({"pools.master.count": 0}))] == [
        "no machine has role etcd",
        "no machine has role master",
    ]


@pytest.mark.parametrize(
    "raw", [{"cluster": {1, 2}}, {"cluster": 10**5000}, {"pools": {(1, 2): 3}}]
)
def test_what_is_no_plain_data_is_refused(raw: dict[str, object]) -> None:
    assert problems(raw)[0][0] == "config"


def test_empty_sections_are_the_defaults() -> None:
    empty: dict[str, object] = {"mirror": {}, "network": {}, "proxy": None}
    assert load(lab(empty)) == load(lab())


def test_encrypted_values_of_the_program_itself_are_no_business_of_the_plan() -> None:
    assert load(lab({"sshPrivateKey": {"secure": "v1:abc"}})) == load(lab())


def test_comments_of_host_keys_do_not_matter() -> None:
    commented = adopted({"pools.worker.hosts.0.hostKey": f"{host_key(101)} root@worker-1"})
    assert load(commented) == load(adopted())
