/* Records messages that an agent wrote in the name of another role. */
#include "work/attempt/left/forgeries.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "message/delivery/ledger/ledger.h"

#define OUTPUT_MAX  ((size_t)4 << 20) /* bytes of a captured stream that are read */
#define FILE_BYTES  ((size_t)1 << 20) /* of a file of the change */
#define FILES_BYTES ((size_t)8 << 20) /* of all files of the change */
#define FILES_MAX   500
#define REFS_BYTES  ((size_t)1 << 20)
#define LEDGER_MAX  ((size_t)256 << 20)

struct forgery {
    const char *code, *rule;
    enum amp_severity severity;
    const char *file;          /* where it is */
    const struct amp_view *of; /* the message, or NULL */
    const char *what;
};

/* FNV-1a. */
static uint64_t text_hash(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

static bool is_repeated(struct amp_forgeries *c, const char *file, const char *what)
{
    uint64_t h = text_hash(text_hash(14695981039346656037u, what), file);
    for (uint32_t i = 0; i < c->n; i++)
        if (c->seen[i] == h)
            return true;
    if (c->n == AMP_FORGERIES_MAX)
        return true;
    c->seen[c->n++] = h;
    return false;
}

static int forgery_record(struct amp_worker *w, struct amp_assignment *k, const struct forgery *c,
                          struct amp_error *err)
{
    AMP_BUF struct amp_buf record = {0};
    char text[900];
    const struct amp_line_place at = {
        .tool = w->opt->tool, .line = 1, .now_ms = amp_now_ms(), .file = c->file};

    snprintf(text, sizeof text, "%.200s: the agent %.100s, attempt %lld: %.500s", k->task,
             w->opt->agent, (long long)k->attempt, c->what);
    if (is_repeated(&k->forgeries, c->file, text))
        return 0;
    const struct amp_finding f = {
        .severity = c->severity,
        .protocol = c->of ? c->of->protocol : AMP_PROTO_NONE,
        .type = c->of ? c->of->type : AMP_SPAN(""),
        .id = c->of ? c->of->id : k->v->id,
        .from = c->of ? c->of->from : AMP_SPAN(""),
        .key = c->of ? c->of->sig.key : AMP_SPAN(""),
        .code = c->code,
        .field = "",
        .pointer = "",
        .rule = c->rule,
        .message = text,
        .found = "",
        .expected = "",
    };
    w->opt->note("%s: %s", c->code, text);
    amp_buf_init(&record, 1 << 16);
    return amp_finding_record(&f, &at, &record, err) < 0 ||
                   amp_store_error_log(w->store, amp_buf_span(&record), err) < 0
               ? -1
               : 0;
}

/* Views a text as a message. 1: it is one of a protocol; 0: it is not. */
static int message_view(struct amp_worker *w, struct amp_span text, struct amp_view *v,
                        struct amp_error *err)
{
    static const struct amp_check_options heads = {.heads = true};
    int rc = amp_reader_line(w->own_reader, text, &heads, v, NULL, NULL, err);
    return rc < 0 ? -1 : v->protocol != AMP_PROTO_NONE && v->json;
}

static void message_describe(const struct amp_view *v, char *out, size_t size)
{
    snprintf(out, size, "a %.*s from \"%.*s\"", (int)(v->type.n < 60 ? v->type.n : 60),
             v->type.n ? v->type.p : "", (int)(v->from.n < 60 ? v->from.n : 60),
             v->from.n ? v->from.p : "");
}

/* ---- the control FIFO ---- */

int amp_forgeries_control(struct amp_worker *w, struct amp_assignment *k, struct amp_span line,
                          char *why, struct amp_error *err)
{
    struct amp_view v;
    char of[180];
    int rc = message_view(w, line, &v, err);
    if (rc <= 0)
        return rc;
    message_describe(&v, of, sizeof of);
    snprintf(why, AMP_FORGERY_WHY, "the control FIFO takes no messages: %s", of);
    const struct forgery c = {.code = AMP_CODE(bad_sender),
                              .rule = "control",
                              .severity = AMP_SEV_ERROR,
                              .file = k->files.control,
                              .of = &v,
                              .what = why};
    return forgery_record(w, k, &c, err) < 0 ? -1 : 1;
}

int amp_forgeries_refused(struct amp_worker *w, struct amp_assignment *k, const char *detail,
                          struct amp_error *err)
{
    const struct forgery c = {.code = AMP_CODE(permission_denied),
                              .rule = "people_only",
                              .severity = AMP_SEV_ERROR,
                              .file = k->files.control,
                              .what = detail};
    return forgery_record(w, k, &c, err);
}

/* ---- what is left after the attempt ---- */

/* 1: the state directory knows a message with this id; the agent may have copied it. */
static int message_is_known(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    struct amp_message_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    if (v->id.n == 0)
        return 0;
    amp_buf_init(&mem, LEDGER_MAX);
    return amp_message_find(w->store, v->id, &mem, &rec, err) < 0 ? -1 : rec.found;
}

/* Records the lines of a text that are messages about the agent's own task. */
static int lines_look(struct amp_worker *w, struct amp_assignment *k, struct amp_span text,
                      const char *file, struct amp_error *err)
{
    size_t n_task = strlen(k->task);
    char of[180], what[400];

    for (const char *p = text.p, *end = text.p + text.n, *hit;
         p < end && (hit = memmem(p, (size_t)(end - p), k->task, n_task));) {
        const char *from = hit, *to = memchr(hit, '\n', (size_t)(end - hit));
        struct amp_view v;
        while (from > p && from[-1] != '\n')
            from--;
        to = to ? to : end;
        p = to;
        int rc = message_view(w, (struct amp_span){from, (size_t)(to - from)}, &v, err);
        if (rc > 0 && !amp_span_is(v.task, k->task))
            rc = 0;
        int known = rc > 0 ? message_is_known(w, &v, err) : 0;
        if (rc < 0 || known < 0)
            return -1;
        if (rc == 0 || known)
            continue;
        message_describe(&v, of, sizeof of);
        snprintf(what, sizeof what, "%s that it did not send; nothing reads it as a message", of);
        const struct forgery c = {.code = AMP_CODE(unproven_claim),
                                  .rule = "claim",
                                  .severity = AMP_SEV_WARNING,
                                  .file = file,
                                  .of = &v,
                                  .what = what};
        if (forgery_record(w, k, &c, err) < 0)
            return -1;
    }
    return 0;
}

/* A missing, special or too large file is left out. */
static int file_look(struct amp_worker *w, struct amp_assignment *k, const char *path,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, OUTPUT_MAX + 1);
    if (amp_file_read(AT_FDCWD, path, OUTPUT_MAX, &text, NULL) < 0)
        return 0;
    return lines_look(w, k, amp_buf_span(&text), path, err);
}

