/*
 * The rules of the hook for coding agents: commands and files of tests/fixture/hook with one set of
 * rules, and command lines made at random, of which those that are allowed are given to a real
 * shell with programs that record how they were called.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <amp/base/buf.h>
#include <amp/base/file.h>
#include <amp/json/writer.h>

#include "../scratch.h"
#include "../tap.h"
#include "people/question/hook/rules.h"

static const char *const rules_text[] = {
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"git status *\"}",
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"git diff *\"}",
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"git log *\"}",
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"ls *\"}",
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"cat *\"}",
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"echo *\"}",
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"grep *\"}",
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"cd *\"}",
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"true\"}",
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"make test\"}",
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"npm run test*\"}",
    "{\"decision\":\"allow\",\"kind\":\"command\",\"command\":\"./build.sh *\"}",
    "{\"decision\":\"deny\",\"command\":\"git push *\"}",
    "{\"decision\":\"deny\",\"command\":\"sudo *\"}",
    "{\"decision\":\"deny\",\"command\":\"curl *\"}",
    "{\"decision\":\"deny\",\"command\":\"rm -rf\"}",
    "{\"decision\":\"ask\",\"command\":\"rm *\"}",
    "{\"decision\":\"deny\",\"path\":\".env\"}",
    "{\"decision\":\"deny\",\"path\":\"secrets\"}",
    "{\"decision\":\"deny\",\"path\":\"//etc/shadow\"}",
    "{\"decision\":\"allow\",\"kind\":\"read\",\"path\":\"**\"}",
    "{\"decision\":\"allow\",\"kind\":\"write\",\"path\":\"src/**\"}",
    "{\"decision\":\"allow\",\"kind\":\"write\",\"path\":\".github/**\"}",
};
static struct amp_hook_rules rules;
static const char *const words[] = {"open", "allow", "ask", "deny"};
static char top[PATH_MAX];

static void tree_make(void)
{
    static const char *const dirs[] = {".git", "src", "src/deep", "secrets", "stubs"};
    char path[2 * PATH_MAX], to[2 * PATH_MAX];
    if (!realpath(scratch(), top))
        exit(1);
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        snprintf(path, sizeof path, "%s/%s", top, dirs[i]);
        mkdir(path, 0700);
    }
    const char *const links[][2] = {{"to_src", "src"},          {"to_secrets", "secrets"},
                                    {"to_etc", "/etc"},         {"src/to_root", "/"},
                                    {"dangling", "/nowhere/x"}, {"to_env", ".env"}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        snprintf(path, sizeof path, "%s/%s", top, links[i][0]);
        if (symlink(links[i][1], path) != 0)
            exit(1);
    }
    static const char *const files[] = {".env", "src/a.c", "secrets/key"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(to, sizeof to, "%s/%s", top, files[i]);
        int fd = open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0)
            exit(1);
        close(fd);
    }
}

static enum amp_hook_decision decide(const struct amp_hook_rules *r, const char *tool,
                                     const char *member, struct amp_span value,
                                     struct amp_hook_result *out)
{
    AMP_BUF struct amp_buf json = {0};
    AMP_CALL_EVENT struct amp_call_event e = {0};
    struct amp_hook_place at;
    struct amp_error err = {0};
    struct amp_jw w;
    amp_buf_init(&json, 1 << 20);
    amp_jw_init(&w, &json);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "hook_event_name", "PreToolUse");
    amp_jw_member_text(&w, "cwd", top);
    amp_jw_member_text(&w, "tool_name", tool);
    amp_jw_member_open(&w, "tool_input", '{');
    amp_jw_member_str(&w, member, value);
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, &err) < 0 ||
        amp_call_event_read(amp_buf_span(&json), AMP_CLI_CLAUDE, &e, &err) < 0 ||
        amp_hook_place_find(e.cwd, &at, &err) < 0 || amp_hook_decide(r, &e, &at, out, &err) < 0) {
        printf("# %s: %s\n", err.code, err.what);
        return AMP_HOOK_UNDECIDED;
    }
    return out->decision;
}

/* \n, \r, \t, \v, \f and \\ of a fixture. */
static struct amp_span unescape(char *text)
{
    char *to = text;
    for (const char *p = text; *p; p++) {
        static const char from[] = "nrtvf\\", into[] = "\n\r\t\v\f\\";
        const char *at = *p == '\\' && p[1] ? strchr(from, p[1]) : NULL;
        *to++ = at ? into[at - from] : *p;
        p += at != NULL;
    }
    return (struct amp_span){text, (size_t)(to - text)};
}

