/* Recorded trees: what they contain, and that a restored one is the same, wherever a restore was
 * killed, and whatever else is done to the files. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <amp/base/file.h>

#include "../killed.h"
#include "../tap.h"
#include "../tree.h"
#include "work/git/snapshot/restore.h"

static char dir[256];
static int place, contents;

static void sh(const char *command)
{
    char text[8192];
    snprintf(text, sizeof text, "cd %s && { %s\n} 2>&1", dir, command);
    if (system(text) != 0)
        printf("# failed: %s\n", command);
}

static int sub(const char *name)
{
    mkdirat(AT_FDCWD, dir, 0700);
    AMP_CLOSE int top = open(dir, O_RDONLY | O_DIRECTORY);
    mkdirat(top, name, 0755);
    return openat(top, name, O_RDONLY | O_DIRECTORY);
}

static int take(struct amp_tree *t, const char *const *paths, int into, struct amp_error *err)
{
    struct amp_tree_scan s = {.root = place, .contents = into, .files = 1000, .bytes = 1 << 24};
    for (; *paths; paths++)
        if (amp_tree_add(&s, *paths, t, err) < 0)
            return -1;
    amp_tree_sort(t);
    return 0;
}

/* Everything in the place as a text, with modes, and times of what is not a directory. */
static void listing(char *out, size_t size)
{
    char text[1024];
    snprintf(text, sizeof text,
             "cd %s/place && { find . -type d -printf '%%y %%m %%p\\n' -o -printf "
             "'%%y %%m %%T@ %%l %%p\\n'; find . -type f -exec sha256sum {} +; } | LC_ALL=C sort",
             dir);
    FILE *f = popen(text, "r");
    size_t n = f ? fread(out, 1, size - 1, f) : 0;
    out[n] = '\0';
    if (f)
        pclose(f);
}

static const char stage[] = ".amp-rollback-test";
static int restore(const struct amp_tree *want, struct amp_error *err)
{
    const struct amp_restore_spec spec = {.root = place, .contents = contents, .stage = stage};
    *err = (struct amp_error){0};
    return amp_restore(&spec, want, err);
}

/* Whether all of its paths are as the tree has them. */
static bool is_same(const struct amp_tree *want)
{
    const struct amp_restore_spec spec = {.root = place, .contents = contents, .stage = stage};
    struct amp_error err;
    return amp_restore_same(&spec, want, ".", &err) == 1;
}

static const char make_place[] =
    "chmod -R 700 place; rm -rf place/* place/.[!.]*; mkdir -p place/src/sub place/empty "
    "place/keep; cd place\n"
    "echo one >src/a; printf '\\0\\377bin' >src/b; chmod 755 src/b; ln -s ../gone src/l\n"
    "echo x >src/sub/c; chmod 640 src/sub/c; mkdir -m 700 src/sub/hollow; echo t >top\n"
    "echo 'a b%' >'src/a b%c'; echo i >src-i; echo s >' lead'; mkdir ' dir'; echo s >' dir/ x'; "
    "touch -h -d 2001-02-03T04:05:06.123456789 src/l "
    "src/a\n"
    "echo same >src/s1; cp -p src/s1 src/s2; n=$(printf 'n\\nl \\377-%249d' 0); echo "
    "n "
    ">\"src/$n\"; ln -s \"$n\" src/-; ln -s - src/dash\n"
    "touch -d 2002-01-01 src/sub src empty .; mkdir src/d; echo in >src/d/in; chmod 500 src/d";
