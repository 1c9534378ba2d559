package rule

import (
	"github.com/amux-dev/amux/internal/sys/pattern"
	"path"
	"strings"
)

// program is what is known of one whose arguments make it run something else, or
// take its settings from elsewhere.
type program struct {
	long   string // such options, without dashes; --LONG=x and abbreviations too
	short  string // letters, also in bundles: -xvI
	single string // options of one dash: -exec; a second dash is the same
	words  string // arguments: subcommands
	assign bool   // NAME=VALUE
	mark   func(args []word, mark func(int))
}

// programs are read by their name without the folder.
var programs = map[string]program{
	"git": {
		long: "exec upload-pack receive-pack open-files-in-pager extcmd ext-diff textconv template config config-env exec-path sendmail-cmd " +
			"tree-filter index-filter msg-filter env-filter commit-filter parent-filter tag-name-filter to-cmd cc-cmd header-cmd git-dir work-tree " +
			"separate-git-dir upload-archive use-mailmap-cmd super-prefix strategy tool output",
		words: "config difftool mergetool bisect submodule filter-branch send-email instaweb daemon shell upload-pack receive-pack " +
			"upload-archive remote-ext remote-fd hook maintenance for-each-repo credential web--browse gui citool cvsserver p4 svn archimport " +
			"cvsimport cvsexportcommit quiltimport imap-send fast-import http-backend interpret-trailers",
		mark: markGit,
	},
	"go":      {single: "exec toolexec vettool overlay modfile ldflags gccgoflags compiler C fuzz-exec", words: "run generate tool env telemetry"},
	"find":    {single: "exec execdir ok okdir delete fprint fprint0 fprintf fls files0-from"},
	"gfind":   {single: "exec execdir ok okdir delete fprint fprint0 fprintf fls files0-from"},
	"fd":      {long: "exec exec-batch", short: "xX"},
	"fdfind":  {long: "exec exec-batch", short: "xX"},
	"tar":     tarProgram,
	"gtar":    tarProgram,
	"bsdtar":  tarProgram,
	"rsync":   {long: "rsh rsync-path daemon config files-from include-from exclude-from filter password-file log-file-format early-input", short: "ef"},
	"ssh":     {short: "oFSIiEJLRDWwO", mark: markSSH},
	"scp":     {short: "oFSiJDc"},
	"sftp":    {short: "oFSiJDbs"},
	"awk":     {mark: markAwk, long: "file exec include load source dump-variables profile pretty-print debug", short: "fElieopdD"},
	"gawk":    {mark: markAwk, long: "file exec include load source dump-variables profile pretty-print debug", short: "fElieopdD"},
	"mawk":    {mark: markAwk, long: "file exec", short: "fW"},
	"nawk":    {mark: markAwk, long: "file", short: "f"},
	"sed":     {mark: markSed, long: "file expression", short: "fe"},
	"gsed":    {mark: markSed, long: "file expression", short: "fe"},
	"make":    makeProgram,
	"gmake":   makeProgram,
	"bmake":   makeProgram,
	"ninja":   {short: "fCt"},
	"cmake":   {short: "PECD", long: "build install open toolchain preset"},
	"ctest":   {short: "SD", long: "script build-and-test"},
	"npm":     npmProgram,
	"pnpm":    npmProgram,
	"yarn":    npmProgram,
	"bun":     {long: "eval print preload require cwd config shell import", short: "eprc", words: "x exec create"},
	"npx":     {long: "call package shell script-shell node-options prefix userconfig registry node-arg", short: "cpCn"},
	"pnpx":    {long: "call package shell script-shell", short: "cp"},
	"bunx":    {long: "package", short: "p"},
	"uvx":     {long: "from with python index-url", short: "p"},
	"cargo":   {long: "config target-dir manifest-path", short: "ZC", words: "run"},
	"rustc":   {short: "CZL", long: "codegen extern sysroot"},
	"gcc":     ccProgram,
	"g++":     ccProgram,
	"cc":      ccProgram,
	"c++":     ccProgram,
	"clang":   ccProgram,
	"clang++": ccProgram,
	"python":  pythonProgram,
	"perl":    {short: "eEMmIxn", long: "eval"},
	"ruby":    {short: "erIxSCX", long: "eval require"},
	"node":    nodeProgram,
	"nodejs":  nodeProgram,
	"deno":    {long: "preload config import-map eval", words: "eval run repl task"},
	"php":     {short: "rBREFdczSt", long: "run process-begin process-code process-end process-file define php-ini"},
	"lua":     {short: "elE"},
	"luajit":  {short: "elj"},
	"Rscript": {short: "e"},
	"tclsh":   {},
	"osascript": {
		short: "el",
	},
	"java":      {single: "javaagent agentlib agentpath XX jar cp classpath D", mark: markPrefix("-XX:", "-D", "@", "-agent", "-javaagent")},
	"mvn":       {short: "fsgDPt", long: "file settings define"},
	"gradle":    {short: "IbcpDPg", long: "init-script build-file project-dir system-prop project-prop gradle-user-home include-build settings-file"},
	"ant":       {short: "fDl", single: "file buildfile lib logger listener"},
	"bazel":     {long: "run_under bazelrc output_base workspace_status_command shell_executable override_repository", words: "run"},
	"docker":    containerProgram,
	"podman":    containerProgram,
	"kubectl":   {words: "exec run debug cp attach proxy edit plugin config", long: "kubeconfig"},
	"helm":      {long: "post-renderer kubeconfig", words: "plugin"},
	"terraform": {words: "console apply init", long: "plugin-dir chdir from-module"},
	"zip":       {long: "unzip-command test", short: "T"},
	"sort":      {long: "compress-program files0-from random-source output", short: "o"},
	"split":     {long: "filter"},
	"rg":        {long: "pre hostname-bin", short: "z"},
	"ag":        {long: "pager"},
	"bat":       {long: "pager"},
	"fzf":       {long: "preview bind become listen"},
	"man":       {short: "PHCM", long: "pager html browser config-file"},
	"less":      {short: "Kko"},
	"vi":        viProgram,
	"vim":       viProgram,
	"nvim":      viProgram,
	"view":      viProgram,
	"ex":        viProgram,
	"emacs":     {long: "eval execute load funcall batch script directory init-directory", short: "lfQ", single: "eval execute load l f funcall batch script"},
	"ed":        {},
	"curl":      {short: "KoOTE", long: "config output output-dir libcurl upload-file engine netrc-file dump-header trace trace-ascii cookie-jar stderr etag-save hsts alt-svc"},
	"wget":      {short: "eOoaiP", long: "execute use-askpass config output-document output-file append-output input-file directory-prefix"},
	"openssl":   {single: "engine provider provider-path config"},
	"gpg":       {long: "options homedir keyserver-options exec-path photo-viewer agent-program dirmngr-program pinentry-mode"},
	"apt":       {short: "oc", long: "option config-file"},
	"apt-get":   {short: "oc", long: "option config-file"},
	"dpkg":      {long: "pre-invoke post-invoke admindir root instdir force", short: "iR"},
	"sqlite3":   {single: "cmd init", mark: markContains(".shell", ".system", ".load", ".output", ".once", ".import", ".read", "load_extension", "writefile", "edit(")},
	"psql":      {short: "cfvo", long: "command file variable set output"},
	"mysql":     {short: "e", long: "execute pager init-command"},
	"nc":        {short: "ec", long: "exec sh-exec lua-exec"},
	"ncat":      {short: "ec", long: "exec sh-exec lua-exec"},
	"socat":     {mark: markContains("exec", "EXEC", "system", "SYSTEM", "shell", "SHELL", "Exec", "System")},
	"pytest":    {short: "pco", long: "override-ini rootdir confcutdir pdbcls config-file"},
	"tox":       {short: "cx", long: "conf override workdir"},
	"eslint":    {long: "config rulesdir resolve-plugins-relative-to plugin parser format", short: "cf"},
	"jest":      {long: "config globalSetup setupFiles transform runner testRunner reporters testEnvironment resolver rootDir"},
	"tsc":       {long: "plugins"},
	"gh":        {words: "alias extension api codespace"},
	"adb":       {words: "shell"},
	"ip":        {words: "netns", short: "b", long: "batch"},
	"crontab":   {mark: markAll},
	"systemctl": {words: "edit link set-environment import-environment"},
	"nix":       {long: "run command expr option", short: "cE", words: "run shell develop"},
	"nix-shell": {long: "run command expr packages", short: "pE"},
	"conda":     {words: "run"},
	"poetry":    {words: "run shell"},
	"uv":        {words: "run tool"},
	"pipx":      {words: "run"},
	"bundle":    {words: "exec"},
	"composer":  {words: "exec run-script run", long: "working-dir"},
	"pip":       {long: "config-settings global-option build-option install-option python log"},
	"watchexec": {mark: markAll},
	"nodemon":   {mark: markAll},
	"entr":      {mark: markAll},
	"tee":       {},
	"dd":        {assign: true},
	"ar":        {long: "plugin"},
	"ld":        {long: "plugin", single: "plugin"},
	"7z":        {},
	"ffmpeg":    {},
	"busctl":    {words: "call"},
	"install":   {short: "s", long: "strip-program strip"},
	"cpio":      {long: "rsh-command", short: "F"},
	"mail":      {mark: markContains("~!")},
	"tcpdump":   {short: "zF"},
	"nmap":      {long: "script datadir servicedb", short: "i"},
	"dotnet":    {words: "exec run script tool", long: "additional-deps additionalprobingpath"},
	"swift":     {words: "run package"},
	"task":      {short: "td", long: "taskfile dir"},
	"just":      {short: "fdc", long: "justfile working-directory shell shell-arg command chooser set", assign: true},
	"rake":      {short: "feErRIp", long: "rakefile execute execute-print execute-continue require libdir"},
	"gem":       {words: "exec", long: "config-file"},
	"mix":       {words: "run eval do"},
	"cabal":     {words: "run exec repl"},
	"stack":     {words: "exec run eval script ghci"},
}

