// Package mcp tests amux mcp with the client of the Go SDK against the built programs.
package mcp