/* What an agent may leave. */
static const char spoil_place[] =
    "cd place; echo two >src/a; rm src/b; mkdir src/b; echo in >src/b/in; rm src/l; ln -s /etc "
    "src/l\n"
    "rm -rf src/sub; ln -s /etc src/sub; rmdir empty; echo file >empty; echo new >src/new\n"
    "mkdir -p src/more/deep; echo d >src/more/deep/f; chmod 0 src/more/deep; chmod 4711 'src/a "
    "b%c'\n"
    "rm src/n* src/-*; ln -f src/s1 src/s2; ln src/a src/hard\n"
    "chmod 700 src/d; rm src/d/in; mkfifo src/d/in; chmod 0 src/d; mkdir -p made/way; echo m "
    ">made/way/m\n"
    "rm src-i; echo changed >' lead'; chmod 600 ' lead'; rm ' dir/ x'; mkdir ' dir/ x'; mkdir -p "
    "new/dir; echo n >new/dir/f; echo k >keep/other; mkdir -p part/of; echo p "
    ">part/of/f\n"
    "echo q >part/q";

static const char *const paths[] = {"src",       "empty",     "src-i", "made/way/m", "new",
                                    "part/of/f", "keep/none", " lead", " dir",       NULL};

static void shapes(void)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0}, again = {0}, read = {0};
    AMP_BUF struct amp_buf text = {0};
    struct amp_error err = {0};
    static char before[16384], after[16384];
    char one[AMP_TREE_DIGEST_MAX], two[AMP_TREE_DIGEST_MAX];
    amp_buf_init(&text, 1 << 20);
    sh(make_place);
    listing(before, sizeof before);
    TAP_OK(take(&t, paths, contents, &err) == 0, "a tree is recorded: %s", err.what);
    amp_tree_digest(&t, one);
    TAP_OK(amp_tree_write(&t, &text, &err) == 0 &&
               amp_tree_read(amp_buf_span(&text), &read, &err) == 0,
           "its text is read: %s", err.what);
    amp_tree_digest(&read, two);
    TAP_STR(two, one, "with the same digest");
    TAP_INT(read.n, t.n, "and all entries");
    const struct amp_tree_entry *e = amp_tree_find(&read, "src/a b%c");
    TAP_OK(e && e->type == AMP_TREE_FILE && e->size == 5, "a name with a space and a percent sign");
    e = amp_tree_find(&read, "src/-"); /* the link to the name of 255 bytes */
    TAP_OK(e && strlen(e->target) == 255 && strncmp(e->target, "n\nl \377- ", 7) == 0 &&
               tree_has(dir, "place/src/-"),
           "a name with a line feed and a byte that is not UTF-8");
    e = amp_tree_find(&read, "src/l");
    TAP_OK(e && e->type == AMP_TREE_LINK && strcmp(e->target, "../gone") == 0 &&
               e->mtime.tv_nsec == 123456789,
           "a link with its target and time");
    e = amp_tree_find(&read, "made");
    TAP_OK(e && e->type == AMP_TREE_NO_WAY, "a missing directory above");
    sh(spoil_place);
    TAP_OK(!is_same(&read), "it differs");
    TAP_OK(restore(&read, &err) == 0, "it is restored: %s", err.what);
    sh("cd place; rm keep/other part/q; rmdir part");
    listing(after, sizeof after);
    TAP_STR(after, before, "with all modes, times, links and contents");
    TAP_OK(take(&again, paths, -1, &err) == 0, "recorded again");
    amp_tree_digest(&again, two);
    TAP_STR(two, one, "the digest is the same");
    TAP_OK(is_same(&read), "nothing differs");
    TAP_OK(restore(&read, &err) == 0, "restoring what is the same: %s", err.what);
    sh("echo more >place/src/more");
    TAP_OK(!is_same(&read), "a file more differs");
    sh("rm place/src/more; chmod 700 place/src/sub");
    TAP_OK(!is_same(&read), "other permissions of a directory differ");

    /* The parent as a link: nothing beyond it is touched. */
    sh("mkdir -p out/sub; echo safe >out/a; rm -rf place/src; ln -s ../out place/src");
    TAP_OK(restore(&read, &err) == 0, "a directory replaced by a link: %s", err.what);
    TAP_OK(tree_has(dir, "out/a") && !tree_has(dir, "out/b") && tree_has(dir, "place/src/b"),
           "the link's target is as it was");
    struct amp_tree_scan s = {.root = place, .contents = -1};
    AMP_CLEANUP(amp_tree_release) struct amp_tree bad = {0};
    static const char *const outside[] = {"/etc", "../out", "src/../..", "a//b", "", "src/l/x"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        TAP_OK(amp_tree_add(&s, outside[i], &bad, &err) == -1 &&
                   (strcmp(err.code, "not_beneath") == 0),
               "refused: '%s' (%s)", outside[i], err.code);
    sh("mkfifo place/fifo");
    TAP_OK(amp_tree_add(&s, "fifo", &bad, &err) == -1 && strcmp(err.code, "special_file") == 0,
           "a FIFO is refused");
    sh("rm place/fifo");
    s.files = 3;
    TAP_OK(amp_tree_add(&s, "src", &bad, &err) == -1 && strcmp(err.code, "tree_limit") == 0,
           "more than the limit of files");
    s.files = 0;
    s.bytes = 6;
    TAP_OK(amp_tree_add(&s, "src", &bad, &err) == -1 && strcmp(err.code, "tree_limit") == 0,
           "more than the limit of bytes");
}

