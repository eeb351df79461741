//go:build tools

// Package tools names what is built, so that go.mod and go.sum stay complete.
package tools

import (
	_ "go.universe.tf/metallb/controller"
	_ "go.universe.tf/metallb/speaker"
)
