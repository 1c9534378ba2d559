// Package dockerd runs a real Docker engine for tests, in the network and mount namespaces of
// their own that package netns makes, with an image that has a shell and little else.
package dockerd
