/* Snapshots of a TASK and their rollback: the three strategies, refusals, and repositories. */
#include <stdio.h>
#include <stdlib.h>

#include <amp/base/file.h>
#include <jansson.h>

#include "flow/session/snapshot.h"
#include "killed.h"
#include "tap.h"
#include "tree.h"

static char dir[256], state[300], place[300];
static struct amp_git *git;

static int sh(const char *command)
{
    char text[8192];
    snprintf(text, sizeof text, "cd %s && { %s\n} >>log 2>&1", dir, command);
    int rc = system(text);
    if (rc != 0)
        printf("# failed: %s\n", command);
    return rc;
}

/* The files with modes, times, links and contents, and what git knows. */
static void listing(char *out, size_t size, bool with_git)
{
    char text[2048];
    snprintf(
        text, sizeof text,
        "cd %s && { find . -name .git -prune -o -path ./.snap -prune -o -type d -printf '%%y %%m "
        "%%p\\n' "
        "-o -printf '%%y %%m %%n %%T@ %%l %%p\\n'; find . -name .git -prune -o -path ./.snap "
        "-prune -o "
        "-type f -exec sha256sum {} +; %s; } | LC_ALL=C sort",
        place,
        with_git ? "for d in . sub; do git -C $d ls-files -s -v | sed s/^/$d-/; cat $d/.git/HEAD "
                   ".git/modules/sub/HEAD 2>/dev/null; git -C $d rev-parse HEAD; "
                   "git -C $d status --porcelain | grep -v .snap; done; git stash list"
                 : ":");
    FILE *f = popen(text, "r");
    size_t n = f ? fread(out, 1, size - 1, f) : 0;
    out[n] = '\0';
    if (f)
        pclose(f);
}

static json_t *task(const char *outputs)
{
    char text[4096];
    snprintf(text, sizeof text, "{\"task\":{\"expected_outputs\":[%s]}}", outputs);
    json_t *j = json_loads(text, 0, NULL);
    if (!j)
        printf("# not JSON: %s\n", text);
    return j;
}

static struct amp_snapshot_of of = {
    .session = "S-1", .task = "T/1 ä", .attempt = 1, .root = "C:/ws"};

static int take(const char *outputs, struct amp_error *err)
{
    json_auto_t *message = task(outputs);
    *err = (struct amp_error){0};
    return amp_snapshot_take(&of, message, err);
}

static int restore(struct amp_snapshot_result *r, struct amp_error *err)
{
    struct amp_snapshot_of by = of;
    *err = (struct amp_error){0};
    by.root = by.place = NULL;
    return amp_snapshot_restore(&by, r, err);
}

static char before[65536], after[65536];

