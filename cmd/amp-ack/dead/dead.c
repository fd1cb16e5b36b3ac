/* amp-ack dead: lists, requeues and removes undeliverable messages. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "cli/table.h"
#include "dead.h"

#define PURGE_NAME "amp-ack.purge"

static bool json;
static const char *export_path;

static const struct amp_opt dead_list_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "print one JSON object per line"},
    DEAD_ALL_OPT,
    DEAD_RAW_OPT,
    DEAD_FILTER_OPTS,
    AMP_OPT_END,
};
static const struct amp_opt dead_show_opts[] = {DEAD_EVERY_OPT, DEAD_RAW_OPT, DEAD_ALL_OPT,
                                                DEAD_FILTER_OPTS, AMP_OPT_END};
static const struct amp_opt dead_requeue_opts[] = {
    DEAD_EVERY_OPT, DEAD_DRY_OPT, DEAD_FILTER_OPTS, PASS_OUT_OPT, PASS_OPEN_OPT, AMP_OPT_END,
};
static const struct amp_opt dead_purge_opts[] = {
    DEAD_EVERY_OPT,
    DEAD_DRY_OPT,
    DEAD_ALL_OPT,
    {0, "keep", AMP_OPT_INT, &dead_filter.keep, "N", .doc = "keep the N newest of them", .min = 1,
     .max = INT64_MAX},
    {0, "export", AMP_OPT_PATH, &export_path, "FILE",
     .doc = "write the letters to the new FILE first"},
    DEAD_RAW_OPT,
    DEAD_FILTER_OPTS,
    AMP_OPT_END,
};

int dead_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    dead_filter_check(c->argc, true);
    return 0;
}

int dead_with_choices(struct amp_command *c,
                      int (*run)(struct amp_store *s, struct dead_choices *c,
                                 struct amp_error *err),
                      struct amp_error *err)
{
    struct dead_choices some = {0};
    int rc = dead_choose(c->store, c->argc, c->argv, &some, err);
    if (rc == 0)
        rc = run(c->store, &some, err);
    dead_choices_release(&some);
    return rc;
}

int dead_each_choice(struct amp_store *s, const struct dead_choices *c, amp_dead_fn fn, void *ctx,
                     struct amp_error *err)
{
    for (size_t i = 0; i < c->n; i++) {
        struct amp_error e = {0};
        if (amp_dead_find(s, amp_span_str(c->v[i].id), fn, ctx, &e) < 0 && e.status != AMP_NO) {
            *err = e;
            return -1;
        }
    }
    return 0;
}

/* ---- list, show ---- */

static int letter_line(struct amp_span id, const struct amp_dead_letter *d, struct amp_span record,
                       struct amp_buf *out, struct amp_error *err)
{
    amp_buf_init(out, (size_t)1 << 30);
    return dead_format(id, d, record, out, err) < 0 ? -1 : amp_buf_str(out, "\n", err);
}

static int print_fn(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                    struct amp_span record, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    return letter_line(id, d, record, &b, err) < 0 ? -1 : amp_out(amp_buf_span(&b), err);
}

static int row_fn(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                  struct amp_span record, struct amp_error *err)
{
    char when[AMP_TIME_MAX], tries[24];
    amp_time_format(d->failed_ms, when);
    snprintf(tries, sizeof(tries), "%lld", (long long)d->attempts);
    const struct amp_span cells[] = {id,
                                     amp_span_str(d->code),
                                     amp_span_str(d->retryable ? "temporary" : "permanent"),
                                     amp_span_str(when),
                                     amp_span_str(tries),
                                     d->from,
                                     amp_span_str(d->route),
                                     amp_span_str(dead_state(d))};
    return amp_table_row(ctx, cells, dead_filter.all ? 8 : 7, err);
}

static int letters_list(struct amp_store *s, struct dead_choices *c, struct amp_error *err)
{
    static const char *const head[] = {"id",       "code", "class", "failed",
                                       "attempts", "from", "route", "state"};
    struct amp_table t;
    amp_table_init(&t, head, dead_filter.all ? 8 : 7);
    int rc = dead_each_choice(s, c, json ? print_fn : row_fn, &t, err);
    if (rc == 0 && !json)
        rc = amp_table_print(&t, err);
    amp_table_release(&t);
    return rc;
}

static int letters_show(struct amp_store *s, struct dead_choices *c, struct amp_error *err)
{
    return dead_each_choice(s, c, print_fn, NULL, err);
}

static int list_check(struct amp_command *c, struct amp_error *err)
{
    (void)c, (void)err;
    dead_filter_check(0, false);
    return 0;
}

static int ack_dead_list(struct amp_command *c, struct amp_error *err)
{
    return dead_with_choices(c, letters_list, err);
}

static int ack_dead_show(struct amp_command *c, struct amp_error *err)
{
    return dead_with_choices(c, letters_show, err);
}

/* ---- requeue ---- */

int dead_report(const char *action, const struct dead_choice *c, const struct amp_error *refused,
                struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_jw w;
    amp_buf_init(&b, 1 << 16);
    amp_jw_init(&w, &b);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "action", action);
    amp_jw_member_text(&w, "id", c->id);
    amp_jw_member_int(&w, "failed_ms", c->failed_ms);
    if (dead_filter.dry_run)
        amp_jw_member_bool(&w, "dry_run", true);
    if (refused)
        amp_jw_member_text(&w, "refused", refused->code);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&b), err);
}

static void refusal_print(const struct dead_choice *c, const struct amp_error *why)
{
    amp_warn("%s: %s: %s", c->id, why->code, why->what);
    amp_status_note(AMP_NO);
}

