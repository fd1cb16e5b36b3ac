/* Carries out the plan, and undoes it. Everything is noted first, so that an undo after a failure
 * finds it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "init.h"

#define NOTE_MAX ((size_t)1 << 20)

static void note_path(const struct init *in, char out[PATH_MAX + 16])
{
    snprintf(out, PATH_MAX + 16, "%s/" INIT_NOTE, in->state);
}

static int note_read(const struct init *in, json_t **out, struct amp_error *err)
{
    char path[PATH_MAX + 16];
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, NOTE_MAX + 1);
    note_path(in, path);
    *out = NULL;
    if (access(path, F_OK) == 0) {
        if (amp_file_read(AT_FDCWD, path, NOTE_MAX, &text, err) < 0)
            return -1;
        *out = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
        if (!json_is_object(*out) || !json_is_object(json_object_get(*out, "files"))) {
            json_decref(*out);
            *out = NULL;
            return amp_fail(err, AMP_DATAERR, bad_value, "%s was changed by hand", path);
        }
        return 0;
    }
    *out = json_pack("{s:{}}", "files");
    return *out ? 0 : amp_fail_memory(err);
}

static int note_write(const struct init *in, const json_t *note, struct amp_error *err)
{
    char path[PATH_MAX + 16];
    note_path(in, path);
    AMP_FREE char *text = json_dumps(note, JSON_INDENT(2) | JSON_SORT_KEYS);
    return text ? amp_file_write_atomic(AT_FDCWD, path, 0600, amp_span_str(text), err)
                : amp_fail_memory(err);
}

static int step_note(json_t *note, const struct init_step *s, struct amp_error *err)
{
    char sum[AMP_SHA256_MAX];
    struct amp_span text = amp_buf_span(&s->text);
    if (s->kind == INIT_HOOKS)
        return json_object_set_new(note, "hooks", json_string(s->path)) < 0
                   ? amp_fail(err, AMP_DATAERR, bad_value, "%.300s: the path is not UTF-8", s->path)
                   : 0;
    if (s->kind == INIT_STATE)
        return 0;
    if (s->kind == INIT_SECTION)
        text = init_section_find(text);
    amp_sha256_hex(text, sum);
    json_t *row =
        json_pack("{s:s, s:s, s:b, s:i}", "kind", s->kind == INIT_FILE ? "file" : "section",
                  "sha256", sum, "created", s->action == INIT_CREATE, "feeds", (int)s->feeds);
    if (json_object_set_new(json_object_get(note, "files"), s->path, row) < 0)
        return amp_fail(err, AMP_DATAERR, bad_value, "%.300s: the path is not UTF-8", s->path);
    return 0;
}

static void did_ignore(void *ctx, const char *did, const char *path, const char *text)
{
    (void)ctx, (void)did, (void)path, (void)text;
}

static int hooks_install(const struct init *in, struct amp_error *err)
{
    struct amp_rule rule;
    char program[PATH_MAX];
    amp_rule_default(&rule);
    /* The branch of the repository's files is the one that people keep clean. */
    bool usual = strcmp(in->info.branch, "main") == 0 || strcmp(in->info.branch, "master") == 0;
    if (!usual && !in->info.linked && in->info.branch[0]) {
        rule.patterns[0] = in->info.branch;
        rule.patterns[1] = NULL;
    }
    return amp_helper_path(AMP_HOOK_PROGRAM, program, sizeof program, err) < 0
               ? -1
               : amp_hooks_install(&in->hooks, &rule, program, did_ignore, NULL, err);
}

/* A file that appeared since the plan is not replaced. */
static int file_create(const struct init_step *s, struct amp_error *err)
{
    AMP_CLOSE int fd = open(s->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, s->mode);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", s->path);
    if (amp_write_all(fd, amp_buf_span(&s->text), err) == 0 &&
        (fsync(fd) == 0 || amp_fail_errno(err, AMP_IOERR, "%s", s->path) == 0))
        return 0;
    unlink(s->path);
    return -1;
}

static int step_make(const struct init *in, const struct init_step *s, struct amp_error *err)
{
    if (s->action == INIT_INSTALL)
        return hooks_install(in, err);
    if (s->action == INIT_ADD)
        return amp_file_write_atomic(AT_FDCWD, s->path, s->mode, amp_buf_span(&s->text), err);
    return s->action == INIT_CREATE && s->kind != INIT_STATE ? file_create(s, err) : 0;
}

int init_make(struct init *in, struct amp_error *err)
{
    json_auto_t *note = NULL;
    bool any = false;
    for (size_t i = 0; i < in->n; i++)
        any |= in->steps[i].action != INIT_KEEP;
    if (!any)
        return 0;
    if (amp_mkdirs(in->state, 0700, err) < 0 || note_read(in, &note, err) < 0)
        return -1;
    for (size_t i = 0; i < in->n; i++)
        if (in->steps[i].action != INIT_KEEP && step_note(note, &in->steps[i], err) < 0)
            return -1;
    if (note_write(in, note, err) < 0)
        return -1;
    for (size_t i = 0; i < in->n; i++)
        if (step_make(in, &in->steps[i], err) < 0)
            return -1;
    return 0;
}

/* ---- removing what was made, unless it was changed since ---- */

#define FILE_MAX ((size_t)4 << 20)