static void copies(void)
{
    struct amp_error err;
    struct amp_snapshot_result r;
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 1 << 16);
    sh("rm -rf ws; mkdir -p ws/src/in ws/docs; cd ws; echo a >src/a; printf '\\0\\1' >src/in/b; ln "
       "-s nowhere src/l;"
       "chmod 750 src/in; echo d >docs/d; chmod 600 docs/d; mkdir src/none");
    listing(before, sizeof before, false);
    TAP_INT(
        take("{\"path\":\"x\"},{\"path\":\"y\",\"rollback_snapshot\":{\"enabled\":false}}", &err),
        0, "a TASK without snapshots");
    TAP_INT(restore(&r, &err), 1, "and no rollback");
    TAP_INT(
        take("{\"path\":\"C:/ws/src\",\"rollback_snapshot\":{\"enabled\":true,\"snapshot_path\":"
             "\"C:/ws/.snap/src.before\",\"snapshot_strategy\":\"COPY\"}},"
             "{\"path\":\"docs/d\",\"rollback_snapshot\":{\"enabled\":true,\"snapshot_path\":"
             "\"C:\\\\ws\\\\.snap\\\\d.diff\",\"snapshot_strategy\":\"DIFF\"}},"
             "{\"path\":\"new/file\",\"rollback_snapshot\":{\"enabled\":true}}",
             &err),
        1, "snapshots are taken");
    TAP_STR(err.what, "", "without an error");
    TAP_INT(sh("diff -r --no-dereference ws/src ws/.snap/src.before && test \"$(stat -c%a "
               "ws/.snap/src.before/in)\" = 750"),
            0, "a copy at snapshot_path");
    TAP_INT(sh("grep -q '^{\"strategy\":\"DIFF\"' ws/.snap/d.diff && tail -n2 ws/.snap/d.diff | "
               "grep -qx d"),
            0, "a difference to nothing");
    TAP_INT(take("{\"path\":\"src\",\"rollback_snapshot\":{\"enabled\":true}}", &err), 1,
            "again: the first one stays");
    sh("cd ws; rm -rf src/in docs; echo x >src/a; mkdir -p new; echo n >new/file; ln -s /etc docs; "
       "echo y >src/y;"
       "rm -r .snap/src.before; echo forged >.snap/d.diff");
    TAP_INT(restore(&r, &err), 0, "the rollback");
    TAP_STR(err.what, "", "without an error");
    listing(after, sizeof after, false);
    TAP_STR(after, before, "everything is as it was");
    TAP_OK(r.n == 3 && r.v[1].restored && strcmp(r.v[1].path, "docs/d") == 0 &&
               strcmp(r.v[0].restored_from, "C:/ws/.snap/src.before") == 0 &&
               strlen(r.digest) == 64,
           "its result");
    TAP_INT(amp_snapshot_event(&of, &r, "TASK_ABORTED", 0, &line, &err), 0, "its event");
    TAP_OK(line.len && strstr(line.data, "\"trigger\":\"TASK_ABORTED\"") &&
               strstr(line.data,
                      "\"restored_from\":\"C:/ws/.snap/src.before\",\"status\":\"SUCCESS\""),
           "with the files");
    amp_snapshot_result_release(&r);
    int64_t newest;
    TAP_OK(amp_snapshot_newest(state, "S-1", "T/1 ä", &newest, &err) == 0 && newest == 1,
           "the newest attempt");
    TAP_OK(amp_snapshot_forget(&of, &err) == 0 &&
               amp_snapshot_newest(state, "S-1", "T/1 ä", &newest, &err) == 0 && newest == 0,
           "it is forgotten");
    TAP_INT(restore(&r, &err), 1, "then there is none");
}

