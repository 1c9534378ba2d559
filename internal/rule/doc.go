// Package rule decides what the rules of --allow and --deny say about a request of
// an agent. It reads strings only: it starts nothing, and looks at the disk only to
// resolve the links of a path.
//
// An allow rule is read strictly: a request is allowed only if every part of it is
// known and named by a rule. A deny rule is read generously: what it might mean is
// not approved by anything but a person. docs/approvals.md has the semantics for
// users. All functions are safe for concurrent use.
package rule
