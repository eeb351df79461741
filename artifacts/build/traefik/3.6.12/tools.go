//go:build tools

// Package tools names what is built, so that go.mod and go.sum stay complete.
package tools

import _ "github.com/traefik/traefik/v3/cmd/traefik"