/* A damaged snapshot changes nothing. */
static void failures(void)
{
    static const char *const damage[] = {": >$f", "tr 'a-z\\0' 'b-za\\1' <saved/${f##*/} >$f",
                                         "rm $f"};
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    struct amp_error err = {0};
    static char spoiled[16384], after[16384];
    char command[300];
    sh(make_place);
    take(&t, paths, contents, &err);
    sh(spoil_place);
    sh("cp -a contents saved; chmod 500 place/src/d"); /* as it is to be */
    listing(spoiled, sizeof spoiled);
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        snprintf(command, sizeof command, "for f in contents/*; do %s; done", damage[i]);
        sh(command);
        TAP_OK(restore(&t, &err) == -1 && strcmp(err.code, "snapshot_damaged") == 0,
               "damaged contents are refused: %s: %s", damage[i], err.code);
        listing(after, sizeof after);
        TAP_STR(after, spoiled, "nothing has changed");
    }
    sh("rm -rf contents/* ; cp -a saved/* contents/; rm -rf saved");
}

/* A directory of 3,000 levels, which is deeper than a path and the limit of open files. Some of
 * them are not writable. */
static void deep_make(const char *name)
{
    int at = openat(place, name, O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 3000 && at >= 0; i++) {
        mkdirat(at, "deep", 0700);
        int below = openat(at, "deep", O_RDONLY | O_DIRECTORY);
        if (i > 0 && i % 100 < 50)
            fchmod(at, i % 2 ? 0500 : 0);
        close(at);
        at = below;
    }
    TAP_OK(at >= 0, "a directory of 3,000 levels");
    close(at);
}

/* What an agent may leave so that a rollback fails or does not end. */
static void traps(void)
{
    static const char *const src[] = {"src", NULL};
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0}, again = {0};
    struct amp_error err = {0};
    struct stat st;
    char one[AMP_TREE_DIGEST_MAX], two[AMP_TREE_DIGEST_MAX];
    sh("chmod -R 700 place; rm -rf place/* place/.[!.]*; cd place; mkdir -p src/in; echo a >src/a; "
       "echo b >src/in/b; truncate -s 8M src/hole; echo end >>src/hole");
    TAP_OK(take(&t, src, contents, &err) == 0, "a tree with a file of holes: %s", err.what);
    amp_tree_digest(&t, one);
    sh("cd place; rm src/hole src/a; truncate -s 4T src/a src/more; ln -s /dev/zero src/hole");
    deep_make("src");
    deep_make("src/in");
    TAP_OK(restore(&t, &err) == 0, "it is restored at once: %s", err.what);
    TAP_OK(take(&again, src, -1, &err) == 0, "all is small again: %s", err.what);
    amp_tree_digest(&again, two);
    TAP_STR(two, one, "and as it was");
    TAP_OK(fstatat(place, "src/hole", &st, 0) == 0 && st.st_size == (8 << 20) + 4 &&
               st.st_blocks * 512 < 1 << 20,
           "the holes are holes (%lld blocks)", (long long)st.st_blocks);
    TAP_OK(!tree_has(dir, "place/.amp-rollback-test"), "nothing is left to be removed");
}

