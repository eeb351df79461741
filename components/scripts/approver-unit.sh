# shellcheck shell=bash
# The unit of approve.sh; phase master sources this. It reads what any node may send: nothing is within its reach but
# the API and the keys that it is given. Its key is opened for it before it is nobody: LoadCredential needs mounts that
# spread, which containers have not. IPAddressDeny needs cgroup v2; without it systemd says so and continues.
approver_unit() {
  printf '%s\n' "[Unit]
Description=approves certificates of kubelets
After=network-online.target haproxy.service
StartLimitIntervalSec=0

[Service]
ExecStart=/etc/kube-ha/approve
Restart=always
RestartSec=5
Nice=10
CPUQuota=50%
MemoryMax=256M
TasksMax=64
LimitFSIZE=64M
DynamicUser=yes
UMask=0077
RuntimeDirectory=kube-ha-approver
RuntimeDirectoryMode=0700
StandardInput=file:/etc/kube-ha/approver.key
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=yes
ProtectProc=invisible
InaccessiblePaths=-/etc/kubernetes -/etc/kube-ha/etcd
InaccessiblePaths=-/var/lib/kube-ha -/var/lib/kubelet -/run/containerd
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_INET
IPAddressDeny=any
IPAddressAllow=localhost
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target"
}
