//go:build tools

// Package tools names what is built, so that `go mod tidy` keeps its dependencies in go.mod and go.sum.
package tools

import _ "github.com/pulumi/pulumi-yaml/cmd/pulumi-language-yaml"
