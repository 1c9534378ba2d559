// Package acp installs the agents of an ACP registry: a JSON document that lists agents
// which speak the Agent Client Protocol, and how each is distributed.
//
// A Store is a folder with what is installed and a lock that pins it. The document, and
// all that it leads to, is somebody else's: it is bounded, checked, and refused where its
// shape is not the expected one. Nothing in it reaches a shell. Programs are npm, uv and
// Python's own installer; each package that they fetch must have a hash, and the hashes
// of the first installation are those of all later ones.
//
// A Store is safe beside other processes that change the folder. Its methods block until
// they are done, or until their context ends. The package starts no agent.
package acp
