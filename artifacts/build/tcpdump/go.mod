module kube-ha.local/tcpdump

go 1.26
