package rule

import "strings"

// options are those of a program that runs another one behind them.
type options struct {
	with  string // letters that take a value: -n 5, -n5
	plain string // letters that take none
	long  string // names without dashes that take none
	value string // names that take a value: --signal TERM, --signal=TERM
	skip  int    // words before the program: the time of timeout
	names bool   // NAME=VALUE may come before the program
}

// wrappers whose program can be found for certain.
var wrappers = map[string]options{
	"nohup":   {},
	"nice":    {with: "n", value: "adjustment"},
	"timeout": {with: "sk", plain: "v", long: "preserve-status foreground verbose", value: "signal kill-after", skip: 1},
	"env":     {plain: "i0", with: "u", long: "ignore-environment null", value: "unset", names: true},
	"command": {plain: "p"},
	"builtin": {},
	"time":    {plain: "pv", long: "portability verbose"},
	"stdbuf":  {with: "ioe", value: "input output error"},
	"setsid":  {plain: "wfc", long: "wait fork ctty"},
	"ionice":  {with: "cn", plain: "t", value: "class classdata", long: "ignore"},
	"xargs":   {plain: "0rtx", with: "nPLsdE", long: "null no-run-if-empty verbose exit", value: "max-args max-procs max-lines delimiter"},
	"sudo":    {plain: "nEHSk", with: "u", long: "non-interactive", value: "user"},
	"exec":    {plain: "cl", with: "a"},
}

// opaque run what is among their arguments in a way that is not looked into: a rule
// allows them only when it spells the whole command.
const opaque = "strace ltrace gdb lldb watch su runuser script chroot unshare nsenter flock busybox toybox systemd-run parallel entr fakeroot proot bwrap " +
	"firejail setpriv prlimit numactl taskset chrt at batch expect tmux screen pkexec doas rlwrap unbuffer torsocks proxychains proxychains4 caffeinate arch " +
	"winpty noglob nocorrect repeat cgexec dbus-run-session xvfb-run runcon start-stop-daemon daemonize valgrind perf hyperfine watchexec nodemon gosu " +
	"su-exec sg newgrp coproc zargs zmodload autoload mapfile readarray complete compgen fc"

// outward also run what follows them, elsewhere or as one of their subcommands. Only
// deny rules look behind them.
const outward = "ssh docker podman kubectl npx pnpx bunx uvx npm pnpm yarn bun uv pipx poetry bundle conda nix nix-shell adb ip vagrant lxc " +
	"machinectl distrobox toolbox flatpak snap find gfind fd fdfind git"

// shells read a script.
const shells = "sh bash zsh dash ash ksh ksh93 mksh oksh yash rbash posh"

// foreign are shells whose scripts are no POSIX ones.
const foreign = "fish tcsh csh elvish nu xonsh pwsh powershell cmd"

// never are builtins after which a later command may not be what it seems.
const never = "eval source . alias unalias trap hash enable bind shopt exec-hook rehash emulate disable functions"

// interpreters run code of an argument or of their stdin.
const interpreters = "python python2 python3 pypy perl ruby node nodejs deno bun php lua luajit Rscript osascript tclsh awk gawk mawk nawk ed ex vi vim nvim emacs " +
	"irb ipython psql mysql sqlite3 ghci scala groovy jshell julia octave dc m4 gdb lldb expect guile racket sbcl clisp elixir erl iex wish"

// inner finds where the program begins that a wrapper runs; ok is false if that is
// not certain, and there is none at len(args).
func (o options) inner(args []word) (at int, ok bool) {
	i := 1
	for ; i < len(args); i++ {
		text := args[i].text
		switch {
		case text == "--":
			i++
		case strings.HasPrefix(text, "--"):
			name, _, has := strings.Cut(text[2:], "=")
			switch {
			case contains(o.long, name):
			case contains(o.value, name):
				if !has {
					i++
				}
			default:
				return 0, false
			}
			continue
		case strings.HasPrefix(text, "-") && len(text) > 1:
			rest := text[1:]
			for rest != "" && strings.Contains(o.plain, rest[:1]) {
				rest = rest[1:]
			}
			switch {
			case rest == "":
			case strings.Contains(o.with, rest[:1]):
				if len(rest) == 1 {
					i++
				}
			default:
				return 0, false
			}
			continue
		case o.names && strings.Contains(text, "="):
			return 0, false // it may change what runs
		}
		break
	}
	i += o.skip
	if i > len(args) {
		return 0, false
	}
	return i, true
}

// inline finds the script of a shell's -c. reads says that the shell takes its
// commands from stdin.
func inline(args []word) (at int, reads, ok bool) {
	command := false
	i := 1
	for ; i < len(args); i++ {
		text := args[i].text
		if text == "--" {
			i++
			break
		}
		if len(text) < 2 || text[0] != '-' && text[0] != '+' {
			break
		}
		if strings.HasPrefix(text, "--") {
			if !contains("--norc --noprofile --posix --login", text) {
				return 0, false, false
			}
			continue
		}
		if strings.Trim(text[1:], "ceulxviof") != "" {
			if strings.Contains(text, "s") {
				return 0, true, true
			}
			return 0, false, false
		}
		command = command || text[0] == '-' && strings.Contains(text, "c")
		if strings.Contains(text, "o") {
			i++ // pipefail
		}
	}
	switch {
	case i >= len(args):
		return 0, true, true
	case command:
		return i, false, true
	}
	return 0, args[i].text == "-" || strings.HasPrefix(args[i].text, "/dev/"), true
}
