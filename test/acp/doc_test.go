// Package acp tests amux acp with the built programs: with the client of the Go SDK, and
// with that of the protocol's own TypeScript SDK.
package acp