/* The answer speaks for the agent: it has no sender, and is no message. */
static int answer_look(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    json_auto_t *j = NULL;
    struct amp_view v = {0};
    struct amp_error no;
    char of[180];

    if (amp_answer_read(&k->files, NULL, &j, &no) < 0 || !j)
        return 0;
    amp_buf_init(&text, AMP_ANSWER_MAX + 1);
    if (amp_file_read(AT_FDCWD, k->files.result, AMP_ANSWER_MAX, &text, NULL) < 0)
        return 0;
    int is = message_view(w, amp_buf_span(&text), &v, err);
    if (is < 0)
        return -1;
    const char *from = json_string_value(json_object_get(j, "from"));
    if (is && k->responds && v.kind == AMP_KIND_RESULT)
        return 0; /* the role compares it with its work */
    if (is) {
        message_describe(&v, of, sizeof of);
    } else if (from) {
        snprintf(of, sizeof of, "an answer from \"%.100s\"", from);
    } else {
        return 0;
    }
    snprintf(k->forgeries.answer, sizeof k->forgeries.answer,
             "the answer claims to be %s; an agent answers for itself", of);
    const struct forgery c = {.code = AMP_CODE(bad_sender),
                              .rule = "answer",
                              .severity = AMP_SEV_ERROR,
                              .file = k->files.result,
                              .of = is ? &v : NULL,
                              .what = k->forgeries.answer};
    return forgery_record(w, k, &c, err);
}

static int ref_claim(struct amp_worker *w, struct amp_assignment *k, const char *ref,
                     struct amp_error *err)
{
    char what[300];
    snprintf(what, sizeof what, "the ref %.200s in its own git directory is not taken over", ref);
    const struct forgery c = {.code = AMP_CODE(unproven_claim),
                              .rule = "claim",
                              .severity = AMP_SEV_WARNING,
                              .file = k->files.git,
                              .what = what};
    return forgery_record(w, k, &c, err);
}