static void cases_run(const char *file, bool commands, int least)
{
    AMP_FREE char *line = NULL;
    struct amp_hook_result r;
    size_t cap = 0;
    int n = 0;
    FILE *f = fopen(file, "re");
    TAP_OK(f, "%s is there", file);
    while (f && getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = strchr(line, '|'), path[2 * PATH_MAX];
        if (*line == '#' || !rest)
            continue;
        *rest++ = '\0';
        char shown[200];
        snprintf(shown, sizeof shown, "%.190s", rest);
        enum amp_hook_decision got;
        if (commands) {
            got = decide(&rules, "Bash", "command", unescape(rest), &r);
        } else {
            char *name = strchr(rest, '|');
            *name++ = '\0';
            const char *tool = strcmp(rest, "read") == 0     ? "Read"
                               : strcmp(rest, "write") == 0  ? "Write"
                               : strcmp(rest, "search") == 0 ? "Grep"
                                                             : "mcp__files__move";
            if (strncmp(name, "@TOP@", 5) == 0)
                snprintf(path, sizeof path, "%s%s", top, name + 5);
            else
                snprintf(path, sizeof path, "%s", name);
            got = decide(&rules, tool, strcmp(rest, "read") == 0 ? "file_path" : "path",
                         amp_span_str(path), &r);
        }
        n++;
        if (strcmp(words[got], line) != 0)
            TAP_OK(false, "%s: %s, not %s (%s)", shown, words[got], line, r.why);
    }
    if (f)
        fclose(f);
    TAP_OK(n >= least, "%d cases of %s", n, file);
}

/* ---- a rule that denies beside one that allows everything ---- */

static void rules_read(struct amp_hook_rules *r, const char *const *texts, size_t n)
{
    struct amp_error err;
    for (size_t i = 0; i < n; i++)
        if (amp_hook_rules_add(r, amp_span_str(texts[i]), &err) < 0)
            TAP_OK(false, "rule %zu: %s", i + 1, err.what);
}

static const char *const broad_text[] = {
    "{\"decision\":\"allow\"}",
    "{\"decision\":\"deny\",\"command\":\"git push *\"}",
    "{\"decision\":\"deny\",\"path\":\".env\"}",
};

