// Package kubernetes runs a real Kubernetes cluster of one node for tests, in namespaces of its
// own, with an image that has a shell and little else. Its programs are built by make kubernetes
// from the module in the folder node.
package kubernetes
