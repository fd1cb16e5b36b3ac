/* What a former run left open: its messages become jobs again, its answers go out. */
#include "route/router/router.h"

#include <stdlib.h>

struct found {
    struct job **v;
    uint32_t n, cap;
    struct router *r;
    bool answer, failed;
};

static int found_fn(void *ctx, const struct amp_store_entry *e)
{
    struct found *f = ctx;
    struct job *before = f->n > 0 ? f->v[f->n - 1] : NULL;
    if (e->id.n > 1 && e->id.p[0] == '\n' && before && before->address.mark &&
        before->entry.n == e->n) {
        struct amp_span name = {e->id.p + 1, e->id.n - 1};
        struct amp_store_entry_id entry = {.n = e->n, .index = e->index};
        f->failed = amp_recipients_add(f->r, before, name, entry, NULL) < 0;
        return f->failed;
    }
    if (f->n == f->cap) {
        uint32_t cap = f->cap ? f->cap * 2 : 64;
        struct job **v = realloc(f->v, cap * sizeof(*v));
        if (!v) {
            f->failed = true;
            return 1;
        }
        f->v = v;
        f->cap = cap;
    }
    struct job *j = amp_route_job_new(f->r, e->line, NULL);
    if (!j) {
        f->failed = true;
        return 1;
    }
    j->entry = (struct amp_store_entry_id){.n = e->n, .index = e->index};
    j->answer = f->answer;
    f->v[f->n++] = j;
    if (e->id.n > 0 && e->id.p[e->id.n - 1] == '\n' && !f->answer)
        f->failed = !(j->address.mark = amp_span_dup(e->id));
    return f->failed;
}

/* A message of a former run is looked at again: the routes may be others now. */
int amp_keeper_look(struct router *r, struct job *j, struct amp_error *err)
{
    struct amp_view v;
    struct amp_check_options opt = {0};
    if (amp_reader_line(r->again, (struct amp_span){j->line, j->n}, &opt, &v, NULL, NULL, err) < 0)
        return -1;
    if (amp_route_job_fill(r, j, (struct amp_span){j->line, j->n}, &v, err) < 0)
        return -1;
    return amp_admission_look(r, j, &v, err) < 0 ? -1 : 0;
}

/* What was read before the former run ended needs no delivery. */
static int drop_read(struct router *r, struct job *j, struct amp_error *err)
{
    struct job **at = &j->address.kids;
    int rc = 0;
    j->address.last = NULL;
    while (*at && rc >= 0) {
        struct job *kid = *at;
        rc = amp_unacked_was_read(r, kid, err);
        if (rc == 1) {
            *at = kid->next;
            amp_keeper_settled(r, kid);
            amp_route_job_free(r, kid);
        } else {
            j->address.last = kid;
            at = &kid->next;
        }
    }
    if (rc < 0)
        return -1;
    return j->address.mark ? 0 : amp_unacked_was_read(r, j, err);
}

static int take_up(struct router *r, struct job *j, struct amp_error *err)
{
    int rc = amp_keeper_look(r, j, err);
    if (rc == 0)
        rc = drop_read(r, j, err);
    if (rc < 0)
        return -1;
    if (rc == 0) {
        amp_match_add(r, j);
    } else {
        amp_recipients_drop(r, j);
        amp_keeper_settled(r, j);
        amp_route_job_free(r, j);
    }
    return 0;
}

int amp_router_restore(struct router *r, struct amp_error *err)
{
    char name[160];
    int rc = 0;
    for (int answers = 1; answers >= 0 && rc == 0; answers--) {
        struct found f = {.r = r, .answer = answers};
        amp_keeper_answers_name(r, name);
        rc = amp_store_outbox(r->store, answers ? name : r->consumer, found_fn, &f, err);
        if (rc == 0 && f.failed)
            rc = amp_fail_memory(err);
        uint32_t i = 0;
        if (f.n > 0 && !answers)
            r->voice->note("%u %s of an earlier run %s delivered again", f.n,
                           f.n == 1 ? "message" : "messages", f.n == 1 ? "is" : "are");
        for (; i < f.n && rc == 0; i++) {
            if (answers)
                amp_keeper_send(r, f.v[i]);
            else if ((rc = take_up(r, f.v[i], err)) < 0)
                break;
        }
        for (; i < f.n; i++)
            amp_route_job_free(r, f.v[i]);
        free(f.v);
    }
    return rc < 0 ? -1 : amp_store_sync(r->store, err);
}