static void refusals(void)
{
    static const struct {
        const char *outputs, *code, *why;
    } rows[] = {
#define SHOT(path, more) "{\"path\":\"" path "\",\"rollback_snapshot\":{\"enabled\":true" more "}}"
        {SHOT("/etc/passwd", ""), "E_PERMISSION_DENIED", "a path outside"},
        {SHOT("../x", ""), "E_PERMISSION_DENIED", "a path above"},
        {SHOT("C:/ws2/x", ""), "E_PERMISSION_DENIED", "a path with the same beginning"},
        {SHOT("to-etc/passwd", ""), "E_PERMISSION_DENIED", "a path through a link"},
        {SHOT(".git/config", ""), "E_PERMISSION_DENIED", "the repository"},
        {SHOT("pipe", ""), "E_PERMISSION_DENIED", "a FIFO"},
        {SHOT("src/a", ",\"snapshot_path\":\"/tmp/x\""), "E_PERMISSION_DENIED",
         "snapshot_path outside"},
        {SHOT("src/a", ",\"snapshot_path\":\"to-etc/x\""), "E_PERMISSION_DENIED",
         "snapshot_path through a link"},
        {SHOT("src/a", ",\"snapshot_path\":\"docs/d\""), "E_PERMISSION_DENIED",
         "snapshot_path on a file"},
        {SHOT("src/new", ",\"snapshot_path\":\"src/new\""), "E_PERMISSION_DENIED",
         "snapshot_path on the output"},
        {SHOT("src/a", ",\"snapshot_path\":\".git/x\""), "E_PERMISSION_DENIED",
         "snapshot_path in .git"},
        {SHOT("src/a", ",\"snapshot_path\":\"s\"") "," SHOT("docs/d", ",\"snapshot_path\":\"s/x\""),
         "E_PERMISSION_DENIED", "snapshots in each other"},
        {SHOT("src/a", ",\"snapshot_strategy\":\"GIT_STASH\""), "E_PERMISSION_DENIED",
         "a stash without a repository"},
        {SHOT("src", "") "," SHOT("docs", ",\"snapshot_strategy\":\"DIFF\""), "E_CONTEXT_OVERFLOW",
         "too many files"},
    };
    struct amp_error err;
    sh("rm -rf ws; mkdir -p ws/src ws/docs; echo a >ws/src/a; echo d >ws/docs/d; ln -s /etc "
       "ws/to-etc; mkfifo ws/pipe");
    listing(before, sizeof before, false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        of.files = i + 1 == sizeof rows / sizeof *rows ? 3 : 0;
        int rc = take(rows[i].outputs, &err);
        TAP_OK(rc == -1 && strcmp(err.code, rows[i].code) == 0, "refused: %s (%d %s: %s)",
               rows[i].why, rc, err.code, err.what);
    }
    of.files = 0;
    listing(after, sizeof after, false);
    TAP_STR(after, before, "and nothing is left");
    TAP_INT(sh("test -z \"$(find state/snapshots -name '*.new' -o -name meta.json)\""), 0,
            "in the state neither");
    /* A snapshot replaces an earlier one at its path, but nothing else. */
    TAP_INT(take(SHOT("src/a", ",\"snapshot_path\":\"s/a\""), &err), 1, "a first attempt");
    sh("echo two >ws/src/a");
    of.attempt = 2;
    TAP_INT(take(SHOT("src/a", ",\"snapshot_path\":\"s/a\""), &err), 1, "a second one");
    TAP_INT(sh("grep -qx two ws/s/a"), 0, "its snapshot is at the path");
    sh("echo mine >ws/s/a");
    of.attempt = 3;
    TAP_OK(take(SHOT("src/a", ",\"snapshot_path\":\"s/a\""), &err) == -1 &&
               strcmp(err.code, "E_PERMISSION_DENIED") == 0,
           "what a person changed there stays");
    sh("touch -d '29 days ago' state/snapshots/S-1/*/1/meta.json; touch -d '31 days ago' "
       "state/snapshots/S-1/*/2/meta.json;"
       "rm -f state/snapshots/pruned; mkdir -p state/snapshots/gone/gone");
    of.attempt = 4;
    TAP_INT(take(SHOT("src/a", ""), &err), 1, "another one");
    TAP_INT(sh("cd state/snapshots; test -d S-1/*/1 -a -d S-1/*/4 && test ! -e S-1/*/2 -a ! -e "
               "gone && test -e at"),
            0, "removes those of more than 30 days");
    of.attempt = 1;
    struct amp_snapshot_result r;
    TAP_INT(restore(&r, &err), 0, "a rollback to the first");
    amp_snapshot_result_release(&r);
    TAP_INT(sh("grep -qx a ws/src/a && grep -qx mine ws/s/a"), 0, "restores it");
    sh("mv ws ws.moved");
    TAP_OK(restore(&r, &err) == -1 && strcmp(err.code, "E_ROLLBACK_FAILED") == 0 && r.n == 1 &&
               !r.v[0].restored,
           "without the workspace: %s", err.what);
    amp_snapshot_result_release(&r);
    sh("rm -rf ws.moved");
}