static void broad_run(void)
{
    AMP_HOOK_RULES broad = {0};
    AMP_FREE char *line = NULL;
    struct amp_hook_result r;
    struct amp_error err;
    size_t cap = 0;
    int n = 0, passed = 0, undenied = 0;
    rules_read(&broad, broad_text, 3);
    FILE *f = fopen("tests/fixture/hook/unplain.txt", "re");
    while (f && getline(&line, &cap, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (*line == '#')
            continue;
        struct amp_span text = unescape(line);
        broad.unread = AMP_HOOK_UNDECIDED;
        if (decide(&broad, "Bash", "command", text, &r) < AMP_HOOK_ASK) {
            printf("# it passes: %.*s\n", AMP_CLIP(text, 200));
            passed++;
        }
        amp_hook_unread_set(&broad, AMP_SPAN("deny"), &err);
        undenied += decide(&broad, "Bash", "command", text, &r) != AMP_HOOK_DENY;
        n++;
    }
    if (f)
        fclose(f);
    TAP_OK(n >= 130, "%d lines that are not plain", n);
    TAP_INT(passed, 0, "none of them passes a rule that denies");
    TAP_INT(undenied, 0, "with unread deny all of them are denied");
    struct amp_span line_of = AMP_SPAN("git status $X");
    amp_hook_unread_set(&broad, AMP_SPAN("allow"), &err);
    TAP_INT(decide(&broad, "Bash", "command", line_of, &r), AMP_HOOK_ALLOW,
            "with unread allow the rules decide as if none refused");
    TAP_INT(decide(&broad, "Bash", "command", AMP_SPAN("git push"), &r), AMP_HOOK_DENY,
            "but for plain lines");
    TAP_OK(amp_hook_unread_set(&broad, AMP_SPAN("maybe"), &err) < 0 && err.status == AMP_CONFIG,
           "another value of unread is refused");
    broad.n = 1;
    broad.unread = AMP_HOOK_UNDECIDED;
    TAP_INT(decide(&broad, "Bash", "command", line_of, &r), AMP_HOOK_ALLOW,
            "without a rule that refuses nothing has to be read");
    broad.n = 3;
}

static void patches(void)
{
    static const struct {
        enum amp_hook_decision decision;
        const char *patch;
    } cases[] = {
        {AMP_HOOK_ALLOW, "*** Update File: src/a.c\n@@\n-x\n+*** y\n *** End of File\n"},
        {AMP_HOOK_ALLOW, "\t *** Add File: src/b.c \r\n+x\n"},
        {AMP_HOOK_DENY, " *** Add File: .env\n+x\n"},
        {AMP_HOOK_DENY, "\t*** Update File: .env\n"},
        {AMP_HOOK_DENY, "*** Update File: src/a.c\n *** Move to: .env \t\n"},
        {AMP_HOOK_UNDECIDED, " *** Add File: x.c\n+x\n"},
        {AMP_HOOK_ASK, "\xc2\xa0*** Add File: src/x\n+x\n"},
        {AMP_HOOK_ASK, "\v*** Add File: src/x\n+x\n"},
        {AMP_HOOK_ASK, "***  Add File: src/x\n+x\n"},
        {AMP_HOOK_ASK, "*** Add File:src/x\n+x\n"},
        {AMP_HOOK_ASK, "*** Add File:  src/x\n+x\n"},
        {AMP_HOOK_ASK, "*** add file: src/x\n+x\n"},
        {AMP_HOOK_ASK, "*** Add File: .env:x\n+x\n"},
        {AMP_HOOK_ASK, "*** Copy File: src/x\n"},
        {AMP_HOOK_ASK, "***\n"},
    };
    char text[512];
    struct amp_hook_result r;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "*** Begin Patch\n*** Update File: src/a.c\n%s*** End Patch\n",
                 cases[i].patch);
        TAP_INT(decide(&rules, "apply_patch", "input", amp_span_str(text), &r), cases[i].decision,
                cases[i].patch);
    }
}

/* ---- what a shell does with lines that are allowed ---- */

