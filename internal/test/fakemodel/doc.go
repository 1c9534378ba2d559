// Package fakemodel is a model provider on loopback that answers by script, so
// that the real agents can be tested without a network and without an account.
//
// The newest prompt of the user chooses the script by a marker in its text:
// "[fm:bash]", or with an argument "[fm:deltas=200]". A prompt without a marker
// gets Options.Default. What an agent sends after a tool has run belongs to the
// same prompt; the script sees which round it is. Scripts (script.go) know no
// provider: each API is one file (anthropic.go) that reads a request, asks the
// script, and writes its reply in its own words, streamed or whole. What a tool
// is called by an agent is in tools.go.
//
// The numbers are fixed: every reply costs the Input, CacheRead, CacheWrite and
// Output tokens named below. Ids count up from 1 in each server. Every request
// is kept, with keys redacted, and can be read in process (Server.Requests) or by
// GET /_fakemodel/requests. A Server is safe for concurrent use.
package fakemodel