/* Whether the git directory has the ref, loose or packed. A link counts as the ref. */
static bool has_ref(int dir, struct amp_span packed, const char *ref)
{
    char line[300];
    int n = snprintf(line, sizeof line, " %s\n", ref);
    if (faccessat(dir, ref, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    return packed.n > 0 && n > 0 && (size_t)n < sizeof line &&
           memmem(packed.p, packed.n, line, (size_t)n);
}

/* The refs that somebody might mistake for the repository's. */
static int refs_look(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    static const char *const always[] = {"main", "master", NULL};
    const char *const *const lists[] = {always, w->opt->protected_};
    AMP_BUF struct amp_buf packed = {0};
    char ref[300];
    AMP_CLOSE int dir = open(k->files.git, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (!k->walls.quarantined || dir < 0)
        return 0;
    amp_buf_init(&packed, REFS_BYTES + 1);
    if (amp_file_read(dir, "packed-refs", REFS_BYTES, &packed, NULL) < 0)
        amp_buf_reset(&packed);
    if (has_ref(dir, amp_buf_span(&packed), AMP_PROOF_NOTES) &&
        ref_claim(w, k, AMP_PROOF_NOTES, err) < 0)
        return -1;
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        for (size_t i = 0; lists[l] && lists[l][i]; i++) {
            if (strpbrk(lists[l][i], "*?[") || strstr(lists[l][i], ".."))
                continue;
            snprintf(ref, sizeof ref, "refs/heads/%.250s", lists[l][i]);
            if (has_ref(dir, amp_buf_span(&packed), ref) && ref_claim(w, k, ref, err) < 0)
                return -1;
        }
    }
    return 0;
}

int amp_forgeries_left(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    return answer_look(w, k, err) < 0 || file_look(w, k, k->files.out, err) < 0 ||
                   file_look(w, k, k->files.err, err) < 0 ||
                   file_look(w, k, k->files.work_log, err) < 0 || refs_look(w, k, err) < 0
               ? -1
               : 0;
}

/* ---- the change ---- */

struct commits {
    struct amp_worker *w;
    struct amp_assignment *k;
    int rc;
    struct amp_error *err;
};

static void on_claim(void *ctx, const char *commit, const char *claim)
{
    struct commits *c = ctx;
    char what[400];
    snprintf(what, sizeof what,
             "the commit %.12s claims \"%.200s\"; only signed messages prove an approval", commit,
             claim);
    const struct forgery of = {.code = AMP_CODE(unproven_claim),
                               .rule = "claim",
                               .severity = AMP_SEV_WARNING,
                               .file = commit,
                               .what = what};
    if (c->rc == 0)
        c->rc = forgery_record(c->w, c->k, &of, c->err);
}

static int commits_look(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    char email[256];
    struct commits c = {w, k, 0, err};
    amp_agent_email(w->opt->agent, email, sizeof email);
    const struct amp_git_forgeries_spec spec = {.repo = k->repo,
                                                .from = k->start,
                                                .to = k->commit,
                                                .name = w->opt->agent,
                                                .email = email,
                                                .task = k->task};
    return amp_git_forgeries(w->git, &spec, on_claim, &c, err) < 0 ? -1 : c.rc;
}

int amp_forgeries_change(struct amp_worker *w, struct amp_assignment *k, char *const *files,
                         uint32_t n_files, struct amp_error *err)
{
    size_t left = FILES_BYTES;
    AMP_BUF struct amp_buf text = {0};
    AMP_CLOSE int tree = open(k->worktree, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (!*k->start || !*k->commit || strcmp(k->start, k->commit) == 0)
        return 0;
    amp_buf_init(&text, FILE_BYTES + 1);
    for (uint32_t i = 0; tree >= 0 && i < n_files && i < FILES_MAX && left > 0; i++) {
        struct stat st;
        char self[32];
        AMP_CLOSE int fd =
            amp_open_beneath(tree, files[i], O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0, NULL);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t)FILE_BYTES)
            continue;
        snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
        amp_buf_reset(&text);
        if (amp_file_read(AT_FDCWD, self, FILE_BYTES, &text, NULL) < 0)
            continue;
        left -= text.len < left ? text.len : left;
        if (lines_look(w, k, amp_buf_span(&text), files[i], err) < 0)
            return -1;
    }
    return commits_look(w, k, err);
}

int amp_forgeries_untaken(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    const struct amp_error *no = &k->taking.error;
    const struct forgery c = {.code = no->code,
                              .rule = "quarantine",
                              .severity = AMP_SEV_ERROR,
                              .file = k->files.git,
                              .what = no->what};
    return forgery_record(w, k, &c, err);
}

int amp_forgeries_moved(struct amp_worker *w, struct amp_assignment *k, const char *what,
                        struct amp_error *err)
{
    const struct forgery c = {.code = AMP_CODE(unproven_claim),
                              .rule = "claim",
                              .severity = AMP_SEV_WARNING,
                              .file = k->repo,
                              .what = what};
    return forgery_record(w, k, &c, err);
}
