// Package registry finds adapter plugins and verifies what is started.
//
// Listing reads files only: the manifest amux-plugin.toml and describe.json lie
// beside every plugin's executable, so no plugin runs to say what it is. A plugin
// that cannot be used keeps its row, with the reason, and hides no other.
//
// Where a plugin comes from, first match wins by plugin name:
//
//	overrides             name=path, of the command line or of config.toml
//	the project's lock    <project>/.agent-mux/plugins.lock, choosing among what is installed
//	the user's lock       <plugins>/plugins.lock
//	bundled               <bundled>/<name>/, with hashes fixed when amux was built
//
// PATH is never searched.
//
// What is started is a copy that lies under its own hash and was hashed while it
// was written: <config>/plugins/run/<sha256>/<executable>. A copy stays when the
// plugin is replaced, so that live and recorded runs keep the program that they
// began with. Hashes are remembered in verified.json together with device, inode,
// size, mtime and ctime of both files; while these match nothing is hashed.
//
// A look for one agent reads the plugins that declare it, however many there are: which agents a
// bundled plugin declares is in its manifest's text, and those of an installed one are kept in declared.json.
//
// A Registry is safe for concurrent use, also by several processes. It starts no
// process and no goroutine, and removes no copy.
package registry
