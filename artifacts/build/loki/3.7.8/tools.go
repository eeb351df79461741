//go:build tools

// Package tools names what is built, so that go.mod and go.sum stay complete.
package tools

import _ "github.com/grafana/loki/v3/cmd/loki"