static enum amp_tree_skip keep_skip(void *ctx, const char *path, const struct stat *st)
{
    (void)ctx;
    (void)st;
    return strcmp(path, "src/keep") == 0 ? AMP_TREE_LEAVE : AMP_TREE_TAKE;
}

static const struct amp_tree *closed_tree;
static int closed_restore(void)
{
    const struct amp_restore_spec spec = {
        .root = place, .contents = contents, .stage = stage, .skip = keep_skip};
    struct amp_error err;
    if (geteuid() == 0 && setresuid(65534, 65534, 65534))
        return -1;
    return amp_restore(&spec, closed_tree, &err);
}

/* Directories that an agent of the same user made unreadable. */
static void closed(void)
{
    static const char *const paths_of[] = {"src", "way/f", NULL};
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    struct amp_tree_scan s = {.root = place, .contents = contents, .skip = keep_skip};
    struct amp_error err = {0};
    static char before[4096], after[4096];
    sh("chmod -R 700 place; rm -rf place/* place/.[!.]*; cd place; mkdir -p src/in way; echo a "
       ">src/a; "
       "echo b >src/in/b; echo k >src/keep; echo f >way/f; chmod 500 src/in; test $(id -u) != 0 || "
       "chown -R 65534 . ../contents");
    listing(before, sizeof before);
    for (const char *const *p = paths_of; *p; p++)
        amp_tree_add(&s, *p, &t, &err);
    amp_tree_sort(&t);
    sh("cd place; echo x >src/a; echo x >way/f; chmod 0 way src/in src; test $(id -u) != 0 || "
       "chown "
       "-R 65534 . ../contents");
    closed_tree = &t;
    TAP_OK(!killed_at(closed_restore, 100000), "directories that are not readable any more");
    listing(after, sizeof after);
    TAP_STR(after, before, "are as before, with what does not belong to the tree");
    sh("test $(id -u) != 0 || chown -R 0 place contents");
}

/* What another process does while the files are looked at: the tool asks for each path whether it
 * is to be skipped. */
static const char *race_path, *race_command;
static enum amp_tree_skip race_run(void *ctx, const char *path, const struct stat *st)
{
    (void)ctx;
    (void)st;
    if (race_path && strcmp(path, race_path) == 0) {
        race_path = NULL;
        sh(race_command);
    }
    return AMP_TREE_TAKE;
}

static void races(void)
{
    static const char make[] = "chmod -R 700 place; rm -rf place/* place/.[!.]* out; mkdir -p out; "
                               "echo safe >out/c; cd place; "
                               "mkdir -p src/sub; echo a >src/a; echo c >src/sub/c; echo z >src/z";
    static const struct {
        const char *path, *command, *what;
        bool taken;
    } rows[] = {
        {"src/a", "rm place/src/a", "a file vanishes", true},
        {"src/sub", "rm -r place/src/sub", "a directory vanishes", true},
        {"src/sub", "rm -r place/src/sub; ln -s ../../out place/src/sub",
         "a directory becomes a link", false},
        {"src/a", "rm place/src/a; ln -s ../../out/c place/src/a", "a file becomes a link", false},
        {"src/a", "rm place/src/a; mkfifo place/src/a", "a file becomes a FIFO", false},
    };
    struct amp_error err = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
        struct amp_tree_scan s = {.root = place, .contents = contents, .skip = race_run};
        sh(make);
        race_path = rows[i].path;
        race_command = rows[i].command;
        int rc = amp_tree_add(&s, "src", &t, &err);
        amp_tree_sort(&t);
        TAP_OK(rc == (rows[i].taken ? 0 : -1) && !race_path, "while it is recorded, %s: %s",
               rows[i].what, rc ? err.what : "left out");
        TAP_OK(!rows[i].taken || (!amp_tree_find(&t, rows[i].path) && restore(&t, &err) == 0),
               "what was recorded can be restored");
    }
    /* While it is restored, the directory of its files becomes a link and back all the time. */
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    static const char *const src[] = {"src", NULL};
    long done = 0;
    sh(make);
    take(&t, src, contents, &err);
    sh("ln -s ../../out place/other");
    pid_t pid = fork();
    while (pid == 0)
        renameat2(place, "src/sub", place, "other", RENAME_EXCHANGE);
    for (int i = 0; i < 300; i++) {
        int at = openat(place, "src/sub/c", O_WRONLY | O_TRUNC | O_NOFOLLOW);
        if (at >= 0)
            close(at);
        done += restore(&t, &err) == 0;
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    printf("# %ld of 300 succeeded\n", done);
    char command[600];
    snprintf(command, sizeof command, "cd %s && test \"$(ls -A out)\" = c", dir);
    TAP_INT(system(command), 0, "nothing is written through the link, nor left or removed there");
    TAP_OK(restore(&t, &err) == 0 && is_same(&t), "the next one succeeds: %s", err.what);
}

