module kube-ha.local/pause

go 1.26
