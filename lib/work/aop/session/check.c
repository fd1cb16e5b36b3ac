/* Checks of the work on an AOP TASK: see check.h. */
#include "work/aop/session/check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/protocol/aop_policy.h>

#include "base/codes.h"
#include "base/process/quote.h"
#include "message/protocol/compose/json.h"
#include "json/text.h"

#define PATH_TEXT    (64u << 10)
#define OUTPUT_TOTAL ((size_t)150 << 10) /* of all checkpoints of a RESPONSE */
#define OUTPUT_MOST  2000
#define OUTPUT_LEAST 100
#define SHOWN        160 /* bytes of a command or a path in a sentence */

/* ---- output ---- */

/* The text with its middle left out, if it is longer than `most`. */
static int text_clip(struct amp_span text, size_t most, struct amp_buf *out, struct amp_error *err)
{
    size_t part = most > 80 ? (most - 40) / 2 : most / 2;

    while (text.n && strchr(" \t\n", text.p[text.n - 1]))
        text.n--;
    if (text.n <= most)
        return amp_buf_add(out, text.p, text.n, err);
    size_t head = part, tail = text.n - part;
    while (head > 0 && ((unsigned char)text.p[head] & 0xc0) == 0x80)
        head--;
    while (tail < text.n && ((unsigned char)text.p[tail] & 0xc0) == 0x80)
        tail++;
    return amp_buf_add(out, text.p, head, err) < 0 ||
                   amp_buf_fmt(out, err, "\n[%zu bytes]\n", tail - head) < 0
               ? -1
               : amp_buf_add(out, text.p + tail, text.n - tail, err);
}

size_t amp_checks_clip(const json_t *task)
{
    const json_t *phase;
    size_t i, n = 0;

    json_array_foreach (json_object_get(task, "phases"), i, phase)
        n += json_array_size(json_object_get(phase, "checkpoints"));
    size_t most = n ? OUTPUT_TOTAL / n : OUTPUT_MOST;
    return most > OUTPUT_MOST ? OUTPUT_MOST : most < OUTPUT_LEAST ? OUTPUT_LEAST : most;
}

/* ---- paths ---- */

int amp_checks_path(const char *root, const char *path, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf base = {.max = PATH_TEXT}, real = {.max = PATH_TEXT};

    if (amp_aop_resolve(amp_span_str(root), amp_span_str(root), &base, err) < 0 ||
        amp_aop_resolve(amp_span_str(root), amp_span_str(path), &real, err) < 0)
        return -1;
    size_t n = base.len;
    while (n > 0 && base.data[n - 1] == '/')
        n--;
    if (real.len < n || memcmp(real.data, base.data, n) != 0 ||
        (real.len > n && real.data[n] != '/'))
        return amp_fail(err, AMP_NO, E_PERMISSION_DENIED, "%.*s is outside of the workspace",
                        AMP_CLIP(amp_span_str(path), SHOWN));
    while (n < real.len && real.data[n] == '/')
        n++;
    return n == real.len ? amp_buf_str(out, ".", err)
                         : amp_buf_add(out, real.data + n, real.len - n, err);
}

static bool is_memory(const struct amp_error *err)
{
    return err->status == AMP_TEMPFAIL;
}

