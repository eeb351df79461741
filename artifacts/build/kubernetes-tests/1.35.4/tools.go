//go:build tools

// Package tools names what is built, so that go.mod and go.sum stay complete.
package tools

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo"
	_ "k8s.io/kubernetes/test/e2e"
)
