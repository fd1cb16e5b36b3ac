/* The evidence of a question as text. */
#include "people/answer/text/evidence_facts.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/pipe.h>

#include "base/codes.h"
#include "people/question/question.h"

enum {
    REASONS_MAX = 4,        /* of an event */
    FILES_MAX = 50,         /* of the list */
    DIFF_LINES = 200,       /* of the diff */
    DIFF_BYTES = 12 << 10,  /* of the diff */
    PART_MAX = 24 << 10,    /* of a part, marks included */
    ALL_MAX = 4 * PART_MAX, /* of all of them */
    DIFF_READ = 2 * DIFF_BYTES,
};

/* A part that is full ends there. */
static int part_full(struct amp_buf *out, const struct amp_error *err)
{
    static const char cut[] = "  [cut]\n";
    if (!amp_code_is(err->code, buffer_full))
        return -1;
    out->max += sizeof cut;
    return amp_buf_str(out, cut, NULL) < 0 ? -1 : 1;
}

/* ---- what happened ---- */

static int row_add(const struct amp_evidence_row *row, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};

    amp_buf_init(&line, PART_MAX);
    return amp_evidence_row_text(row, &line, err) < 0 ? -1
                                                      : amp_fact_mark("| ", line.data, out, err);
}

static int history_make(const struct amp_evidence *ev, struct amp_buf *out, struct amp_error *err)
{
    size_t first = amp_evidence_recent(ev), reasons = 0;

    if (first && amp_buf_fmt(out, err, "  %zu earlier lines are not shown\n", first) < 0)
        return -1;
    for (size_t i = first; i < ev->n_rows; i++) {
        reasons = ev->rows[i].depth ? reasons + 1 : 0;
        if (reasons <= REASONS_MAX && row_add(&ev->rows[i], out, err) < 0)
            return -1;
        if (reasons == REASONS_MAX + 1 && amp_buf_str(out, "  and more reasons\n", err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the diff ---- */

static int files_make(const struct amp_git_diff *diff, struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_fmt(out, err, "  %u file%s, +%lld -%lld\n", diff->n_files,
                    diff->n_files == 1 ? "" : "s", (long long)diff->lines_added,
                    (long long)diff->lines_removed) < 0)
        return -1;
    for (uint32_t i = 0; diff->files[i] && i < FILES_MAX; i++)
        if (amp_fact_mark("| ", diff->files[i], out, err) < 0)
            return -1;
    return diff->n_files > FILES_MAX
               ? amp_buf_fmt(out, err, "  and %u more\n", diff->n_files - FILES_MAX)
               : 0;
}

static int patch_make(struct amp_span patch, bool more, struct amp_buf *out, struct amp_error *err)
{
    char *at = (char *)(uintptr_t)patch.p, *end = at + patch.n;
    int lines = 0;

    for (; at < end && lines < DIFF_LINES && at - patch.p < DIFF_BYTES; lines++) {
        char *nl = memchr(at, '\n', (size_t)(end - at));
        if (!nl && more)
            break; /* a part of a line */
        if (nl)
            *nl = '\0';
        for (char *c = at; c < (nl ? nl : end); c++)
            *c = *c == '\t' || *c == '\0' ? ' ' : *c;
        if (amp_fact_mark("| ", at, out, err) < 0)
            return -1;
        at = nl ? nl + 1 : end;
    }
    return at < end || more ? amp_buf_str(out, "  [cut]\n", err) : 0;
}

static int patch_read(const char *path, struct amp_buf *out, bool *more, struct amp_error *err)
{
    const size_t most = out->max - 2;
    AMP_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot read %s", path);
    enum amp_read rc = AMP_READ_BYTES;
    while (rc == AMP_READ_BYTES && out->len < most)
        rc = amp_read_more(fd, out, most - out->len, path, err);
    *more = out->len >= most;
    return rc == AMP_READ_FAILED ? -1 : amp_buf_str(out, "", err);
}

int amp_evidence_diff(struct amp_decider *d, const struct amp_evidence *ev,
                      struct amp_git_diff *diff, struct amp_buf *patch, bool *more,
                      struct amp_error *err)
{
    char dir[] = "/tmp/hitl-prompt.XXXXXX", path[64];
    struct amp_git *git;

    if (!mkdtemp(dir))
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make a directory in /tmp");
    snprintf(path, sizeof path, "%s/diff", dir);
    int rc =
        amp_decider_git(d, &git, err) < 0 ||
                amp_git_diff(git, ev->repo, NULL, 0, ev->base, ev->commit, path, diff, err) < 0 ||
                patch_read(path, patch, more, err) < 0
            ? -1
            : 0;
    unlink(path);
    rmdir(dir);
    return rc;
}

static int diff_make(struct amp_decider *d, const struct amp_evidence *ev,
                     struct amp_evidence_texts *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf patch = {0};
    struct amp_git_diff diff = {0};
    struct amp_error why;
    bool more = false;

    if (ev->why_no_diff)
        return ev->has_task ? amp_buf_fmt(&t->files, err, "  none: %s\n", ev->why_no_diff) : 0;
    amp_buf_init(&patch, DIFF_READ + 2);
    int rc = amp_evidence_diff(d, ev, &diff, &patch, &more, &why) < 0
                 ? amp_buf_str(&t->files, "  none: the repository cannot be read\n", err)
                 : files_make(&diff, &t->files, err);
    if (rc < 0 && part_full(&t->files, err) > 0)
        rc = 0;
    if (rc == 0 && diff.files && patch.len)
        rc = patch_make(amp_buf_span(&patch), more, &t->diff, err);
    if (rc < 0 && diff.files && part_full(&t->diff, err) > 0)
        rc = 0;
    amp_git_diff_release(&diff);
    return rc;
}

/* ---- the answers ---- */

static int effects_make(const struct amp_question *q, struct amp_buf *out, struct amp_error *err)
{
    for (const struct amp_action *a = amp_question_actions(q); a->name; a++)
        if (a->effect && amp_buf_fmt(out, err, "  %s: %s\n", a->name, a->effect) < 0)
            return -1;
    return amp_buf_str(out, "  defer TIME: ask again then\n", err);
}

static int all_make(struct amp_evidence_texts *t, struct amp_error *err)
{
    const struct {
        const char *title;
        const struct amp_buf *text;
    } parts[] = {{"what happened so far", &t->history},
                 {"the changed files", &t->files},
                 {"what each answer does", &t->effects},
                 {"the changes", &t->diff}};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].text->len &&
            (amp_buf_fmt(&t->all, err, "%s:\n", parts[i].title) < 0 ||
             amp_buf_add(&t->all, parts[i].text->data, parts[i].text->len, err) < 0))
            return -1;
    return 0;
}

int amp_evidence_texts(struct amp_decider *d, const struct amp_question *q,
                       struct amp_evidence_texts *t, struct amp_error *err)
{
    AMP_EVIDENCE ev = {0};
    struct amp_buf *const parts[] = {&t->history, &t->files, &t->diff, &t->effects};

    if (t->known)
        return 0;
    amp_evidence_texts_release(t);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        amp_buf_init(parts[i], PART_MAX);
    amp_buf_init(&t->all, ALL_MAX + 4096);
    if (amp_evidence_load(d->w.store, q, &ev, err) < 0 ||
        (history_make(&ev, &t->history, err) < 0 && part_full(&t->history, err) < 0) ||
        diff_make(d, &ev, t, err) < 0 || effects_make(q, &t->effects, err) < 0 ||
        all_make(t, err) < 0)
        return -1;
    t->known = true;
    return 0;
}

void amp_evidence_texts_release(struct amp_evidence_texts *t)
{
    amp_buf_release(&t->history);
    amp_buf_release(&t->files);
    amp_buf_release(&t->diff);
    amp_buf_release(&t->effects);
    amp_buf_release(&t->all);
    *t = (struct amp_evidence_texts){0};
}

int amp_facts_evidence(struct amp_facts *f, const struct amp_evidence_texts *t,
                       struct amp_error *err)
{
    return amp_facts_set(f, AMP_FACT_history, amp_buf_span(&t->history), err) < 0 ||
                   amp_facts_set(f, AMP_FACT_files, amp_buf_span(&t->files), err) < 0 ||
                   amp_facts_set(f, AMP_FACT_diff, amp_buf_span(&t->diff), err) < 0 ||
                   amp_facts_set(f, AMP_FACT_effects, amp_buf_span(&t->effects), err) < 0 ||
                   amp_facts_set(f, AMP_FACT_evidence, amp_buf_span(&t->all), err) < 0
               ? -1
               : 0;
}
