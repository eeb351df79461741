"""The version of kube-ha. A release is the tag `v` and this; CHANGELOG.md says what is in it."""

VERSION = "0.1.0"