static uint64_t seed;
static unsigned pick(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

/* Only git is allowed here, and only with the words status or diff. */
static const char *const narrow_text[] = {
    "{\"decision\":\"allow\",\"command\":\"git status *\"}",
    "{\"decision\":\"allow\",\"command\":\"git diff\"}",
};

static bool stubs_make(void)
{
    static const char *const names[] = {"git", "touch", "status", "diff", "x"};
    char path[2 * PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/stubs/%s", top, names[i]);
        FILE *f = fopen(path, "we");
        if (!f)
            return false;
        fprintf(f, "#!/bin/sh\nprintf '%%s\\n' \"%s $1 $#\" >>'%s/called'\n", names[i], top);
        fclose(f);
        chmod(path, 0700);
    }
    return true;
}

/* Runs the line in a shell, with the stubs as the only programs; whether only allowed commands ran.
 */
static bool shell_keeps(const char *line, const char *shell)
{
    char called[2 * PATH_MAX], stubs[2 * PATH_MAX], made[2 * PATH_MAX], got[512];
    bool good = true;
    snprintf(called, sizeof called, "%s/called", top);
    snprintf(stubs, sizeof stubs, "%s/stubs", top);
    snprintf(made, sizeof made, "%s/run", top);
    unlink(called);
    mkdir(made, 0700);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        if (chdir(made) == 0 && setenv("PATH", stubs, 1) == 0)
            execl(shell, shell, "-c", line, (char *)NULL);
        _exit(99);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return false;
    FILE *f = fopen(called, "re");
    while (f && fgets(got, sizeof got, f))
        good &= strncmp(got, "git status ", 11) == 0 || strcmp(got, "git diff 1\n") == 0;
    if (f)
        fclose(f);
    /* Nothing may have been made: no redirection. */
    return good && rmdir(made) == 0;
}

static void random_lines(void)
{
    static const char *const parts[] = {
        "git",  "status", "diff",      "touch",      "x",          " ",
        " ",    " ",      ";",         "&&",         "||",         "|",
        "&",    "\n",     "\r",        "\t",         "'",          "\"",
        "\\",   "$",      "(",         ")",          "`",          "{",
        "}",    "<",      ">",         ">>",         "<<EOF\n",    "\nEOF\n",
        "#",    "=",      "~",         "*",          "!",          "if",
        "then", "fi",     "/dev/null", "2>&1",       "X=1",        "[[",
        "]]",   "do",     "done",      "<(",         "git status", "git diff",
        "\\\n", "<<<",    "'x'",       "\"x\"",      ">/dev/null", "; ",
        " && ", " | ",    "-",         "time ",      ",",          "\v",
        "^",    "=x",     " || true",  "} always {", "repeat 2 ",  "2>/dev/null",
        ">&2",
    };
    static const char *const shells[] = {"/bin/sh", "/bin/bash", "/bin/zsh"};
    struct amp_hook_rules narrow = {0};
    struct amp_hook_result r;
    int ran = 0, allowed = 0, wrong = 0;
    rules_read(&narrow, narrow_text, 2);
    const char *given = getenv("HOOK_LINES"), *start = getenv("HOOK_SEED");
    long lines = given ? atol(given) : 60000;
    seed = start ? strtoull(start, NULL, 10) : 20261123;
    for (long i = 0; i < lines; i++) {
        char line[256] = "git status";
        unsigned n = 1 + pick(9);
        size_t len = pick(3) ? strlen(line) : 0;
        for (unsigned k = 0; k < n && len < sizeof line - 16; k++)
            len += (size_t)snprintf(line + len, sizeof line - len, "%s",
                                    parts[pick(sizeof parts / sizeof *parts)]);
        if (decide(&narrow, "Bash", "command", (struct amp_span){line, len}, &r) != AMP_HOOK_ALLOW)
            continue;
        allowed++;
        /* Plain lines are many; those with more than words are of interest. */
        if (!strpbrk(line, ";&|\n\\'\"<>(){}#!") || (ran > 40 && pick(8)))
            continue;
        ran++;
        bool kept = true;
        for (size_t k = 0; k < sizeof shells / sizeof *shells; k++)
            kept &= access(shells[k], X_OK) != 0 || shell_keeps(line, shells[k]);
        if (!kept) {
            wrong++;
            printf("# a shell does more with: %s\n", line);
        }
    }
    TAP_OK(allowed > lines / 200 && ran > 20,
           "%d of %ld random lines are allowed, %d of them run in shells", allowed, lines, ran);
    TAP_INT(wrong, 0, "a shell runs only what was allowed");
    amp_hook_rules_release(&narrow);
}

/* ---- rules ---- */

static bool rule_fails(const char *text)
{
    struct amp_hook_rules r = {0};
    struct amp_error err = {0};
    bool failed = amp_hook_rules_add(&r, amp_span_str(text), &err) < 0 &&
                  err.status == AMP_CONFIG && err.code[0];
    amp_hook_rules_release(&r);
    return failed;
}

static void bad_rules(void)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"command\":\"ls\"}",
        "{\"decision\":\"maybe\"}",
        "{\"decision\":1}",
        "{\"decision\":\"allow\",\"decision\":\"deny\"}",
        "{\"decision\":\"allow\",\"x\":\"y\"}",
        "{\"decision\":\"allow\",\"command\":\"\"}",
        "{\"decision\":\"allow\",\"command\":\"  \"}",
        "{\"decision\":\"allow\",\"command\":\"ls && rm\"}",
        "{\"decision\":\"allow\",\"command\":\"ls; rm\"}",
        "{\"decision\":\"allow\",\"command\":\"ls $X\"}",
        "{\"decision\":\"allow\",\"command\":\"ls\\nrm\"}",
        "{\"decision\":\"allow\",\"command\":\"ls \\u0000\"}",
        "{\"decision\":\"allow\",\"path\":\"../x\"}",
        "{\"decision\":\"allow\",\"path\":\"a/./b\"}",
        "{\"decision\":\"allow\",\"command\":\"cat *\",\"path\":\"src/**\"}",
        "{\"decision\":\"allow\",\"kind\":\"anything\"}",
        "{\"decision\":\"allow\",\"cli\":\"emacs\"}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        TAP_OK(rule_fails(bad[i]), "no rule: %s", bad[i]);
    struct amp_hook_rules r = {0};
    struct amp_error err;
    struct amp_hook_result out;
    TAP_OK(amp_hook_rules_add(
               &r, AMP_SPAN("{\"decision\":\"allow\",\"to\\u006fl\":\"Ba\\u0073h\"}"), &err) == 0,
           "escapes in a rule");
    TAP_INT(decide(&r, "Bash", "command", AMP_SPAN("anything 'at all"), &out), AMP_HOOK_ALLOW,
            "a rule without a command allows what cannot be read");
    TAP_INT(decide(&r, "Bashx", "command", AMP_SPAN("ls"), &out), AMP_HOOK_UNDECIDED,
            "the tool's name is complete");
    TAP_OK(amp_hook_rules_add(&r, AMP_SPAN("{\"decision\":\"deny\",\"command\":\"rm *\"}"), &err) ==
               0,
           "a second rule");
    TAP_INT(decide(&r, "Bash", "command", AMP_SPAN("anything 'at all"), &out), AMP_HOOK_ASK,
            "with a rule that denies, what cannot be read is asked");
    TAP_INT(decide(&r, "Bash", "command", AMP_SPAN("ls; rm x"), &out), AMP_HOOK_DENY,
            "a rule that denies wins over one that allows");
    TAP_INT((int)out.rule, 2, "and is named");
    amp_hook_rules_release(&r);
    TAP_OK(amp_hook_rules_add(&r, AMP_SPAN("{\"decision\":\"allow\",\"command\":\"ls *\"}"),
                              &err) == 0,
           "a rule for commands");
    TAP_INT(decide(&r, "mcp__x__run", "command", AMP_SPAN("ls"), &out), AMP_HOOK_UNDECIDED,
            "it does not allow an unknown tool that has a command");
    TAP_INT(decide(&r, "powershell", "command", AMP_SPAN("ls"), &out), AMP_HOOK_UNDECIDED,
            "nor another shell");
    amp_hook_rules_release(&r);
}

int main(void)
{
    tree_make();
    rules_read(&rules, rules_text, sizeof rules_text / sizeof *rules_text);
    cases_run("tests/fixture/hook/commands.txt", true, 300);
    cases_run("tests/fixture/hook/files.txt", false, 50);
    broad_run();
    patches();
    bad_rules();
    if (stubs_make())
        random_lines();
    amp_hook_rules_release(&rules);
    return tap_done();
}