var (
	tarProgram = program{
		long: "to-command checkpoint-action use-compress-program rsh-command info-script new-volume-script rmt-command transform files-from", short: "IFT",
		mark: func(args []word, mark func(int)) { // the old form has no dash: tar xIf
			if len(args) > 1 && !strings.HasPrefix(args[1].text, "-") && strings.ContainsAny(args[1].text, "IFT") {
				mark(1)
			}
		},
	}
	makeProgram = program{long: "file makefile directory include-dir eval assume-old", short: "fCIEW", assign: true}
	npmProgram  = program{
		long:  "script-shell prefix node-options userconfig globalconfig shell editor viewer git call dir cwd ignore-scripts init-module onload-script",
		short: "Cc", words: "exec x dlx explore config edit create init set",
	}
	ccProgram   = program{single: "wrapper specs fplugin B", mark: markPrefix("-wrapper", "-specs", "--specs", "-fplugin", "-B", "@", "-fuse-ld", "--ld-path", "-Xclang", "-load", "--config")}
	nodeProgram = program{
		long:  "eval print require import loader experimental-loader env-file env-file-if-exists inspect inspect-brk test-reporter experimental-config-file run build-snapshot-config",
		short: "epr",
	}
	pythonProgram    = program{short: "cmXW", long: "check-hash-based-pycs"}
	containerProgram = program{words: "run exec compose create context plugin cp", long: "config host", short: "Hc"}
	viProgram        = program{short: "cSsuUwWiq", long: "cmd startuptime remote-expr remote-send luamod-dev headless", mark: markPrefix("+")}
)

