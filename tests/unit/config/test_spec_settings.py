"""Refused settings of the software, each with the exact path and text a user reads."""

from __future__ import annotations

import pytest

from stacks.checks import object_store as check_object_store
from stacks.phases import etcd_member
from stacks.phases import object_store as phase_object_store
from tests.unit.certificate import certificate
from tests.unit.configs import STORE, aws, by_identity, gcp, lab, planned, problems, with_store

PEM = (
    "write the lines from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE----- below `ca: |`, "
    "and none between or around them"
)
OIDC = {"issuerUrl": "https://id.example.com", "clientId": "kube"}

STORE_PATH = "etcd.backup.objectStore"
KEYLESS = {"etcd.backup": {"objectStore": {"endpoint": "https://s3.example.com", "bucket": "acme"}}}
GIVEN = {"backupSecretKey": {"secure": "v1:x"}}

CALICO = {"network.plugin": "calico"}
BGP = {**CALICO, "network.backend": "bgp"}
OWN = {"network.plugin": "none", "network.own": {"rollouts": ["kube-system/daemonset/kube-router"]}}
ROUTER = {"address": "192.0.2.1", "asNumber": 65001}
BAD = [
    ({"network.plugin": "weave"}, "network.plugin", "\"weave\" is not one of 'flannel', 'cilium', 'calico', 'none'"),
    ({"network.plugin": "calico", "network.backend": "native"}, "network.backend", "native is none of calico, which has vxlan, vxlan-across-subnets and bgp"),
    ({"network.plugin": "calico", "network.kubeProxyReplacement": True}, "network.kubeProxyReplacement", "does nothing with plugin calico; leave it out, or use cilium"),
    ({"network.plugin": "calico", "network.blockSize": 31}, "network.blockSize", "31 is too big; at most 30"),
    ({"network.plugin": "calico", "network.blockSize": 20, "cluster.podCidr": "10.244.0.0/21"}, "network.blockSize", "/20 is more than all of podCidr, a /21; write 21 or more"),
    ({"network.plugin": "calico", "network.blockSize": 20, "cluster.podCidr": "10.244.0.0/18"}, "network.blockSize", "10.244.0.0/18 has 4 blocks of that size for 5 nodes; write 21"),
    ({"network.blockSize": 24}, "network.blockSize", "does nothing with plugin flannel; leave it out, or use calico"),
    ({"network.plugin": "cilium", "network.typha": True}, "network.typha", "does nothing with plugin cilium; leave it out, or use calico"),
    ({**CALICO, "network.bgpTopology": "reflectors"}, "network.bgpTopology", "does nothing with backend vxlan; leave it out, or use bgp"),
    ({**CALICO, "network.bgpAsNumber": 65000}, "network.bgpAsNumber", "does nothing with backend vxlan; leave it out, or use bgp"),
    ({**BGP, "network.bgpAsNumber": 4294967295}, "network.bgpAsNumber", "4294967295 is too big; at most 4294967294"),
    ({**BGP, "network.bgpReflectorPools": ["worker"]}, "network.bgpReflectorPools", "does nothing with bgpTopology mesh; leave it out, or use reflectors"),
    ({**BGP, "network.bgpTopology": "reflectors", "network.bgpReflectorPools": ["rack"]}, "network.bgpReflectorPools[0]", "rack is not a pool of nodes; name one that has the role master or worker"),
    ({**BGP, "network.bgpTopology": "peers"}, "network.bgpTopology", "is peers, and bgpPeers has no router: no node would know a way to another's pods"),
    ({**BGP, "network.bgpPeers": [{**ROUTER, "address": f"192.0.2.{n}"} for n in range(1, 41)]}, "network.bgpPeers", "make 9068 bytes of objects, and one command takes 7000; name fewer"),
    ({**BGP, "network.bgpPeers": [ROUTER, ROUTER]}, "network.bgpPeers[1].address", "192.0.2.1 is named twice; nodes have one session with a router"),
    ({"network.nodeCidrMask": 19}, "network.nodeCidrMask", "19 is too small; at least 20"),
    ({"network.nodeCidrMask": 29}, "network.nodeCidrMask", "29 is too big; at most 28"),
    ({"network.nodeCidrMask": 26}, "kubelet.maxPods", "110 pods do not fit a node's /26 of podCidr, which has 61 addresses for them; use 61, or network.nodeCidrMask 25 for a new cluster"),
    ({"kubelet.maxPods": 254}, "kubelet.maxPods", "254 pods do not fit a node's /24 of podCidr, which has 253 addresses for them; use 253, or network.nodeCidrMask 23 for a new cluster"),
    ({"network.mtu": 9001}, "network.mtu", "9001 is too big; at most 9000"),
    ({"network.mtu": 575}, "network.mtu", "575 is too small; at least 576"),
    ({"network.plugin": "none", "network.mtu": 1400}, "network.mtu", "does nothing with plugin none; set it in your own network's manifest"),
    ({"network.own": {"policies": True}}, "network.own", "does nothing with plugin flannel; leave it out, or use none"),
    ({**OWN, "network.backend": "host-gw"}, "network.backend", "does nothing with plugin none; leave it out, or use flannel or cilium or calico"),
    ({**OWN, "network.own.mtuOverhead": 50}, "network.own.mtuOverhead", "does nothing without network.mtu; say what your manifest says there"),
    ({**OWN, "network.own.mtuOverhead": 201}, "network.own.mtuOverhead", "201 is too big; at most 200"),
    ({**OWN, "network.own.rollouts": ["kube-router"]}, "network.own.rollouts[0]", "'kube-router' is not a rollout; write namespace/daemonset/name (or deployment, statefulset), as 'kube-system/daemonset/kube-router'"),
    ({**OWN, "network.own.rollouts": ["a/daemonset/b $(x)"]}, "network.own.rollouts[0]", "'a/daemonset/b $(x)' is not a rollout; write namespace/daemonset/name (or deployment, statefulset), as 'kube-system/daemonset/kube-router'"),
    ({**OWN, "network.own.rollouts": ["a/daemonset/b", "a/daemonset/b"]}, "network.own.rollouts", "names one twice; leave it out"),
    ({**OWN, "network.own.ports": [{"protocol": "sctp", "port": 1}]}, "network.own.ports[0].protocol", "\"sctp\" is not one of 'tcp', 'udp'"),
    ({**OWN, "network.own.ports": [{"protocol": "tcp", "port": 10250}]}, "network.own.ports[0]", "10250 belongs to the kubelet; take another one"),
    ({**OWN, "network.own.ports": [{"protocol": "udp", "port": 31000}]}, "network.own.ports[0]", "31000 is among the ports of Services of type NodePort, 30000 to 32767; choose another one"),
    ({**OWN, "network.own.ports": [{"protocol": "udp", "port": 8472}, {"protocol": "udp", "port": 8472, "to": "master"}]}, "network.own.ports[1]", "udp 8472 is there twice; leave one out"),
    ({**OWN, "network.own.kernelModules": ["ip-vs; reboot"]}, "network.own.kernelModules[0]", "'ip-vs; reboot' is not a kernel module; write it as lsmod does, as 'ip_vs'"),
    ({**OWN, "network.own": {"sysctls": {"kernel.panic": "1"}}}, 'network.own.sysctls."kernel.panic"', "'kernel.panic' is not a kernel setting of networks; write it as 'net.ipv4.conf.all.rp_filter'"),
    ({**OWN, "network.own": {"sysctls": {"net.ipv4.ip_forward": "0"}}}, 'network.own.sysctls."net.ipv4.ip_forward"', "is set by the product on every node; leave it out"),
    ({**OWN, "network.own": {"sysctls": {"net.core.somaxconn": "1\n2"}}}, 'network.own.sysctls."net.core.somaxconn"', "'1\\n2' is not a value of a kernel setting; write a number as '0', or several as '4096 87380 6291456'"),
    ({"network.plugin": "cilium", "network.backend": "host-gw"}, "network.backend", "host-gw is none of cilium, which has vxlan and native"),
    ({"network.backend": "native"}, "network.backend", "native is none of flannel, which has vxlan and host-gw"),
    ({"network.kubeProxyReplacement": True}, "network.kubeProxyReplacement", "does nothing with plugin flannel; leave it out, or use cilium"),
    ({"network.plugin": "cilium", "network.kubeProxyReplacement": True, "network.proxyMode": "iptables"}, "network.proxyMode", "does nothing with kubeProxyReplacement: no kube-proxy runs; leave it out"),
    ({"controlPlane.controllerManagerArgs": {"node-cidr-mask-size-ipv4": "25"}}, "controlPlane.controllerManagerArgs.node-cidr-mask-size-ipv4", "is not yours to set: use network.nodeCidrMask"),
    ({"loadBalancing.checkIntervalMs": 6000}, "loadBalancing.checkIntervalMs", "with 6000 a node may take 15000 ms to notice that a master ends, which answers for 15000 ms more; use at most 5999"),
    ({"loadBalancing.maxConnections": 9901}, "loadBalancing.maxConnections", "9901 need more files than machines that are containers may open; use at most 9900"),
    ({"loadBalancing.idleTimeoutH": 0}, "loadBalancing.idleTimeoutH", "0 is too small; at least 1"),
    ({"etcd.electionTimeoutMs": 400}, "etcd.electionTimeoutMs", "400 is under 5 x heartbeatIntervalMs; use 1000"),
    ({"etcd.backup": {"objectStore": {**STORE, "endpoint": "s3.example.com"}}}, f"{STORE_PATH}.endpoint", "'s3.example.com' is not a plain URL; write http(s)://host[:port][/path] without user, password or query"),
    ({"etcd.backup": {"objectStore": {**STORE, "endpoint": "https://s3.example.com/acme"}}}, f"{STORE_PATH}.endpoint", "'https://s3.example.com/acme' has a path; write http(s)://host[:port] only"),
    ({**GIVEN, "etcd.backup": {"objectStore": {**STORE, "endpoint": "https://acme.s3.example.com"}}}, f"{STORE_PATH}.endpoint", "'https://acme.s3.example.com' names the bucket; requests name it in their path, so write https://s3.example.com"),
    ({**GIVEN, "etcd.backup": {"encrypt": False, "objectStore": {**STORE, "endpoint": "http://minio:9000"}}}, f"{STORE_PATH}.endpoint", "is http, and encrypt is false: every Secret of the cluster would go over the network in plain text; use https"),
    ({"etcd.backup": {"objectStore": {**STORE, "bucket": "s3://acme"}}}, f"{STORE_PATH}.bucket", "'s3://acme' is not a name of a bucket; use 3 to 63 of a-z, 0-9, '-' and single dots"),
    ({"etcd.backup": {"objectStore": {**STORE, "prefix": "/prod/"}}}, f"{STORE_PATH}.prefix", "'/prod/' is not a prefix; write it as 'clusters/prod': letters, digits, '_', '.' and '-', no slash at the ends"),
    ({"etcd.backup": {"objectStore": {**STORE, "prefix": "a/../b"}}}, f"{STORE_PATH}.prefix", "'a/../b' is not a prefix; write it as 'clusters/prod': letters, digits, '_', '.' and '-', no slash at the ends"),
    ({"etcd.backup": {"objectStore": {**STORE, "region": "EU"}}}, f"{STORE_PATH}.region", "'EU' is not a region; write it as 'eu-central-1' or 'auto'"),
    ({"etcd.backup": {"objectStore": {**STORE, "accessKey": "AKIA:secret"}}}, f"{STORE_PATH}.accessKey", "'AKIA:secret' is not an ID of an access key; it has 3 to 128 letters, digits and _ . + = @ -"),
    ({"etcd.backup": {"objectStore": {**STORE, "secretKey": "x"}}}, f"{STORE_PATH}.secretKey", "unknown key `secretKey`; known are endpoint, bucket, prefix, region, accessKey, ca, prune"),
    ({**GIVEN, "etcd": {"quotaBackendGib": 5, "backup": {"objectStore": STORE}}}, STORE_PATH, "a store takes 5 GiB in one request, so with it quotaBackendGib is 4 at most; use etcd.backup.directory for a bigger etcd"),
    (KEYLESS, f"{STORE_PATH}.accessKey", "is missing; machines in the lab are known to no store by themselves: write the ID of a key"),
    ({**GIVEN, **KEYLESS}, f"{STORE_PATH}.accessKey", "is missing; machines in the lab are known to no store by themselves: write the ID of a key"),
    ({"etcd.backup": {"objectStore": STORE}}, STORE_PATH, "there is no secret for its accessKey; `pulumi config set --secret kube-ha:backupSecretKey` asks for it"),
    ({"backupSecretKey": "in plain text", "etcd.backup": {"objectStore": STORE}}, "backupSecretKey", "is a secret and stands here in plain text: replace it where it is from, then `pulumi config set --secret kube-ha:backupSecretKey`"),
    ({"hooks": {"url": "http://hooks.example.com"}}, "hooks.url", "is not https: nothing would say who asks, nor who answers"),
    ({"hooks": {"url": "https://hooks.example.com", "events": []}}, "hooks.events", "names no event; say one, or take hooks out"),
    ({"etcd.maxRequestKib": 1024}, "etcd.maxRequestKib", "1024 is too small; at least 1536"),
    ({"etcd.maxRequestKib": 2049}, "etcd.maxRequestKib", "2049 is too big; at most 2048"),
    ({"etcd.metrics": "all"}, "etcd.metrics", "\"all\" is not one of 'basic', 'extensive'"),
    ({"etcd.snapshotCount": 999}, "etcd.snapshotCount", "999 is too small; at least 1000"),
    ({"etcd.compactionRetentionMin": 4}, "etcd.compactionRetentionMin", "4 is too small; at least 5"),
    ({"etcd.quotaBackendGib": 9}, "etcd.quotaBackendGib", "9 is too big; at most 8"),
    ({"controlPlane.leaderElection": {"leaseDurationS": 10}}, "controlPlane.leaderElection.leaseDurationS", "10 is not above renewDeadlineS 10; a leader must give up first"),
    ({"controlPlane.leaderElection": {"renewDeadlineS": 6, "retryPeriodS": 5}}, "controlPlane.leaderElection.renewDeadlineS", "6 is not above 1.2 x retryPeriodS 5; leave time for a second try"),
    ({"controlPlane.admissionPlugins": []}, "controlPlane.admissionPlugins", "NodeRestriction is missing; without it one worker's kubelet can act on other nodes"),
    ({"controlPlane.admissionPlugins": ["NodeRestriction"] * 2}, "controlPlane.admissionPlugins", "[NodeRestriction, NodeRestriction] names a plugin twice"),
    ({"controlPlane.apiServerArgs": {"etcd-servers": "http://x"}}, "controlPlane.apiServerArgs.etcd-servers", "is not yours to set: follows from the machines with role etcd"),
    ({"controlPlane.apiServerArgs": {"anonymous-auth": "false"}}, "controlPlane.apiServerArgs.anonymous-auth", "is not yours to set: use controlPlane.anonymous: probes, HAProxy's checks and the node scripts ask for health without a certificate"),
    ({"controlPlane.schedulerArgs": {"leader-elect": "false"}}, "controlPlane.schedulerArgs.leader-elect", "is not yours to set: is always on"),
    ({"controlPlane.apiServerArgs": {"--v": "2"}}, "controlPlane.apiServerArgs.--v", "'--v' is not a flag; write its name without dashes before, as 'v'"),
    ({"controlPlane.apiServerArgs": {"v": "2\nx: y"}}, "controlPlane.apiServerArgs.v", "'2\\nx: y' holds a character that no flag needs (quote, $, \\, newline)"),
    ({"controlPlane.apiServerArgs": {"v": 2}}, "controlPlane.apiServerArgs.v", "2 is not a text; put it in quotes"),
    ({"controlPlane.audit": {"enabled": False, "policy": {}}}, "controlPlane.audit.policy", "does nothing while controlPlane.audit.enabled is false"),
    ({"controlPlane.audit.policy": {"kind": "Policy", "rules": [{"level": "Metadata"}]}}, "controlPlane.audit.policy.apiVersion", "must be 'audit.k8s.io/v1'"),
    ({"controlPlane.audit.policy": {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}}, "controlPlane.audit.policy.rules", "is missing; list at least one rule with a level"),
    ({"controlPlane.audit.policy": {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "All"}]}}, "controlPlane.audit.policy.rules[0].level", "must be one of None, Metadata, Request, RequestResponse"),
    ({"controlPlane.audit.policy": {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}, "Metadata"]}}, "controlPlane.audit.policy.rules[1]", '"Metadata" is not a mapping; write `level: Metadata` and what it is for'),
    ({"controlPlane.featureGates": {"allAlpha": True}}, "controlPlane.featureGates.allAlpha", "'allAlpha' is not a feature gate; they are named as in 'DynamicResourceAllocation'"),
    ({"controlPlane.featureGates": {"AllAlpha": "true"}}, "controlPlane.featureGates.AllAlpha", '"true" is neither true nor false'),
    ({"controlPlane.apiServerArgs": {"feature-gates": "AllAlpha=true"}}, "controlPlane.apiServerArgs.feature-gates", "is not yours to set: use controlPlane.featureGates"),
    ({"controlPlane.controllerManagerArgs": {"feature-gates": "AllAlpha=true"}}, "controlPlane.controllerManagerArgs.feature-gates", "is not yours to set: use controlPlane.featureGates"),
    ({"controlPlane.schedulerArgs": {"feature-gates": "AllAlpha=true"}}, "controlPlane.schedulerArgs.feature-gates", "is not yours to set: use controlPlane.featureGates"),
    ({"controlPlane.oidc": {"clientId": "kube"}}, "controlPlane.oidc.issuerUrl", "is missing (the provider's address, letter by letter as in its tokens)"),
    ({"controlPlane.oidc": {"issuerUrl": "https://id.example.com"}}, "controlPlane.oidc.clientId", "is missing (audience that a token must be made for)"),
    ({"controlPlane.oidc": {**OIDC, "clientId": ""}}, "controlPlane.oidc.clientId", "is empty; leave the key out instead"),
    ({"controlPlane.oidc": {**OIDC, "clientId": "a$b"}}, "controlPlane.oidc.clientId", "'a$b' holds a character that no flag needs (quote, $, \\, newline)"),
    ({"controlPlane.oidc": {**OIDC, "issuerUrl": "http://id.example.com"}}, "controlPlane.oidc.issuerUrl", "'http://id.example.com' is not an issuer; write https://host[:port][/path], as the provider's tokens say it"),
    ({"controlPlane.oidc": {**OIDC, "issuerUrl": "https://id.example.com?x=1"}}, "controlPlane.oidc.issuerUrl", "'https://id.example.com?***' is not an issuer; write https://host[:port][/path], as the provider's tokens say it"),
    ({"controlPlane.oidc": {**OIDC, "issuerUrl": "https://kubernetes.default.svc.cluster.local"}}, "controlPlane.oidc.issuerUrl", "https://kubernetes.default.svc.cluster.local is the cluster's own issuer, of service accounts; name the provider's"),
    ({"controlPlane.serviceAccountIssuers": ["http://a.test"]}, "controlPlane.serviceAccountIssuers[0]", "'http://a.test' is not an issuer; write https://host[:port][/path], as the provider's tokens say it"),
    ({"controlPlane.serviceAccountIssuers": ["https://a.test", "https://a.test"]}, "controlPlane.serviceAccountIssuers[1]", "https://a.test is there twice; leave one out"),
    ({"controlPlane.serviceAccountIssuers": ["https://id.example.com"], "controlPlane.oidc": OIDC}, "controlPlane.oidc.issuerUrl", "https://id.example.com is the cluster's own issuer, of service accounts; name the provider's"),
    ({"controlPlane.apiServerArgs": {"service-account-issuer": "https://a.test"}}, "controlPlane.apiServerArgs.service-account-issuer", "is not yours to set: use controlPlane.serviceAccountIssuers"),
    ({"controlPlane.oidc": {**OIDC, "usernameClaim": "a=b"}}, "controlPlane.oidc.usernameClaim", "'a=b' is not a claim; use 1 to 256 letters, digits and signs without '='"),
    ({"controlPlane.oidc": {**OIDC, "usernamePrefix": "system:"}}, "controlPlane.oidc.usernamePrefix", "'system:' is where the cluster's own names begin; use another, as 'oidc:'"),
    ({"controlPlane.oidc": {**OIDC, "groupsClaim": "groups", "groupsPrefix": "system:x"}}, "controlPlane.oidc.groupsPrefix", "'system:x' is where the cluster's own names begin; use another, as 'oidc:'"),
    ({"controlPlane.oidc": {**OIDC, "groupsPrefix": "oidc:"}}, "controlPlane.oidc.groupsPrefix", "does nothing without groupsClaim"),
    ({"controlPlane.oidc": {**OIDC, "requiredClaims": {"hd": ""}}}, "controlPlane.oidc.requiredClaims.hd", "is empty; leave the key out instead"),
    ({"controlPlane.oidc": {**OIDC, "signingAlgs": ["HS256"]}}, "controlPlane.oidc.signingAlgs[0]", "\"HS256\" is not one of 'RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'"),
    ({"controlPlane.oidc": {**OIDC, "ca": "/etc/ssl/ca.crt"}}, "controlPlane.oidc.ca", f"is not a PEM; {PEM}"),
    ({"controlPlane.oidc": {**OIDC, "ca": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"}}, "controlPlane.oidc.ca", "holds something that is not a certificate; was it cut?"),
    ({"controlPlane.oidc": {**OIDC, "ca": certificate() + "$(reboot)"}}, "controlPlane.oidc.ca", f"is not a PEM; {PEM}"),
    ({"controlPlane.oidc": {**OIDC, "ca": certificate() + "-----BEGIN PRIVATE KEY-----"}}, "controlPlane.oidc.ca", "holds a private key; it belongs to the provider alone, and is burnt now"),
    ({"controlPlane.apiServerArgs": {"oidc-issuer-url": "https://x"}}, "controlPlane.apiServerArgs.oidc-issuer-url", "is not yours to set: use controlPlane.oidc.issuerUrl"),
    ({"controlPlane.apiServerArgs": {"oidc-required-claim": "a=b"}}, "controlPlane.apiServerArgs.oidc-required-claim", "is not yours to set: use controlPlane.oidc.requiredClaims"),
    ({"controlPlane.apiServerArgs": {"authentication-config": "/x"}}, "controlPlane.apiServerArgs.authentication-config", "is not yours to set: use controlPlane.anonymous, controlPlane.oidc and controlPlane.oidcIssuers: its file is made of them"),
    ({"controlPlane.podSecurity": {}}, "controlPlane.podSecurity", "does nothing: enforce, audit and warn are all privileged; raise one, as to baseline"),
    ({"controlPlane.podSecurity": {"warn": "privileged"}, "cluster.defaults": 1}, "controlPlane.podSecurity", "does nothing: enforce, audit and warn are all privileged; raise one, as to baseline"),
    ({"controlPlane.audit": {"enabled": False, "webhook": {"url": "https://x.example.com"}}}, "controlPlane.audit.webhook", "does nothing while controlPlane.audit.enabled is false"),
    ({"controlPlane.audit": {"detail": "bodies", "policy": {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}}}, "controlPlane.audit.detail", "does nothing beside controlPlane.audit.policy; leave one of them out"),
    ({"controlPlane.oidcIssuers": [OIDC, OIDC]}, "controlPlane.oidcIssuers[1].issuerUrl", f"{OIDC['issuerUrl']} is there twice"),
    ({"controlPlane.oidc": {**OIDC, "signingAlgs": ["ES256"]}, "controlPlane.anonymous": "health"}, "controlPlane.oidc.signingAlgs", "is a flag of the API server, which takes either flags or the file that controlPlane.anonymous: health and controlPlane.oidcIssuers are made of, by which any algorithm with a public key will do; leave it out"),
    ({"controlPlane.podSecurity": {"enforce": "strict"}}, "controlPlane.podSecurity.enforce", "\"strict\" is not one of 'privileged', 'baseline', 'restricted'"),
    ({"controlPlane.podSecurity": {"warn": "baseline", "version": "1.36"}}, "controlPlane.podSecurity.version", "'1.36' is not a version of the standards; use 'latest' or as 'v1.36'"),
    ({"controlPlane.podSecurity": {"warn": "baseline", "version": "v1.37"}}, "controlPlane.podSecurity.version", "v1.37 is newer than cluster.kubernetes 1.36.3; use latest"),
    ({"controlPlane.podSecurity": {"warn": "baseline", "exemptNamespaces": ["a/b"]}}, "controlPlane.podSecurity.exemptNamespaces[0]", "'a/b' is not an RFC 1123 label; use 1 to 63 of a-z, 0-9 and '-', not '-' at an end"),
    ({"controlPlane.apiServerArgs": {"admission-control-config-file": "/x"}}, "controlPlane.apiServerArgs.admission-control-config-file", "is not yours to set: use controlPlane.podSecurity"),
    ({"controlPlane.certSans": ["api example"]}, "controlPlane.certSans[0]", "'api example' is not a DNS name; use a-z, 0-9, '-' and dots between labels"),
    ({"pki.leafValidityHours": 87600}, "pki.leafValidityHours", "87600 is not under caValidityHours 87600; no certificate outlives its CA"),
    ({"pki.leafRenewalHours": 8760}, "pki.leafRenewalHours", "8760 is not under leafValidityHours 8760; every update would renew everything"),
    ({"mirror": {"url": "http://u:p@h/", "registry": "http://h:5000", "manifest": "m.json"}}, "mirror.url", "'http://***@h/' is not a plain URL; write http(s)://host[:port][/path] without user, password or query"),
    ({"mirror": {"url": "http://h", "registry": "http://h:5000/x", "manifest": "m.json"}}, "mirror.registry", "'http://h:5000/x' has a path; write http(s)://host[:port] only"),
    ({"mirror": {"url": "http://h", "registry": "http://h:5000", "manifest": "m;rm"}}, "mirror.manifest", "'m;rm' is not a plain path; use letters, digits and _ . ~ / @ + -"),
    ({"proxy.https": "proxy:3128"}, "proxy.https", "'proxy:3128' is not a plain URL; write http(s)://host[:port][/path] without user, password or query"),
    ({"proxy.noProxy": ["*.example.com"]}, "proxy.noProxy[0]", "'*.example.com' is not a DNS name; use a-z, 0-9, '-' and dots between labels"),
    ({"converge.generation": 0}, "converge.generation", "0 is too small; at least 1"),
    ({"os": {"packages": "2026-11-21 00:00:00 +0000 UTC"}}, "os.packages", "is a date, of which the engine made '2026-11-21 00:00:00 +0000 UTC'; put it in quotes: '2026-11-21'"),
    ({"kubelet.featureGates": {"x": True}}, "kubelet.featureGates.x", "'x' is not a feature gate; they are named as in 'DynamicResourceAllocation'"),
    ({"kubelet/evictionHard": {"memory.free": "1Gi"}}, 'kubelet.evictionHard."memory.free"', "\"memory.free\" is not one of 'memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'"),
    ({"kubelet/evictionHard": {"memory.available": "0"}}, 'kubelet.evictionHard."memory.available"', "'0' is not a threshold; write an amount above 0 as '500Mi', or a part as '10%'"),
    ({"kubelet/evictionHard": {"nodefs.available": "100%"}}, 'kubelet.evictionHard."nodefs.available"', "'100%' is not a threshold; write an amount above 0 as '500Mi', or a part as '10%'"),
    ({"kubelet/evictionHard": {"memory.available": "500"}}, 'kubelet.evictionHard."memory.available"', "'500' has no unit of bytes; write as '500Mi', or a part as '10%'"),
    ({"kubelet/evictionHard": {"nodefs.inodesFree": "5Gi"}}, 'kubelet.evictionHard."nodefs.inodesFree"', "'5Gi' is not a count; write a number as '10k', or a part as '5%'"),
    ({"kubelet.systemReserved": {"memory": "512MiB"}}, "kubelet.systemReserved.memory", "'512MiB' is not an amount; write a number above 0 and its unit, as '500m' of CPU or '512Mi'"),
    ({"kubelet.systemReserved": {"memory": 512}}, "kubelet.systemReserved.memory", "512 is not a text; put it in quotes"),
    ({"kubelet.systemReserved": {"memory": "500m"}}, "kubelet.systemReserved.memory", "'500m' has no unit of bytes; write as '512Mi' or '2Gi'"),
    ({"kubelet.kubeReserved": {"cpu": "1Gi"}}, "kubelet.kubeReserved.cpu", "'1Gi' is not an amount of CPU; write as '500m' or '1.5'"),
    ({"kubelet.kubeReserved": {"pods": "1"}}, "kubelet.kubeReserved.pods", "\"pods\" is not one of 'cpu', 'memory', 'ephemeral-storage'"),
    ({"kubelet.imageGcLowPercent": 85}, "kubelet.imageGcLowPercent", "85 is not under imageGcHighPercent 85; images would be deleted without end"),
    ({"kubelet.imageGcHighPercent": 70}, "kubelet.imageGcHighPercent", "70 is not above imageGcLowPercent, 80 where it is not said; say it, too"),
    ({"kubelet.containerLogMaxFiles": 1}, "kubelet.containerLogMaxFiles", "1 is too small; at least 2"),
    ({"kubelet.podPidsLimit": -1}, "kubelet.podPidsLimit", "-1 is too small; at least 100"),
    ({"kubelet.shutdownGracePeriodS": 30}, "kubelet.shutdownGracePeriodS", "does nothing in containers: no systemd-logind there holds a shutdown back; leave it out"),
    ({"runtime/registryMirrors": {"docker.io/library": ["https://m"]}}, 'runtime.registryMirrors."docker.io/library"', "'docker.io/library' is not a host[:port]; leave out scheme, path and user"),
    ({"runtime/registryMirrors": {"docker.io": ["mirror:5000"]}}, 'runtime.registryMirrors."docker.io"[0]', "'mirror:5000' is not a plain URL; write http(s)://host[:port][/path] without user, password or query"),
    ({"runtime/registryMirrors": {"docker.io": []}}, 'runtime.registryMirrors."docker.io"', "names no mirror; leave the registry out"),
    ({"runtime/registryMirrors": {"docker.io": ["https://m", "https://docker.io"]}}, 'runtime.registryMirrors."docker.io"[1]', "https://docker.io is the registry itself, which is asked last anyhow"),
    ({"runtime/registryMirrors": {"docker.io": ["https://m", "https://m/"]}}, 'runtime.registryMirrors."docker.io"[1]', "https://m is there twice"),
    ({"runtime/registryMirrors": {"registry-1.docker.io": ["https://m"]}}, 'runtime.registryMirrors."registry-1.docker.io"', "no image has this in its name; write docker.io"),
    ({"runtime/registryMirrors": {"ghcr.io": ["https://m"]}}, 'runtime.registryMirrors."ghcr.io"', "images of it come from the mirror of this stack alone; leave it out"),
    ({"runtime.maxConcurrentDownloads": 0}, "runtime.maxConcurrentDownloads", "0 is too small; at least 1"),
    ({"runtime.logLevel": "trace"}, "runtime.logLevel", "\"trace\" is not one of 'debug', 'info', 'warn', 'error'"),
    ({"kubelet.maxPods": 1001}, "kubelet.maxPods", "1001 is too big; at most 1000"),
]  # fmt: skip


@pytest.mark.parametrize(("edits", "path", "text"), BAD)
def test_a_bad_setting_is_refused_with_its_path_and_the_way_out(
    edits: dict[str, object], path: str, text: str
) -> None:
    assert problems(lab(edits)) == [(path, text)]


def test_a_certificate_may_be_indented_and_end_as_it_likes() -> None:
    plain = certificate()
    indented = "\n".join(f"  {line}\r" for line in plain.rstrip().splitlines())
    made = planned(lab({"controlPlane.oidc": {**OIDC, "ca": indented}}))
    oidc = made.spec.control_plane.oidc
    assert oidc is not None
    assert oidc.ca == plain


PROVIDERS = [
    ({}, []),
    ({"groupsClaim": "groups", "groupsPrefix": "oidc:"}, []),
    (
        {"groupsClaim": "groups"},
        [("controlPlane.oidc.groupsPrefix", "is missing: a group the provider calls system:masters may do everything; set one")],
    ),
    (
        {"usernamePrefix": "-"},
        [("controlPlane.oidc.usernamePrefix", "'-' lets the provider name users as the cluster's own (system:...); set a prefix")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("more", "warnings"), PROVIDERS)
def test_names_a_provider_could_give_itself_are_warned_of(
    more: dict[str, object], warnings: list[tuple[str, str]]
) -> None:
    assert list(planned(lab({"controlPlane.oidc": {**OIDC, **more}})).warnings) == warnings


def test_a_store_with_its_secret_is_taken_and_told_to_the_members_without_it() -> None:
    said = {"objectStore": {**STORE, "prefix": "a/b", "region": "auto", "prune": False}}
    proxy = {"https": "http://proxy:3128", "noProxy": [".internal", "10.0.0.0/8"]}
    plan = planned(lab({**GIVEN, "etcd.backup": said, "proxy": proxy}))
    told = etcd_member.of_member(plan, plan.etcd[0])
    assert {key: text for key, text in told.items() if key in phase_object_store.VALUES} == {
        "BACKUP_STORE": "https://s3.example.com/acme/a/b",
        "BACKUP_REGION": "auto",
        "BACKUP_ACCESS_KEY": "AKIAEXAMPLE",
        "BACKUP_CA": "0",
        "BACKUP_PRUNE": "0",
        "BACKUP_PROXY": "http://proxy:3128",
    }
    told = etcd_member.of_member(planned(lab()), plan.etcd[0])
    assert {key: told[key] for key in phase_object_store.VALUES if key in told} == {
        "BACKUP_STORE": ""
    }


@pytest.mark.parametrize(
    ("endpoint", "through"),
    [
        ("https://s3.internal", None),
        ("https://10.1.2.3:9000", None),
        ("https://11.1.2.3:9000", "http://proxy:3128"),
        ("https://notinternal", "http://proxy:3128"),
        ("http://s3.example.com", None),
    ],
)
def test_a_store_is_reached_by_the_proxy_of_the_nodes(endpoint: str, through: str | None) -> None:
    proxy = {"https": "http://proxy:3128", "noProxy": [".internal", "10.0.0.0/8"]}
    said = {"objectStore": {**STORE, "endpoint": endpoint}}
    plan = planned(lab({**GIVEN, "etcd.backup": said, "proxy": proxy}))
    assert etcd_member.of_member(plan, plan.etcd[0])["BACKUP_PROXY"] == (through or "")


@pytest.mark.parametrize("secret", ["", "two words", "line\nbreak", "\u00fcml", "x" * 257])
def test_what_can_be_no_secret_is_refused_and_not_shown(secret: str) -> None:
    [(path, text)] = check_object_store.unusable(secret)
    assert path == "backupSecretKey"
    assert not secret or secret not in text
    assert check_object_store.unusable('se/cr"e\\t+=') == []


def test_a_bundle_of_cas_is_too_much_for_one_command() -> None:
    ca = 5 * certificate()
    said = {"objectStore": {**STORE, "ca": ca}}
    [(path, text)] = problems(lab({**GIVEN, "etcd.backup": said}))
    assert path == f"{STORE_PATH}.ca"
    assert text.startswith(f"has {len(ca)} bytes, 2048 at most")


@pytest.mark.parametrize(
    ("provider", "edits", "path", "text"),
    [
        ("aws", {**by_identity("aws"), **GIVEN}, "accessKey", "is missing, and there is a secret (kube-ha:backupSecretKey): write the ID of its key; or, where machines are to show who they are, take it out: `pulumi config rm kube-ha:backupSecretKey`"),
        ("aws", by_identity("aws", endpoint="http://s3.eu-central-1.amazonaws.com"), "endpoint", "'http://s3.eu-central-1.amazonaws.com' would see credentials of the machines, for accessKey is missing; write one of their cloud, as https://s3.eu-central-1.amazonaws.com, or the ID of a key"),
        ("aws", by_identity("aws", endpoint="https://storage.googleapis.com"), "endpoint", "'https://storage.googleapis.com' would see credentials of the machines, for accessKey is missing; write one of their cloud, as https://s3.eu-central-1.amazonaws.com, or the ID of a key"),
        ("gcp", by_identity("gcp", endpoint="https://storage.googleapis.com.example.com"), "endpoint", "'https://storage.googleapis.com.example.com' would see credentials of the machines, for accessKey is missing; write one of their cloud, as https://storage.googleapis.com, or the ID of a key"),
    ],
)  # fmt: skip
def test_credentials_of_machines_are_for_their_cloud_alone(
    provider: str, edits: dict[str, object], path: str, text: str
) -> None:
    make = {"aws": aws, "gcp": gcp}[provider]
    assert problems(make(edits)) == [(f"{STORE_PATH}.{path}", text)]


@pytest.mark.parametrize(("provider", "word"), [("aws", "ec2"), ("gcp", "gce")])
def test_members_are_told_of_no_key_where_the_cloud_knows_them(provider: str, word: str) -> None:
    make = {"aws": aws, "gcp": gcp}[provider]
    plan = planned(make(by_identity(provider)))
    told = etcd_member.snapshot(plan, plan.etcd[0])
    assert (told["BACKUP_IDENTITY"], told["BACKUP_ACCESS_KEY"]) == (word, "")
    assert "BACKUP_IDENTITY" not in etcd_member.snapshot(planned(make(with_store())), plan.etcd[0])
    assert check_object_store.secret(plan.spec, {}) is None
    assert not [path for path, _ in plan.warnings if path == STORE_PATH]
    plan = planned(make({**by_identity(provider), f"machines.{provider}.podMetadata": True}))
    assert [text for path, text in plan.warnings if path == STORE_PATH] == [
        "with podMetadata every pod on a machine may do there what the machine may: write and, with prune, "
        "delete snapshots; name an accessKey, or keep versions in the bucket"
    ]