/* A repository with everything that there may be. */
static const char make_repo[] =
    "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@x "
    "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@x\n"
    "rm -rf ws lib; git init -q -b work ws; git init -q -b main lib; echo l >lib/l; git -C lib add "
    ".; git -C lib commit -qm l\n"
    "cd ws; printf '*.o\\nbuild/\\n' >.gitignore; echo t >tracked; echo x >run; chmod 755 run; ln "
    "-s tracked link; echo g >gone\n"
    "printf 'a\\r\\nb\\r\\n' >crlf; echo '* text=auto' >.gitattributes; mkdir dir; echo f >dir/f\n"
    "git add .; git -c protocol.file.allow=always submodule -q add ../lib sub; git commit -qm "
    "first\n"
    "git stash list >/dev/null; echo stashed >>tracked; git stash -q\n"
    "echo staged >>tracked; git add tracked; echo more >>tracked; rm gone; git rm -q --cached "
    "dir/f; echo u >untracked\n"
    "mkdir empty build; echo o >a.o; echo b >build/b; git update-index --assume-unchanged run; "
    "echo sm >>sub/l; echo i >intent; git add -N intent\n"
    "echo h >dir/hard; ln dir/hard dir/name; chmod 600 untracked; touch -d 2001-01-01 untracked "
    "dir/f a.o";
static const char spoil_repo[] =
    "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@x "
    "GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@x\n"
    "cd ws; git add -A; git commit -qm agent; git checkout -q -b other; echo 'x' >tracked; rm -rf "
    "dir link; echo l >link; chmod 644 run\n"
    "printf '*\\n' >.gitignore; mkdir -p new/deep; echo n >new/deep/n; echo '*' >new/.gitignore; "
    "rm untracked; echo r >empty/r\n"
    /* Its own policy would protect each branch. */
    "cd sub; test $(git symbolic-ref HEAD) = refs/heads/main; mkdir -p ../.git/modules/sub/amp; "
    "printf 'amp-guard 1\\nbranch *\\n' >../.git/modules/sub/amp/guard\n"
    "echo m >>l; git commit -qam main; git checkout -q --detach; echo c >>l; git add l; git commit "
    "-qm sub; echo z >z; cd ..; echo changed >a.o; echo made >b.o\n"
    "rm -f .gitattributes crlf; git rm -q --cached tracked";

static void stashes(bool include)
{
    struct amp_error err;
    struct amp_snapshot_result r;
    char outputs[512];
    of.attempt = include ? 21 : 20;
    sh(make_repo);
    listing(before, sizeof before, true);
    snprintf(outputs, sizeof outputs,
             "{\"path\":\"tracked\",\"rollback_snapshot\":{\"enabled\":true,\"snapshot_strategy\":"
             "\"GIT_STASH\","
             "\"snapshot_path\":\".snap/stash\"%s}}",
             include ? ",\"extensions\":{\"x_include_ignored\":true}" : "");
    TAP_INT(take(outputs, &err), 1, "a stash");
    TAP_STR(err.what, "", "without an error");
    listing(after, sizeof after, true);
    TAP_STR(after, before, "which changes nothing");
    TAP_INT(sh("test $(git -C ws for-each-ref refs/amp/snapshots | wc -l) = 1 && test $(git -C ws "
               "stash list | wc -l) = 1 && grep -q refs/amp ws/.snap/stash"),
            0, "under a ref of its own; the stashes are as before");
    TAP_INT(sh("ref=$(git -C ws for-each-ref --format='%(refname)' refs/amp/snapshots); git -C ws "
               "show $ref:files/untracked | grep -qx u"),
            0, "its files can be shown");
    /* Also deeper than the library reads directories. */
    if (sh(spoil_repo) || sh("cd ws; for n in 99 100 700; do mkdir -p $(printf \"l$n/%.0s\" $(seq "
                             "$n)); done"))
        return;
    sh("cd ws; git init -q empty; echo hidden >empty/h; mkdir dir; echo gitdir: ../lib/.git "
       ">dir/.git");
    TAP_INT(restore(&r, &err), 0, "the rollback");
    TAP_STR(err.what, "", "without an error");
    amp_snapshot_result_release(&r);
    TAP_INT(sh("test ! -e ws/empty/.git -a ! -e ws/dir/.git -a ! -e ws/bare"), 0,
            "new repositories are removed");
    TAP_INT(include ? sh("test ! -e ws/b.o && grep -qx o ws/a.o")
                    : sh("grep -qx made ws/b.o && grep -qx changed ws/a.o && rm ws/b.o && echo o "
                         ">ws/a.o && touch -d 2001-01-01 ws/a.o"),
            0, "ignored files, as asked for");
    listing(after, sizeof after, true);
    TAP_STR(after, before, "everything is as it was: files, index, HEADs, submodule");
    TAP_INT(sh("git -C ws fsck --strict && "
               "test \"$(git -C ws/sub log --topo-order --format=%s $(git -C ws/sub for-each-ref "
               "--format='%(refname)' refs/amp/kept) | paste -sd,)\" = sub,main,l"),
            0, "the agent's commits are kept");
    TAP_INT(
        sh("git -C ws/sub symbolic-ref HEAD | grep -qx refs/heads/main && test \"$(git -C ws/sub "
           "log --format=%s | paste -sd,)\" = l"),
        0, "also those on a protected branch of a submodule, which is back");
    TAP_INT(restore(&r, &err), 0, "a second rollback changes nothing");
    amp_snapshot_result_release(&r);
    TAP_INT(amp_snapshot_forget(&of, &err), 0, "it is forgotten");
    TAP_INT(sh("test -z \"$(git -C ws for-each-ref refs/amp/snapshots)\""), 0, "with its ref");
}