// lookup finds a program by its word.
func lookup(name string) (program, bool) {
	name = base(name)
	p, ok := programs[name]
	if !ok && pythonName.MatchString(name) {
		return pythonProgram, true
	}
	if !ok {
		p, ok = programs[versioned.ReplaceAllString(name, "")]
	}
	return p, ok
}

var (
	pythonName = pattern.New(`^(python|pypy)[0-9.]*$`)
	versioned  = pattern.New(`-?[0-9][0-9.]*$`)
)

// base is the name of a program: without its folder, in small letters where the disk
// may not tell them apart is not decided here.
func base(name string) string {
	name = path.Base(strings.ReplaceAll(name, "\\", "/"))
	return strings.TrimSuffix(name, ".exe")
}

// meansOther is how options are called that run something, whatever the program.
var meansOther = pattern.New(`(?i)(^|[-_])(exec|execute|eval|command|cmd|shell|program|script|hook|hooks|pager|editor|plugin|plugins|preload|wrapper|runner|launcher|interpreter|rsh|askpass|viewer)([-_]|$)`)

// executes marks the arguments that make a program run something else. subcommands
// says whether such subcommands count.
func executes(args []word, subcommands bool) []bool {
	marks := make([]bool, len(args))
	if len(args) == 0 {
		return marks
	}
	p, known := lookup(args[0].text)
	plain := 0
	for i, arg := range args {
		if i == 0 {
			continue
		}
		text := arg.text
		switch {
		case strings.HasPrefix(text, "--") && len(text) > 2:
			name, _, _ := strings.Cut(text[2:], "=")
			marks[i] = !strings.HasPrefix(name, "no-") && meansOther.MatchString(name) || abbreviates(name, p.long) || contains(p.single, name)
		case strings.HasPrefix(text, "-") && len(text) > 1:
			name, _, _ := strings.Cut(text[1:], "=")
			marks[i] = contains(p.single, name) || len(name) > 2 && meansOther.MatchString(name) || bundled(text[1:], p.short)
		default:
			// An option before it may have taken the first as its value.
			if plain++; subcommands && plain <= 2 && contains(p.words, text) {
				marks[i] = true
			}
		}
		if p.assign && strings.Contains(text, "=") {
			marks[i] = true
		}
		// What the shell puts in its place may be an option.
		if known && arg.glob && strings.IndexAny(text, "*?[") == 0 {
			marks[i] = true
		}
	}
	if p.mark != nil {
		p.mark(args, func(i int) { marks[i] = true })
	}
	return marks
}

