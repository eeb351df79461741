//go:build tools

// Package tools names what is built, so that go.mod and go.sum stay complete.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
