// Package sandbox starts programs that come from others. They keep the user's
// rights to read and to run programs, and lose some that no plugin needs. What a
// system does not offer is left out; Offered says what it has.
//
// It does not hide files, bound the number of processes, or touch the network.
package sandbox

// Limits bound a process, and each that it starts. 0 leaves one as it is.
type Limits struct {
	Files uint64 // descriptors
	Data  uint64 // bytes of private memory that may be mapped, used or not
}

// Files is how many descriptors a plugin may have. A conversation takes none, and one
// that reads files takes a few: that is enough for a thousand of them.
const Files = 4096

// untouched is how much memory may be mapped beyond what may be held: stacks of
// threads and what is kept in reserve are mapped, and never touched.
const untouched = 4 << 30

// Holding are the limits of a plugin that may hold so many bytes of memory; 0: any
// number. Who looks how much it holds sees the excess; they hold where it grows
// faster than anybody looks.
func Holding(memory int64) Limits {
	limits := Limits{Files: Files}
	if memory > 0 {
		limits.Data = uint64(memory) + untouched
	}
	return limits
}

// Offer is what this machine can restrict a program with.
type Offer struct {
	// NoNewPrivileges: set-user-ID programs and file capabilities give it nothing.
	NoNewPrivileges bool
	// Landlock is the version of the kernel's interface. 0: not offered, and the
	// program may write wherever its user may.
	Landlock int
	// Signals: it can signal only itself and what it has started.
	Signals bool
	// Limits are set, and cannot be raised again.
	Limits bool
}