static int requeue_dry(struct dead_choices *c, struct amp_error *err)
{
    struct amp_error closed;
    amp_fail(&closed, AMP_NO, already_requeued, "the letter was requeued already");
    for (size_t i = 0; i < c->n; i++) {
        if (dead_report("requeue", &c->v[i], c->v[i].open ? NULL : &closed, err) < 0)
            return -1;
        if (!c->v[i].open)
            amp_status_note(AMP_NO);
    }
    return 0;
}

static int requeue_all(struct amp_store *s, struct dead_choices *c, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    for (size_t i = 0; i < c->n && !amp_stop; i++) {
        struct amp_error e = {0};
        if (amp_dead_requeue(s, amp_span_str(c->v[i].id), c->v[i].rev, DEAD_REQUEUE, now, &e) == 0)
            continue;
        if (e.status != AMP_NO) {
            *err = e;
            return -1;
        }
        refusal_print(&c->v[i], &e);
    }
    return 0;
}

static int letters_requeue(struct amp_store *s, struct dead_choices *c, struct amp_error *err)
{
    struct amp_outq q;
    AMP_CLOSE int lock = -1;
    if (dead_filter.dry_run)
        return requeue_dry(c, err);
    if (ack_open_output(&q, err) < 0)
        return -1;
    int rc = amp_outbox_lock(s, DEAD_REQUEUE, ack_lock_timeout_ms, &lock, err);
    if (rc == 0)
        rc = amp_dead_recover(s, DEAD_REQUEUE, amp_now_ms(), err);
    if (rc == 0)
        rc = requeue_all(s, c, err);
    if (rc == 0)
        rc = ack_outbox_emit(s, DEAD_REQUEUE, "system", &q, err);
    amp_outq_close(&q);
    return rc;
}

static int ack_dead_requeue(struct amp_command *c, struct amp_error *err)
{
    return dead_with_choices(c, letters_requeue, err);
}

/* ---- purge ---- */

static int save_fn(void *ctx, struct amp_span id, const struct amp_dead_letter *d,
                   struct amp_span record, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    if (letter_line(id, d, record, &b, err) < 0)
        return -1;
    return amp_write_all(*(int *)ctx, amp_buf_span(&b), err);
}

/* Writes and syncs the export, before the first letter is removed. */
static int letters_save(struct amp_store *s, const struct dead_choices *c, struct amp_error *err)
{
    AMP_CLOSE int fd = open(export_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s", export_path);
    int rc = dead_each_choice(s, c, save_fn, &fd, err);
    if (rc == 0 && fsync(fd) < 0)
        rc = amp_fail_errno(err, AMP_IOERR, "cannot sync %s", export_path);
    if (rc == 0)
        return dead_sync_parent(export_path, err);
    unlink(export_path);
    return -1;
}

/* Up to 256 letters under one lock. The outcome of each is printed after the sync. */
static int purge_some(struct amp_store *s, struct dead_choice *v, size_t n, size_t *removed,
                      struct amp_error *err)
{
    struct amp_error why[256];
    size_t done = 0;
    int rc = amp_store_begin(s, err);
    if (rc < 0)
        return -1;
    for (; done < n && rc == 0; done++) {
        why[done].status = AMP_OK;
        amp_store_unit(s);
        if (amp_dead_remove(s, amp_span_str(v[done].id), v[done].rev, "purge", PURGE_NAME,
                            &why[done]) < 0 &&
            why[done].status != AMP_NO) {
            *err = why[done];
            rc = -1;
        }
    }
    amp_store_end(s);
    if (rc < 0 || amp_store_sync(s, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        bool gone = why[i].status == AMP_OK;
        *removed += gone;
        if (!gone)
            refusal_print(&v[i], &why[i]);
        if (dead_report("purge", &v[i], gone ? NULL : &why[i], err) < 0)
            return -1;
    }
    return 0;
}

static int letters_purge(struct amp_store *s, struct dead_choices *c, struct amp_error *err)
{
    size_t removed = 0;
    if (dead_filter.dry_run) {
        for (size_t i = 0; i < c->n; i++)
            if (dead_report("purge", &c->v[i], NULL, err) < 0)
                return -1;
        return 0;
    }
    if (export_path && c->n > 0 && letters_save(s, c, err) < 0)
        return -1;
    for (size_t i = 0; i < c->n && !amp_stop; i += 256)
        if (purge_some(s, c->v + i, c->n - i > 256 ? 256 : c->n - i, &removed, err) < 0)
            return -1;
    amp_note("%zu dead %s removed", removed, removed == 1 ? "letter is" : "letters are");
    return amp_stop ? amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted") : 0;
}

static int ack_dead_purge(struct amp_command *c, struct amp_error *err)
{
    return dead_with_choices(c, letters_purge, err);
}

const struct amp_verb dead_verbs[] = {
    {"dead list", "", "list the dead letters", dead_list_opts, ack_dead_list, .check = list_check,
     .opens = AMP_OPENS_LOOK, .signals = true, .finds_state = true, .group = "Dead letters"},
    {"dead show", "[ID…]", "print complete dead letters", dead_show_opts, ack_dead_show,
     .check = dead_check, .opens = AMP_OPENS_LOOK, .signals = true, .finds_state = true,
     .values = "letter"},
    {"dead requeue", "[ID…]", "deliver dead letters again", dead_requeue_opts, ack_dead_requeue,
     .check = dead_check, .opens = AMP_OPENS_FOUND, .act = "deliver dead letters again",
     .signals = true, .values = "letter", .who = AMP_WHO_PERSON},
    {0},
};

const struct amp_verb dead_purge_verbs[] = {
    {"dead purge", "[ID…]", "remove dead letters", dead_purge_opts, ack_dead_purge,
     .check = dead_check, .opens = AMP_OPENS_FOUND, .act = "remove dead letters", .signals = true,
     .values = "letter", .who = AMP_WHO_PERSON},
    {0},
};
