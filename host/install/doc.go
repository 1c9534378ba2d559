// Package install gets plugins from where they are published, checks them, and
// puts them where they are found; it packs and signs them as well.
//
//	<plugins>/store/<name>/<version>/<os>_<arch>/   the plugin's files, receipt.json, and what signs them
//	<plugins>/plugins.lock                          which of them are active, with their hashes
//	<plugins>/agents.toml                           which plugin serves an agent that several declare
//	<plugins>/trust.toml                            the publishers' keys
//	<plugins>/mirrors.json                          the newest index seen of each mirror
//	<plugins>/staging/                              what is being installed
//	<plugins>/.lock                                 held by whoever changes any of this
//
// A plugin is unpacked in staging, renamed into the store when it is whole, and
// becomes active when plugins.lock is replaced. So whenever an installation is
// killed, the old state or the new is there, and the next writer sweeps staging.
// Nothing in a package is run but its executable with --amux-describe.
//
// Who vouches for the bytes: a signature by a trusted key over SHA256SUMS, whose
// trusted comment names plugin and version, or a checksum that the user gave. The
// lock keeps the hash over all unpacked files (h1), the receipt the hash of each;
// package registry compares what it starts with both.
//
// An Installer is safe for use by several processes at once: writers wait for
// each other.
package install