/* Both are killed at some of their system calls, or at all of them. */
static int killed_take(void)
{
    struct amp_error err;
    of.git = NULL;
    return take(SHOT("tracked", ",\"snapshot_strategy\":\"GIT_STASH\",\"snapshot_path\":\".snap/"
                                "s\"") "," SHOT("dir", ",\"snapshot_path\":\".snap/dir\""),
                &err) < 0;
}

static int killed_restore(void)
{
    struct amp_error err;
    struct amp_snapshot_result r;
    of.git = NULL;
    return restore(&r, &err);
}

static void kills(void)
{
    struct amp_error err;
    struct amp_snapshot_result r;
    long step = getenv("AMP_ROUNDS") ? 7 : 450, rounds = 0, bad = 0;
    of.attempt = 40;
    sh(make_repo);
    sh("rm -rf kept state/snapshots; cp -a ws kept");
    listing(before, sizeof before, true);
    for (long n = 5;; n += step, rounds++) {
        if (!killed_at(killed_take, n))
            break;
        if (take(SHOT("tracked", ",\"snapshot_strategy\":\"GIT_STASH\",\"snapshot_path\":\".snap/"
                                 "s\"") "," SHOT("dir", ",\"snapshot_path\":\".snap/dir\""),
                 &err) != 1)
            printf("# at %ld: %s: %s\n", n, err.code, err.what), bad++;
        listing(after, sizeof after, true);
        bad += strcmp(after, before) != 0 || sh("test -z \"$(find ws -name '.amp-*')\"") != 0;
        amp_snapshot_forget(&of, &err);
        sh("rm -rf ws; cp -a kept ws; rm -rf state/snapshots");
    }
    printf("# %ld rounds\n", rounds);
    TAP_OK((rounds > 2 || killed_denied) && bad == 0, "snapshots are complete after a kill (%ld)",
           bad);
    of.attempt = 41;
    TAP_INT(killed_take(), 0, "a snapshot");
    sh(spoil_repo);
    sh("rm -rf spoiled; cp -a ws spoiled");
    rounds = bad = 0;
    for (long n = 5;; n += step, rounds++) {
        sh("rm -rf ws; cp -a spoiled ws");
        if (!killed_at(killed_restore, n))
            break;
        int rc = restore(&r, &err);
        if (rc)
            printf("# at %ld: %s: %s\n", n, err.code, err.what), bad++;
        amp_snapshot_result_release(&r);
        sh("rm ws/b.o; echo o >ws/a.o; touch -d 2001-01-01 ws/a.o");
        listing(after, sizeof after, true);
        if (strcmp(after, before) != 0)
            printf("# at %ld: it differs\n", n), bad++;
    }
    printf("# %ld rounds\n", rounds);
    TAP_OK((rounds > 2 || killed_denied) && bad == 0, "rollbacks are complete after a kill (%ld)",
           bad);
    of.git = git;
}

