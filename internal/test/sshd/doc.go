// Package sshd runs a real ssh server on loopback for tests, in the network and mount
// namespaces of their own that package netns makes.
package sshd
