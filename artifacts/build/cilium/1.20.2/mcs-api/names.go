// Package controllers stands in for a module of the multi-cluster services API that not every proxy has: of it
// Cilium's operator takes one name, and none of its reconcilers.
package controllers

// DerivedServiceAnnotation is where a ServiceImport names the Service that stands for it.
const DerivedServiceAnnotation = "multicluster.kubernetes.io/derived-service"