static void differences(void)
{
    struct amp_error err;
    struct amp_snapshot_result r;
    of.attempt = 30;
    sh(make_repo);
    listing(before, sizeof before, true);
    TAP_INT(
        take(
            SHOT("dir", ",\"snapshot_strategy\":\"DIFF\"") "," SHOT(
                "untracked",
                ",\"snapshot_"
                "strategy\":"
                "\"DIFF\","
                "\"snapshot_"
                "path\":\".snap/"
                "u\"") "," SHOT("tracked",
                                ",\"snapshot_strategy\":\"DIFF\"") "," SHOT("run",
                                                                            ",\"snapshot_"
                                                                            "strategy\":"
                                                                            "\"DIFF\"") "," SHOT("g"
                                                                                                 "o"
                                                                                                 "n"
                                                                                                 "e",
                                                                                                 ","
                                                                                                 "\"snapsho"
                                                                                                 "t"
                                                                                                 "_"
                                                                                                 "s"
                                                                                                 "t"
                                                                                                 "r"
                                                                                                 "a"
                                                                                                 "t"
                                                                                                 "e"
                                                                                                 "g"
                                                                                                 "y"
                                                                                                 "\""
                                                                                                 ":"
                                                                                                 "\"DIFF"
                                                                                                 "\""),
            &err),
        1, "a difference to HEAD");
    TAP_STR(err.what, "", "without an error");
    TAP_INT(sh("test $(find state/snapshots -path '*/30/diff/contents/*' | wc -l) = 3"), 0,
            "has only the contents that HEAD has not");
    sh("cd ws; rm -rf dir tracked run; echo back >gone; mkdir untracked.d; rm untracked; mkdir "
       "untracked; echo >run");
    sh("rmdir ws/untracked.d");
    TAP_INT(restore(&r, &err), 0, "the rollback");
    TAP_STR(err.what, "", "without an error");
    amp_snapshot_result_release(&r);
    listing(after, sizeof after, true);
    TAP_STR(after, before, "everything is as it was");
    of.attempt = 34;
    sh("mkdir -p ws/$(printf 'deep/%.0s' $(seq 100))");
    TAP_OK(take(SHOT("tracked", ",\"snapshot_strategy\":\"GIT_STASH\""), &err) == -1 &&
               strcmp(err.code, "E_CONTEXT_OVERFLOW") == 0,
           "directories that are too deep for the library: %s", err.what);
    sh("rm -r ws/deep");
    sh("git init -q -b x outside; mkdir ws/evil; echo e >ws/evil/e; echo \"gitdir: "
       "$PWD/outside/.git\" >ws/evil/.git");
    TAP_OK(take(SHOT("tracked", ",\"snapshot_strategy\":\"GIT_STASH\""), &err) == -1 &&
               strcmp(err.code, "E_PERMISSION_DENIED") == 0,
           "a file .git that names a repository outside: %s", err.what);
    sh("rm ws/evil/.git; mkdir ws/evil/.git");
    TAP_OK(take(SHOT("tracked", ",\"snapshot_strategy\":\"GIT_STASH\""), &err) == -1 &&
               strcmp(err.code, "E_PERMISSION_DENIED") == 0,
           "a directory .git that is no repository: %s", err.what);
    sh("rm -r ws/evil");
    /* A repository in the workspace whose git directory leads elsewhere. */
    of.attempt = 32;
    sh("git init -q -b x ws/nested; cd ws/nested; echo n >n; git add n; git -c user.name=p -c "
       "user.email=p@x commit -qm n");
    TAP_INT(take(SHOT("tracked", ",\"snapshot_strategy\":\"GIT_STASH\""), &err), 1,
            "with a repository inside");
    sh("git -C lib branch x; cp -a lib/.git lib.git; cd ws/nested; rm -rf .git/refs/heads; ln -s "
       "../../../../lib/.git/refs/heads .git/refs/heads; echo y >n");
    TAP_OK(restore(&r, &err) == -1 && strcmp(err.code, "E_ROLLBACK_FAILED") == 0, "by a link: %s",
           err.what);
    amp_snapshot_result_release(&r);
    sh("cd ws/nested; rm .git/refs/heads; mkdir .git/refs/heads; echo ../../../lib/.git "
       ">.git/commondir");
    TAP_OK(restore(&r, &err) == -1 && strcmp(err.code, "E_ROLLBACK_FAILED") == 0,
           "by commondir: %s", err.what);
    amp_snapshot_result_release(&r);
    TAP_INT(sh("diff -r lib/.git lib.git && grep -qx y ws/nested/n"), 0,
            "nothing is changed there, nor here");
    sh("rm -rf ws/nested");
    /* The index.lock of a reset that was killed is not in the way, that of another git is. */
    of.attempt = 33;
    TAP_INT(take(SHOT("tracked", ",\"snapshot_strategy\":\"GIT_STASH\""), &err), 1, "a stash");
    sh("cd ws; cp .git/index index.was; git add -f a.o; mv index.was .git/index.lock");
    TAP_INT(restore(&r, &err), 0, "a lock with the same bytes");
    TAP_STR(err.what, "", "is replaced");
    amp_snapshot_result_release(&r);
    sh("cd ws; git add -f a.o; : >.git/index.lock");
    TAP_OK(restore(&r, &err) == -1 && strstr(err.what, "index.lock"),
           "another lock is respected: %s", err.what);
    amp_snapshot_result_release(&r);
    sh("rm -f ws/.git/index.lock");
    TAP_INT(restore(&r, &err), 0, "without it");
    amp_snapshot_result_release(&r);
    /* On a protected branch that moved meanwhile. */
    of.attempt = 31;
    sh("git -C ws checkout -q -B main");
    TAP_INT(take(SHOT("tracked", ",\"snapshot_strategy\":\"GIT_STASH\""), &err), 1,
            "a stash on main");
    sh("cd ws; git -c user.name=p -c user.email=p@x commit -qam person; echo agent >tracked");
    listing(before, sizeof before, true);
    TAP_OK(restore(&r, &err) == -1 && strcmp(err.code, "E_ROLLBACK_FAILED") == 0,
           "a protected branch is not moved back: %s", err.what);
    amp_snapshot_result_release(&r);
    listing(after, sizeof after, true);
    TAP_STR(after, before, "and the files stay as they are");
}

int main(void)
{
    struct amp_error err;
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0); /* most of the time would be syncing */
    tree_temporary(dir, sizeof dir);
    snprintf(state, sizeof state, "%s/state", dir);
    snprintf(place, sizeof place, "%s/ws", dir);
    of.state = state;
    of.place = place;
    sh("mkdir state ws");
    amp_git_open(NULL, &git, &err);
    of.git = git;
    copies();
    refusals();
    stashes(false);
    stashes(true);
    kills();
    differences();
    amp_git_close(git);
    if (tap_failed)
        sh("tail -20 log >&3 2>/dev/null || true");
    if (!getenv("KEEP"))
        tree_remove(dir);
    else
        printf("# %s\n", dir);
    return tap_done();
}
