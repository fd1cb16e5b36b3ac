/* Snapshots of a TASK and their rollback: the three strategies, refusals, and repositories. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <amp/base/file.h>
#include <jansson.h>

#include "../killed.h"
#include "../tap.h"
#include "../tree.h"
#include "work/aop/snapshot/private.h"

static char dir[256], state[300], place[300], trail[320], below[320];
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
        "cd %s && { find . -name .git -prune -o -path ./.snap -prune -o -type d -printf "
        "'%%y %%m %%p\\n' -o -printf '%%y %%m %%T@ %%l %%p\\n'; find . -name .git -prune -o "
        "-path ./.snap -prune -o -type f ! -name huge -exec sha256sum {} +; %s; } | LC_ALL=C sort",
        place,
        with_git ? "git ls-files -s -v; cat .git/HEAD; git rev-parse HEAD; git stash list" : ":");
    FILE *f = popen(text, "r");
    size_t n = f ? fread(out, 1, size - 1, f) : 0;
    out[n] = '\0';
    if (f)
        pclose(f);
}

static json_t *task(const char *outputs)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{\"task\":{\"expected_outputs\":[%s],\"access\":{\"filesystem\":{\"write_paths\":"
             "[\"C:/ws/src\",\"docs/d\"]}}}}",
             outputs);
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

static int forget(struct amp_error *err)
{
    AMP_CLEANUP(amp_shot_release) struct amp_shot s = {.fd = -1, .place_fd = -1};
    return amp_shot_init(&s, &of, err) < 0 ? -1 : amp_shot_forget(&s, err);
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
    TAP_INT(sh("cmp ws/docs/d ws/.snap/d.diff"), 0, "a copy, as there is no repository");
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
    TAP_OK(forget(&err) == 0 && amp_snapshot_newest(state, "S-1", "T/1 ä", &newest, &err) == 0 &&
               newest == 0,
           "it is forgotten");
    TAP_INT(restore(&r, &err), 1, "then there is none");
    /* An output without a path. */
    TAP_INT(take("{\"rollback_snapshot\":{\"enabled\":true}}", &err), 1,
            "a snapshot of the write_paths");
    sh("cd ws; rm -r src; echo x >docs/d; echo more >docs/more");
    TAP_INT(restore(&r, &err), 0, "the rollback");
    TAP_OK(r.n == 2 && r.v[0].restored && strcmp(r.v[0].path, "C:/ws/src") == 0 &&
               strcmp(r.v[1].path, "docs/d") == 0,
           "has both of them");
    amp_snapshot_result_release(&r);
    sh("rm ws/docs/more"); /* is not in them */
    listing(after, sizeof after, false);
    TAP_STR(after, before, "everything is as it was");
    forget(&err);
    /* What is left out of a directory stays, with the directories above it. */
    of.trail = trail;
    TAP_INT(take("{\"path\":\".\",\"rollback_snapshot\":{\"enabled\":true,\"snapshot_path\":"
                 "\"way/to/it\"}}",
                 &err),
            1, "a snapshot of the workspace");
    sh("cd ws; rm -r src; mkdir -p trail/of/it trail/x .git; echo t >trail/of/it/t; echo x "
       ">trail/x/x; echo x >trail/of/x; echo changed >way/to/it/docs/d; echo x >way/x; chmod 0 "
       "trail");
    TAP_INT(restore(&r, &err), 0, "its rollback");
    TAP_STR(err.what, "", "without an error");
    amp_snapshot_result_release(&r);
    TAP_INT(
        sh("cd ws; test -d .git && grep -qx t trail/of/it/t && grep -qx changed way/to/it/docs/d "
           "&& test ! -e trail/x -a ! -e trail/of/x -a ! -e way/x && rm -r trail way .git"),
        0, "leaves the audit trail, the snapshot_path and .git alone");
    listing(after, sizeof after, false);
    TAP_STR(after, before, "everything else is as it was");
    of.trail = NULL;
    forget(&err);
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
        {SHOT("socket", ""), "E_PERMISSION_DENIED", "a socket"},
        {SHOT("huge", ""), "E_CONTEXT_OVERFLOW", "a file above the limit"},
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
       "ws/to-etc; mkfifo ws/pipe; truncate -s 4T ws/huge");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%.90s/socket", place);
    AMP_CLOSE int bound = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TAP_OK(bind(bound, (struct sockaddr *)&at, sizeof at) == 0, "a socket");
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
    sh("touch -d '29 days ago' state/snapshots/S-1.*.1/meta.json; touch -d '31 days ago' "
       "state/snapshots/S-1.*.2/meta.json");
    of.attempt = 4;
    TAP_INT(take(SHOT("src/a", ""), &err), 1, "another one");
    TAP_INT(
        sh("cd state/snapshots; test -d S-1.*.1 -a -d S-1.*.4 && test ! -e S-1.*.2 && test -e at"),
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
    "cd ws; echo 'x' >tracked; rm -rf dir link; echo l >link; chmod 644 run; printf '*\\n' "
    ">.gitignore; mkdir -p new/deep; echo n >new/deep/n; echo '*' >new/.gitignore; rm untracked; "
    "echo r >empty/r; echo gitdir: /nowhere >sub/.git; echo z >sub/z; echo changed >a.o; echo made "
    ">b.o; rm -f .gitattributes crlf; git init -q empty/new; mkdir dir; ln -s ../.. dir/.git";

static void stashes(void)
{
    struct amp_error err;
    struct amp_snapshot_result r;
    of.attempt = 20;
    sh(make_repo);
    listing(before, sizeof before, true);
    /* None of these is to be run, nor to change a byte. */
    sh("cd ws; git config filter.f.clean 'touch ../ran; cat'; git config core.fsmonitor 'touch "
       "../ran #'; "
       "mkdir -p .git/hooks; for h in post-commit reference-transaction post-index-change; do "
       "printf "
       "'#!/bin/sh\\ntouch %s/ran\\n' \"$PWD/..\" >.git/hooks/$h; chmod 755 .git/hooks/$h; done; "
       "echo '* "
       "filter=f text=auto' >.git/info/attributes; rm -f ../ran");
    sh("rm -f ran");
    TAP_INT(
        take(SHOT(".", ",\"snapshot_strategy\":\"GIT_STASH\",\"snapshot_path\":\".snap/stash\""),
             &err),
        1, "a stash");
    TAP_STR(err.what, "", "without an error");
    TAP_INT(sh("test ! -e ran && git -C ws config --unset core.fsmonitor"), 0, "runs nothing");
    listing(after, sizeof after, true);
    TAP_STR(after, before, "which changes nothing");
    TAP_INT(sh("test $(git -C ws for-each-ref refs/amp/snapshots | wc -l) = 1 && test $(git -C ws "
               "stash list | wc -l) = 1 && grep -q refs/amp/snapshots ws/.snap/stash"),
            0, "under a ref of its own; the stashes are as before");
    TAP_INT(sh("cd ws; ref=$(git for-each-ref --format='%(refname)' refs/amp/snapshots); for f in "
               "untracked tracked a.o crlf sub/l; do git cat-file blob $ref:$f | cmp - $f; done && "
               "test \"$(git show $ref:link)\" = tracked && ! git cat-file -e $ref:gone 2>&1 && "
               "git ls-tree "
               "$ref run | grep -q ^100755"),
            0, "it has the files, byte for byte");
    /* Also deeper than a library reads directories. */
    if (sh(spoil_repo) || sh("cd ws; for n in 99 100 700; do mkdir -p $(printf \"l$n/%.0s\" $(seq "
                             "$n)); done"))
        return;
    TAP_INT(restore(&r, &err), 0, "the rollback");
    TAP_STR(err.what, "", "without an error");
    amp_snapshot_result_release(&r);
    listing(after, sizeof after, true);
    TAP_STR(after, before, "everything is as it was");
    TAP_INT(sh("git -C ws/sub rev-parse HEAD && git -C ws fsck --strict"), 0, "also for git");
    TAP_INT(restore(&r, &err), 0, "a second rollback changes nothing");
    amp_snapshot_result_release(&r);
    TAP_INT(forget(&err), 0, "it is forgotten");
    TAP_INT(sh("test -z \"$(git -C ws for-each-ref refs/amp/snapshots)\""), 0, "with its ref");
}

/* Both are killed at some of their system calls, or at all of them. */
static int killed_take(void)
{
    struct amp_error err;
    of.git = NULL;
    return take(SHOT("tracked", ",\"snapshot_strategy\":\"GIT_STASH\",\"snapshot_path\":\".snap/"
                                "s\"") "," SHOT(".", ",\"snapshot_path\":\".snap/all\""),
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
                                 "s\"") "," SHOT(".", ",\"snapshot_path\":\".snap/all\""),
                 &err) != 1)
            printf("# at %ld: %s: %s\n", n, err.code, err.what), bad++;
        listing(after, sizeof after, true);
        bad += strcmp(after, before) != 0 || sh("test -z \"$(find ws -name '.amp-*')\"") != 0;
        forget(&err);
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
    sh("printf 'a\\0b' >ws/dir/bin");
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
    TAP_INT(
        sh("rm -rf clone; git clone -q ws clone && cd clone && git apply ../ws/.snap/u && cmp "
           "tracked ../ws/tracked && cmp untracked ../ws/untracked && cmp dir/bin "
           "../ws/dir/bin && test ! -e gone && test \"$(git status --porcelain | paste -sd,)\" = "
           "' D gone, M tracked,?? dir/bin,?? dir/hard,?? dir/name,?? untracked'"),
        0, "which git can apply");
    sh("cd ws; rm -rf dir tracked run; echo back >gone; rm untracked; mkdir untracked; echo >run");
    TAP_INT(restore(&r, &err), 0, "the rollback");
    TAP_STR(err.what, "", "without an error");
    amp_snapshot_result_release(&r);
    listing(after, sizeof after, true);
    TAP_STR(after, before, "everything is as it was");
    /* A workspace below the top of a linked worktree, which is removed later. */
    of.attempt = 31;
    sh("cd ws; git stash -q -u; git worktree add -q ../linked -b linked");
    of.place = below;
    TAP_INT(take(SHOT("f", ",\"snapshot_strategy\":\"GIT_STASH\",\"snapshot_path\":\"s\""), &err),
            1, "a directory of a worktree");
    TAP_STR(err.what, "", "without an error");
    TAP_INT(sh("ref=$(git -C ws for-each-ref --format='%(refname)' "
               "refs/amp/snapshots | tail -n1); test \"$(git -C ws diff --name-only $ref linked)\" "
               "= '' "
               "&& git -C ws cat-file -e $ref:dir/f && rm -rf linked && git -C ws worktree prune"),
            0, "has the paths of the repository");
    TAP_INT(forget(&err), 0, "it is forgotten without the worktree");
    TAP_INT(sh("test $(git -C ws for-each-ref refs/amp/snapshots | wc -l) = 1"), 0, "with its ref");
    of.place = place;
}

int main(void)
{
    struct amp_error err;
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0); /* most of the time would be syncing */
    tree_temporary(dir, sizeof dir);
    snprintf(state, sizeof state, "%s/state", dir);
    snprintf(place, sizeof place, "%s/ws", dir);
    snprintf(trail, sizeof trail, "%s/trail/of/it", place);
    snprintf(below, sizeof below, "%s/linked/dir", dir);
    of.state = state;
    of.place = place;
    sh("mkdir state ws");
    amp_git_open(NULL, &git, &err);
    of.git = git;
    copies();
    refusals();
    stashes();
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
