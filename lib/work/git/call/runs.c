/*
 * The programs that run the commands of their arguments or their input, and the words of shells
 * that change how the rest of a line is read. The list is data and cannot be complete: a program
 * that is not in it can start another one all the same, as a makefile does. hitl-prompt-hook(1)
 * says so.
 */
#include <string.h>

#include "work/git/call/plain.h"

/* These always count. Reserved words of shells are no programs, and count, too. */
static const char *const always[] = {
    /* shells */
    "sh bash dash zsh ksh* mksh ash rbash fish *csh busybox toybox pwsh* nu elvish xonsh",
    /* reserved words */
    "if then else elif fi for while until do done case esac in function select time coproc repeat "
    "foreach end always nocorrect noglob -",
    /* builtins that run a command, or change what a later word means */
    "eval exec command builtin source . alias unalias trap hash enable disable set setopt unsetopt "
    "shopt emulate export declare typeset integer float readonly local unset let read mapfile "
    "readarray getopts test fc r history jobs bind bindkey complete compgen zmodload autoload "
    "functions sched zle zstyle print vared pushd popd chdir",
    /* wrappers */
    "env xargs parallel sudo sudoedit doas su runuser pkexec gosu setpriv capsh nice ionice chrt "
    "taskset numactl prlimit nohup timeout setsid stdbuf unbuffer chronic watch entr inotifywait "
    "flock unshare nsenter chroot fakeroot fakechroot bwrap firejail proot strace ltrace perf gdb "
    "lldb rr valgrind hyperfine script expect socat nc ncat netcat ssh sftp dbus-run-session "
    "systemd-run systemd-inhibit start-stop-daemon daemon at batch crontab tmux screen xvfb-run "
    "setarch linux32 linux64 proxychains* torsocks catchsegv eatmydata rlwrap ld.so ld-* run-parts "
    "wine qemu-* osascript npx bunx uvx nix-shell tox nox git-*",
    /* languages in which a short text is a program, and clients with a command for the shell */
    "awk gawk mawk nawk sed gsed ed ex vi vim nvim view emacs* m4 dc irb R sqlite3 psql mysql",
};

/* One of the words must match an argument, as a glob. "^GLOB" matches the arguments up to the first
 * one that is not an option; "!" matches if there is no such argument, so that the program reads
 * its input. */
#define SCRIPT "^-*e* ^-*E* ^- !"
#define NODE   "^-e* ^-p* ^-r* ^--eval* ^--print* ^--require* ^--import* ^x ^exec ^- !"
#define MAKE   "--eval* -E* -f* --file* --makefile* *=*"
static const struct {
    const char *programs, *words;
} with[] = {
    {"python* pypy*", "^-*c* ^- !"},
    {"perl* ruby* lua* Rscript julia ghc", SCRIPT},
    {"node nodejs bun", NODE},
    {"deno", "^eval ^repl ^- !"},
    {"php*", "^-*r* ^-*B* ^-*R* ^-*E* ^- !"},
    {"tclsh* guile", "^-*c* !"},
    {"git", "^-c* ^--config-env* ^--exec-path* ^config ^bisect ^submodule ^filter-branch "
            "^difftool ^mergetool ^hook ^maintenance ^shell ^daemon ^instaweb --exec* "
            "--upload-pack* --receive-pack* --extcmd* --open-files-in-pager* -O* ext::*"},
    {"find", "-exec* -ok*"},
    {"fd fdfind", "-x* -X* --exec*"},
    {"rg", "--pre* --hostname-bin*"},
    {"make gmake", MAKE},
    {"tar", "--to-command* --checkpoint-action* --use-compress-program* -*I* --rsh-command* "
            "--rmt-command* --info-script* --new-volume-script* -*F*"},
    {"rsync", "-*e* --rsh* --rsync-path*"},
    {"scp", "-*S* -*o*"},
    {"sort", "--compress-program*"},
    {"split", "--filter*"},
    {"zip", "-*T* --unzip-command*"},
    {"man", "-*P* --pager* -*H* --html*"},
    {"printf", "-v*"},
    {"ip", "exec"},
    {"docker podman kubectl", "exec run"},
    {"npm pnpm yarn bundle rbenv pyenv asdf mise direnv", "^exec ^x ^dlx"},
    {"uv pipx poetry conda nix", "^run ^tool ^shell ^develop"},
    {"worktree-bind", "^exec"},
    {"task-dispatch aof-board", "-x* --exec*"},
};

/* Takes the next word of a list; its length is 0 at the end. */
static struct amp_span word_next(const char **list)
{
    while (**list == ' ')
        ++*list;
    const struct amp_span word = {*list, strcspn(*list, " ")};
    *list += word.n;
    return word;
}

static bool is_named(const char *list, struct amp_span name)
{
    for (struct amp_span word; (word = word_next(&list)).n;)
        if (amp_span_glob(name, word))
            return true;
    return false;
}

/* The arguments before this one's index are options and the first that is none; behind an option
 * may be its value. */
static size_t lead_end(const struct amp_plain_command *c)
{
    for (size_t i = 1; i < c->n; i++)
        if (*c->words[i] != '-' && (i == 1 || *c->words[i - 1] != '-'))
            return i + 1;
    return c->n;
}

static bool has_operand(const struct amp_plain_command *c)
{
    for (size_t i = 1; i < c->n; i++)
        if (*c->words[i] != '-')
            return true;
    return false;
}

static bool words_match(const struct amp_plain_command *c, const char *list)
{
    size_t lead = lead_end(c);
    for (struct amp_span word; (word = word_next(&list)).n;) {
        bool leads = *word.p == '^';
        const struct amp_span glob = {word.p + leads, word.n - leads};
        if (amp_span_is(glob, "!") && !has_operand(c))
            return true;
        for (size_t i = 1; i < (leads ? lead : c->n); i++)
            if (amp_span_glob(amp_span_str(c->words[i]), glob))
                return true;
    }
    return false;
}

bool amp_runs_others(const struct amp_plain_command *c)
{
    const char *slash = strrchr(c->words[0], '/');
    const struct amp_span name = amp_span_str(slash && slash[1] ? slash + 1 : c->words[0]);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (is_named(always[i], name))
            return true;
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        if (is_named(with[i].programs, name) && words_match(c, with[i].words))
            return true;
    return false;
}
