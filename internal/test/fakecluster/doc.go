// Package fakecluster is a Kubernetes cluster for tests, of nodes that are not there: an API
// server with Jobs, pods, events and exec, as far as amux asks for them, and what the rest of a
// cluster would do. It counts what it is asked. Answers are JSON.
package fakecluster