// abbreviates reports whether an option is one of the list, or the beginning of one.
func abbreviates(name, list string) bool {
	for long := range strings.FieldsSeq(list) {
		if strings.HasPrefix(long, name) {
			return true
		}
	}
	return false
}

// bundled reports whether one of the letters is among those in front.
func bundled(text, letters string) bool {
	for _, r := range text {
		if r < 'A' || r > 'z' || r > 'Z' && r < 'a' {
			return false
		}
		if strings.ContainsRune(letters, r) {
			return true
		}
	}
	return false
}

func markAll(args []word, mark func(int)) {
	for i := range args[1:] {
		mark(i + 1)
	}
}

func markPrefix(prefixes ...string) func([]word, func(int)) {
	return func(args []word, mark func(int)) {
		for i, arg := range args[1:] {
			for _, prefix := range prefixes {
				if strings.HasPrefix(arg.text, prefix) {
					mark(i + 1)
				}
			}
		}
	}
}

func markContains(texts ...string) func([]word, func(int)) {
	return func(args []word, mark func(int)) {
		for i, arg := range args[1:] {
			for _, text := range texts {
				if strings.Contains(arg.text, text) {
					mark(i + 1)
				}
			}
		}
	}
}

// gitPlain are the options before git's subcommand that change nothing.
const gitPlain = "--no-pager -P --version --help -h --no-optional-locks --literal-pathspecs --no-lazy-fetch --no-replace-objects --icase-pathspecs --glob-pathspecs --noglob-pathspecs"

func markGit(args []word, mark func(int)) {
	sub := ""
	for i, arg := range args {
		switch {
		case i == 0:
		case strings.Contains(arg.text, "ext::") || strings.Contains(arg.text, "fd::"):
			mark(i)
		case sub != "":
			// -x of rebase and difftool, -O of grep, -u of clone and fetch.
			letters := map[string]string{"rebase": "xis", "difftool": "x", "grep": "O", "clone": "uc", "fetch": "u", "ls-remote": "u", "add": "ipe", "commit": "eCct"}[sub]
			if strings.HasPrefix(arg.text, "-") && !strings.HasPrefix(arg.text, "--") && bundled(arg.text[1:], letters) && sub != "commit" && sub != "add" {
				mark(i)
			}
		case !strings.HasPrefix(arg.text, "-"):
			sub = arg.text
		case !contains(gitPlain, arg.text):
			mark(i)
		}
	}
}

