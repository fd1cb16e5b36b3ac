/* Carrying out the plan. Everything is noted first, so that an undo after a failure finds it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/file.h>

#include "init.h"

#define NOTE_MAX ((size_t)1 << 20)

static void note_path(const struct init *in, char out[PATH_MAX + 16])
{
    snprintf(out, PATH_MAX + 16, "%s/" INIT_NOTE, in->state);
}

int init_note_read(const struct init *in, json_t **out, struct amp_error *err)
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
            return amp_fail(err, AMP_DATAERR, "bad_value", "%s was changed by hand", path);
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
                   ? amp_fail(err, AMP_DATAERR, "bad_value", "%.300s: the path is not UTF-8",
                              s->path)
                   : 0;
    if (s->kind == INIT_STATE)
        return 0;
    if (s->kind == INIT_SECTION)
        text = init_section_find(text);
    amp_sha256_hex(text, sum);
    json_t *row = json_pack("{s:s, s:s, s:b}", "kind", s->kind == INIT_FILE ? "file" : "section",
                            "sha256", sum, "created", s->action == INIT_CREATE);
    if (json_object_set_new(json_object_get(note, "files"), s->path, row) < 0)
        return amp_fail(err, AMP_DATAERR, "bad_value", "%.300s: the path is not UTF-8", s->path);
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
    if (amp_mkdirs(in->state, 0700, err) < 0 || init_note_read(in, &note, err) < 0)
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