static const char *text_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text ? text : "";
}

static bool sum_is(struct amp_span text, const char *sum)
{
    char now[AMP_SHA256_MAX];
    amp_sha256_hex(text, now);
    return strcmp(now, sum) == 0;
}

static int file_plan(struct init *in, const char *path, const json_t *row, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct stat st;
    amp_buf_init(&text, FILE_MAX);
    if (lstat(path, &st) != 0)
        return 0; /* removed by hand */
    bool section = strcmp(text_of(row, "kind"), "section") == 0;
    enum init_kind kind = section ? INIT_SECTION : INIT_FILE;
    if (!S_ISREG(st.st_mode) || amp_file_read(AT_FDCWD, path, FILE_MAX - 1, &text, NULL) < 0) {
        init_step_add(in, INIT_KEEP, kind, path, "it was changed since");
        return 0;
    }
    struct amp_span all = amp_buf_span(&text), own = section ? init_section_find(all) : all;
    if (!sum_is(own, text_of(row, "sha256"))) {
        init_step_add(in, INIT_KEEP, kind, path,
                      own.n || !section ? "it was changed since" : "the section is gone");
        return 0;
    }
    if (own.n == all.n && (!section || json_is_true(json_object_get(row, "created")))) {
        init_step_add(in, INIT_REMOVE, kind, path, "");
        return 0;
    }
    struct init_step *s = init_step_add(in, INIT_RESTORE, kind, path, "without the section");
    s->mode = st.st_mode & 07777;
    size_t before = (size_t)(own.p - all.p);
    size_t after = all.n - before - own.n;
    json_int_t feeds = json_integer_value(json_object_get(row, "feeds"));
    /* The line end that was missing stays if there is text behind it now. */
    for (feeds -= feeds > 1 && after; feeds > 0 && before > 1 && all.p[before - 1] == '\n'; feeds--)
        before--;
    return amp_buf_add(&s->text, all.p, before, err) < 0 ||
                   amp_buf_add(&s->text, own.p + own.n, after, err) < 0
               ? -1
               : 0;
}

/* Whether the state has nothing but what init and the hooks put there. */
static bool state_is_unused(const struct init *in)
{
    static const char *const known[] = {
        ".", "..", INIT_NOTE, "amp.json", AMP_RULE_FILE, "no-push.gitconfig", NULL};
    AMP_DIR DIR *d = opendir(in->state);
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t i = 0;
        while (known[i] && strcmp(known[i], e->d_name) != 0)
            i++;
        if (!known[i])
            return false;
    }
    return d != NULL;
}

int init_undo_plan(struct init *in, struct amp_error *err)
{
    json_auto_t *note = NULL;
    const char *path;
    json_t *row;
    char noted[PATH_MAX + 16];
    snprintf(noted, sizeof noted, "%s/" INIT_NOTE, in->state);
    if (access(noted, F_OK) != 0)
        return amp_fail(err, AMP_NO, nothing_to_undo, "init made nothing in this repository");
    if (note_read(in, &note, err) < 0)
        return -1;
    const char *hooks = text_of(note, "hooks");
    if (*hooks) {
        if (amp_hooks_find(in->git, ".", hooks, &in->hooks, err) < 0)
            return -1;
        init_step_add(in, INIT_RESTORE, INIT_HOOKS, hooks, "without the guard");
    }
    json_object_foreach (json_object_get(note, "files"), path, row) {
        if (in->n >= INIT_STEPS - 1)
            return amp_fail(err, AMP_DATAERR, bad_value, "%s has too many files", noted);
        if (file_plan(in, path, row, err) < 0)
            return -1;
    }
    if (state_is_unused(in))
        init_step_add(in, INIT_REMOVE, INIT_STATE, in->state, "");
    else
        init_step_add(in, INIT_KEEP, INIT_STATE, in->state, "it has tasks and messages");
    return 0;
}

static int step_undo(const struct init *in, const struct init_step *s, struct amp_error *err)
{
    if (s->action == INIT_KEEP || s->kind == INIT_STATE)
        return 0;
    if (s->kind == INIT_HOOKS)
        return amp_hooks_uninstall(&in->hooks, did_ignore, NULL, err);
    if (s->action == INIT_RESTORE)
        return amp_file_write_atomic(AT_FDCWD, s->path, s->mode, amp_buf_span(&s->text), err);
    return unlink(s->path) == 0 || errno == ENOENT ? 0
                                                   : amp_fail_errno(err, AMP_IOERR, "%s", s->path);
}

int init_undo(struct init *in, struct amp_error *err)
{
    char noted[PATH_MAX + 16];
    snprintf(noted, sizeof noted, "%s/" INIT_NOTE, in->state);
    for (size_t i = 0; i < in->n; i++)
        if (step_undo(in, &in->steps[i], err) < 0)
            return -1;
    if (unlink(noted) != 0 && errno != ENOENT)
        return amp_fail_errno(err, AMP_IOERR, "%s", noted);
    /* Not empty: a file that was kept, or something new. */
    if (in->n && in->steps[in->n - 1].action == INIT_REMOVE && rmdir(in->state) != 0 &&
        errno != ENOTEMPTY && errno != ENOENT && errno != EEXIST)
        return amp_fail_errno(err, AMP_IOERR, "%s", in->state);
    return 0;
}