/* As on a file system that can neither exchange two files, nor refuse to replace one. */
static int plain_renames(void)
{
    static struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[4])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static bool killed_plain;
static const struct amp_tree *killed_tree;
static int killed_restore(void)
{
    struct amp_error err;
    if (killed_plain && plain_renames())
        return -1;
    return restore(killed_tree, &err);
}

static void plain_restore(const struct amp_tree *t)
{
    sh("rm -rf place/..?* place/.[!.]* place/*; cp -a spoiled/. place");
    killed_plain = true;
    killed_at(killed_restore, 100000);
    TAP_OK(is_same(t), "without special renames, the files are the same");
}

static void kills(void)
{
    AMP_CLEANUP(amp_tree_release) struct amp_tree t = {0};
    struct amp_error err = {0};
    char want[AMP_TREE_DIGEST_MAX], now[AMP_TREE_DIGEST_MAX];
    const char *all = getenv("AMP_ROUNDS");
    long step = all ? 1 : 149, bad = 0, rounds = 0, left = 0;
    sh(make_place);
    take(&t, paths, contents, &err);
    killed_tree = &t;
    amp_tree_digest(&t, want);
    sh(spoil_place);
    sh("rm place/part/q"); /* so that its directory goes, too */
    sh("rm -rf spoiled; cp -a place spoiled");
    plain_restore(&t);
    for (long n = 3;; n += step) {
        killed_plain = rounds % 3 == 2;
        sh("rm -rf place/..?* place/.[!.]* place/*; cp -a spoiled/. place");
        if (!killed_at(killed_restore, n))
            break;
        rounds++;
        /* The one after it may be killed, too. */
        if (rounds % 2)
            killed_at(killed_restore, n * 7 % 400 + 3);
        AMP_CLEANUP(amp_tree_release) struct amp_tree again = {0};
        if (restore(&t, &err) < 0 || take(&again, paths, -1, &err) < 0) {
            printf("# at %ld: %s: %s\n", n, err.code, err.what);
            bad++;
            continue;
        }
        amp_tree_digest(&again, now);
        bad += strcmp(now, want) != 0 || !is_same(&t);
        AMP_DIR DIR *d = amp_dir_open(place, ".");
        for (const struct dirent *e; d && (e = readdir(d));)
            left += strncmp(e->d_name, ".amp-", 5) == 0;
    }
    printf("# killed %ld times\n", rounds);
    TAP_OK(rounds > 5 || killed_denied, "a restore is killed at its system calls");
    TAP_INT(bad, 0, "the next one completes it each time");
    TAP_INT(left, 0, "and leaves no directory of its own");
}

int main(void)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0); /* most of the time would be syncing */
    tree_temporary(dir, sizeof dir);
    place = sub("place");
    contents = sub("contents");
    sh("true");
    shapes();
    /* The place is made again by make_place. */
    failures();
    traps();
    races();
    closed();
    kills();
    sh("chmod -R u+rwx . ; true");
    tree_remove(dir);
    return tap_done();
}