/* Looks at a path of the workspace. *found: it is there, with *st; else `why` has the reason. */
static int path_look(const struct amp_checks *x, const char *path, bool *found, struct stat *st,
                     struct amp_error *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf rel = {.max = PATH_TEXT};

    *found = false;
    if (amp_checks_path(x->root, path, &rel, why) < 0)
        return is_memory(why) ? amp_fail_memory(err) : 0;
    AMP_CLOSE int fd = amp_open_beneath(x->fd, rel.data, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0, why);
    if (fd < 0) {
        amp_fail(why, AMP_NO, E_FILE_NOT_FOUND, "%.*s %s", AMP_CLIP(amp_span_str(path), SHOWN),
                 errno == ELOOP ? "is reached through a symbolic link" : "does not exist");
        return 0;
    }
    if (fstat(fd, st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", path);
    *found = !S_ISLNK(st->st_mode);
    if (!*found)
        amp_fail(why, AMP_NO, E_FILE_NOT_FOUND, "%.*s is a symbolic link",
                 AMP_CLIP(amp_span_str(path), SHOWN));
    return 0;
}

/* A path of the TASK in a word of a command becomes that of the real place: the word, or what
 * follows the = of an option. *out is NULL if the word stays. */
static int word_move(const struct amp_checks *x, const char *word, char **out,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf rel = {.max = PATH_TEXT}, moved = {.max = PATH_TEXT};
    const char *equals = word[0] == '-' ? strchr(word, '=') : NULL;
    const char *path = equals ? equals + 1 : word;
    bool absolute = path[0] == '/' || (path[0] && path[1] == ':');
    struct amp_error why;

    *out = NULL;
    if (!absolute)
        return 0;
    if (amp_checks_path(x->root, path, &rel, &why) < 0)
        return is_memory(&why) ? amp_fail_memory(err) : 0;
    if (amp_buf_add(&moved, word, (size_t)(path - word), err) < 0 ||
        amp_buf_str(&moved, x->dir, err) < 0 ||
        (strcmp(rel.data, ".") != 0 && amp_buf_fmt(&moved, err, "/%s", rel.data) < 0))
        return -1;
    *out = amp_span_dup(amp_buf_span(&moved));
    return *out ? 0 : amp_fail_memory(err);
}

static int words_move(const struct amp_checks *x, struct amp_shell_split *words,
                      struct amp_error *err)
{
    for (size_t i = 0; i < words->n; i++) {
        char *moved;
        if (word_move(x, words->v[i], &moved, err) < 0)
            return -1;
        if (moved) {
            amp_auto_free(&words->v[i]);
            words->v[i] = moved;
        }
    }
    return 0;
}

/* ---- a validation ---- */

/* A path with backslashes as the complete command: a shell would drop them. */
static bool is_drive_path(struct amp_span line)
{
    for (size_t i = 0; i < line.n; i++)
        if (strchr(" \t\n'\"$`;&|<>()*?[", line.p[i]))
            return false;
    return line.n > 3 && line.p[1] == ':' && line.p[2] == '\\';
}

static int validation_split(const json_t *validation, struct amp_shell_split *words,
                            struct amp_error *err)
{
    const json_t *command = json_object_get(validation, "command");
    struct amp_span line = {json_string_value(command), json_string_length(command)};
    AMP_BUF struct amp_buf quoted = {.max = PATH_TEXT};

    if (strcmp(amp_json_str(validation, "expects"), "FILE_EXISTS") == 0 && is_drive_path(line)) {
        if (amp_shell_quote(line, &quoted, err) < 0)
            return -1;
        line = amp_buf_span(&quoted);
    }
    return amp_shell_split(line, words, err);
}

static int ready_check(const json_t *of, const char *where, const char *name, struct amp_error *err)
{
    const json_t *validation = json_object_get(of, "validation");
    AMP_CLEANUP(amp_shell_split_release) struct amp_shell_split words = {0};
    struct amp_error why;

    if (!validation || validation_split(validation, &words, &why) == 0)
        return 0;
    return is_memory(&why)
               ? amp_fail_memory(err)
               : amp_fail(err, AMP_DATAERR, bad_command, "the validation of %s %.100s has %.300s",
                          where, name, why.what);
}

static int ready_list(const json_t *list, const char *where, struct amp_error *err)
{
    const json_t *of;
    char name[24];
    size_t i;

    json_array_foreach (list, i, of) {
        snprintf(name, sizeof name, "%zu", i + 1);
        if (ready_check(of, where, name, err) < 0)
            return -1;
    }
    return 0;
}

int amp_checks_ready(const json_t *task, struct amp_error *err)
{
    const json_t *phase, *point;
    size_t i, k;

    if (ready_list(json_object_get(json_object_get(task, "task"), "expected_outputs"),
                   "expected output", err) < 0)
        return -1;
    json_array_foreach (json_object_get(task, "phases"), i, phase)
        json_array_foreach (json_object_get(phase, "checkpoints"), k, point)
            if (ready_check(point, "checkpoint", amp_json_str(point, "checkpoint_id"), err) < 0 ||
                ready_list(json_object_get(point, "expected_artifacts"), "artifact", err) < 0)
                return -1;
    return 0;
}

enum expects { EXIT_CODE_0, MATCH_FOUND, NO_MATCH, FILE_EXISTS };
static const char *const expectations[] = {"EXIT_CODE_0", "MATCH_FOUND", "NO_MATCH", "FILE_EXISTS"};

void amp_checked_release(struct amp_checked *c)
{
    amp_buf_release(&c->output);
}

/* Says how the command ended, as the end of a sentence. */
static void end_name(const struct amp_checks *x, const struct amp_walled_check *c, char *out,
                     size_t size)
{
    if (*c->trouble)
        snprintf(out, size, "%s", c->trouble);
    else if (c->end.timed_out)
        snprintf(out, size,
                 "ended after %lld s (aop.validation_sec, or the end of the TASK's time)",
                 (long long)x->limit_ms / 1000);
    else if (c->end.signaled)
        snprintf(out, size, "killed by signal %d", c->end.signal);
    else
        snprintf(out, size, "exit %d", c->end.exit_code);
}

static bool end_passes(enum expects expects, const struct amp_walled_check *c)
{
    if (*c->trouble || c->end.timed_out || !c->end.exited)
        return false;
    bool printed = c->out.bytes > 0;
    switch (expects) {
    case MATCH_FOUND:
        return c->end.exit_code == 0 && printed;
    case NO_MATCH:
        return c->end.exit_code <= 1 && !printed;
    case EXIT_CODE_0:
    case FILE_EXISTS:
        break;
    }
    return c->end.exit_code == 0;
}

static int command_check(const struct amp_checks *x, const struct amp_shell_split *words,
                         enum expects expects, const char *shown, struct amp_checked *out,
                         struct amp_error *err)
{
    static const char *const wants[] = {"exit 0", "exit 0 and output", "no output", "exit 0"};
    AMP_BUF struct amp_buf text = {.max = 6 * AMP_KEPT_BYTES};
    char how[sizeof out->why];
    const char *const *argv;
    memcpy(&argv, &words->v, sizeof argv);
    struct amp_walled_check c = {.argv = argv, .cwd = x->dir, .limit_ms = x->limit_ms};

    int rc = x->run(x->ctx, &c, err);
    if (rc)
        return rc;
    end_name(x, &c, how, sizeof how);
    out->passed = end_passes(expects, &c);
    snprintf(out->why, sizeof out->why, "%s \xe2\x86\x92 %.150s%s%s%s", shown, how,
             expects != EXIT_CODE_0 && c.end.exited && c.out.bytes > 0 ? ", output" : "",
             out->passed ? "" : ", expected ", out->passed ? "" : wants[expects]);
    amp_utf8_clean(out->why);
    amp_buf_init(&out->output, 2 * x->clip + 64);
    return amp_kept_text(&c.out, &text, err) < 0 || amp_kept_text(&c.errs, &text, err) < 0 ||
                   text_clip(amp_buf_span(&text), x->clip, &out->output, err) < 0
               ? -1
               : 0;
}

static int path_check(const struct amp_checks *x, const char *path, struct amp_checked *out,
                      struct amp_error *err)
{
    struct amp_error why = {0};
    struct stat st;

    if (path_look(x, path, &out->passed, &st, &why, err) < 0)
        return -1;
    if (out->passed)
        snprintf(out->why, sizeof out->why, "%.*s exists", AMP_CLIP(amp_span_str(path), SHOWN));
    else
        snprintf(out->why, sizeof out->why, "%s", why.what);
    amp_utf8_clean(out->why);
    return 0;
}

int amp_checks_validate(const struct amp_checks *x, const json_t *validation,
                        struct amp_checked *out, struct amp_error *err)
{
    AMP_CLEANUP(amp_shell_split_release) struct amp_shell_split words = {0};
    AMP_BUF struct amp_buf shown = {.max = PATH_TEXT};
    const char *word = amp_json_str(validation, "expects");
    const struct amp_span line = amp_span_str(amp_json_str(validation, "command"));
    enum expects expects = EXIT_CODE_0;
    struct amp_error why;

    *out = (struct amp_checked){0};
    while (expects < FILE_EXISTS && strcmp(expectations[expects], word) != 0)
        expects++;
    if (validation_split(validation, &words, &why) < 0) {
        snprintf(out->why, sizeof out->why, "not carried out: %.400s", why.what);
        amp_utf8_clean(out->why);
        return is_memory(&why) ? amp_fail_memory(err) : 0;
    }
    if (expects == FILE_EXISTS && words.n == 1)
        return path_check(x, words.v[0], out, err);
    if (amp_kept_clean((struct amp_span){line.p, line.n < SHOWN ? line.n : SHOWN}, &shown, err) <
            0 ||
        amp_buf_add(&shown, "", 1, err) < 0 || words_move(x, &words, err) < 0)
        return -1;
    return command_check(x, &words, expects, shown.data, out, err);
}

/* ---- checkpoints ---- */

struct result {
    unsigned checks, failed;
    struct amp_buf output;
    json_t *evidence;
    char *why; /* the first failure */
};

static void result_release(struct result *r)
{
    amp_buf_release(&r->output);
    json_decref(r->evidence);
}

static int evidence_add(struct result *r, bool passed, const char *text, struct amp_error *err)
{
    r->checks++;
    if (!passed && r->failed++ == 0)
        snprintf(r->why, AMP_CHECKS_WHY, "%s", text);
    json_t *t = json_string(text);
    return json_array_append_new(r->evidence, t) < 0 ? amp_fail_memory(err) : 0;
}

static int validation_add(const struct amp_checks *x, const json_t *of, struct result *r,
                          struct amp_error *err)
{
    AMP_CLEANUP(amp_checked_release) struct amp_checked c = {0};
    const json_t *validation = json_object_get(of, "validation");

    if (!validation)
        return 0;
    int rc = amp_checks_validate(x, validation, &c, err);
    if (rc)
        return rc;
    if (r->output.len && c.output.len && amp_buf_str(&r->output, "\n", err) < 0)
        return -1;
    return amp_buf_add(&r->output, c.output.data, c.output.len, err) < 0
               ? -1
               : evidence_add(r, c.passed, c.why, err);
}

static int artifact_add(const struct amp_checks *x, const json_t *artifact, struct result *r,
                        struct amp_error *err)
{
    const char *path = amp_json_str(artifact, "path"), *type = amp_json_str(artifact, "type");
    char text[440];
    struct amp_error why = {0};
    struct stat st;
    bool found;

    if (!*path)
        return validation_add(x, artifact, r, err);
    if (path_look(x, path, &found, &st, &why, err) < 0)
        return -1;
    bool fits = found && (strcmp(type, "FILE") != 0 || S_ISREG(st.st_mode));
    if (fits && S_ISREG(st.st_mode))
        snprintf(text, sizeof text, "%.*s: %lld bytes", AMP_CLIP(amp_span_str(path), SHOWN),
                 (long long)st.st_size);
    else if (found)
        snprintf(text, sizeof text, "%.*s %s", AMP_CLIP(amp_span_str(path), SHOWN),
                 fits ? "exists" : "is not a file");
    else
        snprintf(text, sizeof text, "%s", why.what);
    amp_utf8_clean(text);
    return evidence_add(r, fits, text, err) < 0 ? -1 : validation_add(x, artifact, r, err);
}

static bool is_status(const char *status)
{
    return strcmp(status, "PASS") == 0 || strcmp(status, "FAIL") == 0 ||
           strcmp(status, "SKIP") == 0;
}

static int result_make(const json_t *point, const json_t *claim, const struct result *r,
                       json_t **out, struct amp_error *err)
{
    const char *said = amp_json_str(claim, "status"), *status = "SKIP";

    if (r->checks)
        status = r->failed ? "FAIL" : "PASS";
    else if (is_status(said))
        status = said;
    if (r->checks && is_status(said) && strcmp(said, status) != 0) {
        json_t *differs = json_sprintf("the agent reported %s", said);
        if (json_array_append_new(r->evidence, differs) < 0)
            return amp_fail_memory(err);
    }
    json_auto_t *made =
        json_pack("{s:s, s:s, s:O}", "checkpoint_id", amp_json_str(point, "checkpoint_id"),
                  "status", status, "evidence", r->evidence);
    if (!made)
        return amp_fail_memory(err);
    if (r->output.len &&
        json_object_set_new(made, "validation_output", json_string(r->output.data)) < 0)
        return amp_fail_memory(err);
    amp_json_put(made, "notes", amp_json_str(claim, "notes"));
    *out = json_incref(made);
    return 0;
}

int amp_checks_checkpoint(const struct amp_checks *x, const json_t *checkpoint, const json_t *claim,
                          json_t **result, char why[AMP_CHECKS_WHY], struct amp_error *err)
{
    AMP_CLEANUP(result_release) struct result r = {.evidence = json_array(), .why = why};
    const json_t *artifact;
    size_t i;
    int rc = r.evidence ? 0 : amp_fail_memory(err);

    /* As many validations as a TASK of 200 KB has room for. */
    amp_buf_init(&r.output, (size_t)32 << 20);
    *result = NULL;
    why[0] = '\0';
    json_array_foreach (json_object_get(checkpoint, "expected_artifacts"), i, artifact)
        if (rc == 0)
            rc = artifact_add(x, artifact, &r, err);
    if (rc == 0)
        rc = validation_add(x, checkpoint, &r, err);
    if (rc)
        return rc;
    if (r.output.len > x->clip) {
        AMP_BUF struct amp_buf all = r.output;
        amp_buf_init(&r.output, 2 * x->clip + 64);
        if (text_clip(amp_buf_span(&all), x->clip, &r.output, err) < 0)
            return -1;
    }
    return result_make(checkpoint, claim, &r, result, err);
}

int amp_checks_outputs(const struct amp_checks *x, const json_t *task, json_t *errors,
                       struct amp_checks_tally *out, struct amp_error *err)
{
    const json_t *list = json_object_get(json_object_get(task, "task"), "expected_outputs");
    const json_t *output;
    size_t i;

    *out = (struct amp_checks_tally){0};
    json_array_foreach (list, i, output) {
        AMP_CLEANUP(amp_checked_release) struct amp_checked c = {0};
        const json_t *validation = json_object_get(output, "validation");
        if (!validation)
            continue;
        int rc = amp_checks_validate(x, validation, &c, err);
        if (rc)
            return rc;
        if (c.passed) {
            out->passed++;
            continue;
        }
        out->failed++;
        if (json_array_append_new(errors, json_string(c.why)) < 0)
            return amp_fail_memory(err);
    }
    return 0;
}