// markSSH: what stands behind the host runs there, which is what ssh is for; a host
// that looks like an option is one.
func markSSH(args []word, mark func(int)) {
	for i, arg := range args {
		if i > 0 && strings.Contains(arg.text, "ProxyCommand") {
			mark(i)
		}
	}
}

// markAwk: a program text that runs commands or writes files.
func markAwk(args []word, mark func(int)) {
	for i, arg := range args {
		if i > 0 && (strings.Contains(arg.text, "system") || strings.Contains(arg.text, "getline") || strings.ContainsAny(arg.text, "|@>")) {
			mark(i)
		}
	}
}

var (
	plainSed   = pattern.New(`^([0-9]+|\$)?(,([0-9]+|\$))?[pdq=]$|^s([/|,#])[^\n;{}]*[/|,#][gpI0-9]*$`)
	sedCommand = pattern.New(`[;\n{}]|^[0-9,$~!/]*[a-zA-Z]\s`)
)

// markSed: sed runs what is behind e and writes what is behind w, so that only the
// plainest scripts are not marked: ranges that are printed or deleted, and one s.
func markSed(args []word, mark func(int)) {
	script := false
	for i, arg := range args {
		switch {
		case i == 0 || strings.HasPrefix(arg.text, "-") && len(arg.text) > 1:
		case !script:
			script = true
			if !plainSed.MatchString(arg.text) || oddDelimiters(arg.text) {
				mark(i)
			}
		case sedCommand.MatchString(arg.text):
			mark(i)
		}
	}
}

// oddDelimiters reports that an s has another number of delimiters than three.
func oddDelimiters(text string) bool {
	if !strings.HasPrefix(text, "s") || len(text) < 2 {
		return false
	}
	delimiter := text[1]
	n := 0
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case delimiter:
			n++
		}
	}
	return n != 3
}

// dangerousNames are variables that change what a command runs.
const dangerousNames = "PATH IFS ENV BASH_ENV SHELL SHELLOPTS BASHOPTS PS4 PS1 PROMPT_COMMAND CDPATH EDITOR VISUAL PAGER BROWSER HOME TERM TERMINFO ZDOTDIR " +
	"FPATH GLOBIGNORE HISTFILE MAKEFLAGS MAKEFILES MFLAGS CC CXX LD AR CFLAGS LDFLAGS CLASSPATH TMPDIR XDG_CONFIG_HOME HOSTALIASES LOCALDOMAIN " +
	"PERLLIB PERL5LIB PERL5OPT PERL5DB RUBYOPT RUBYLIB GEM_PATH GEM_HOME LUA_INIT LUA_PATH LUA_CPATH R_PROFILE TCLLIBPATH AWKPATH JAVA_HOME GOROOT GOPATH GOBIN"

var dangerousPrefix = pattern.New(`^(LD_|DYLD_|GIT_|SSH_|PYTHON|NODE_|NPM_|npm_|YARN_|PERL|RUBY|JAVA_|JDK_|_JAVA|MAVEN_|GRADLE_|GO|CGO_|CARGO_|RUST|DOCKER_|KUBE|SUDO_|LESS|MAN|PIP_|UV_|GREP_|RIPGREP_|FZF_|BASH_FUNC|LUA_|PHP|MYSQL|PG|GNUPG|GPG_|OPENSSL|CURL_|WGET|AWS_|http|HTTP|ALL_PROXY|all_proxy|https|HTTPS|NO_PROXY)|(_OPTIONS|_OPTS|_COMMAND|_PAGER|_EDITOR|_ASKPASS|_SHELL|FLAGS|_PATH|_HOME|_CONFIG|_WRAPPER|_PRELOAD|_PROGRAM)$`)

func dangerous(name string) bool { return dangerousPrefix.MatchString(name) }

// harmlessNames may stand in front of any allowed command.
const harmlessNames = "CI NO_COLOR FORCE_COLOR CLICOLOR LANG LC_ALL TZ"
