/* The records of overrides. */
#include "worktree/override.h"

#include <string.h>

#include "json/record.h"

#define KIND "override"

#define MEMBER(as, key, member) AMP_REC_EVER(as, struct amp_override, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(CSTR, "branch", branch), MEMBER(CSTR, "agent", agent), MEMBER(TIME, "until", until_ms),
    MEMBER(CSTR, "reason", reason), MEMBER(CSTR, "by", by),
};
AMP_REC_TABLE(override_rec, "an override's record", struct amp_override, fields);

static int override_write(void *ctx, const struct amp_store_rec *now,
                          struct amp_store_change *change, struct amp_error *err)
{
    const struct amp_buf *record = ctx;
    (void)now;
    (void)err;
    change->event = "GRANT";
    change->to = "OPEN";
    change->json = amp_buf_span(record);
    return 0;
}

int amp_override_record(struct amp_store *s, const char *id, const struct amp_override *o,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf record = {0};
    enum amp_store_outcome outcome;
    amp_buf_init(&record, AMP_REC_MAX);
    return amp_rec_write(&override_rec, o, &record, err) < 0 ||
                   amp_store_update(s, AMP_KEY(KIND, amp_span_str(id)), NULL, override_write,
                                    &record, &outcome, err) < 0 ||
                   amp_store_sync(s, err) < 0
               ? -1
               : 0;
}

struct search {
    const char *ref;
    int64_t since_ms;
    bool found;
    struct amp_buf mem;
};

/* Whether ref ends with the branch, after a slash. */
static bool names_branch(const char *ref, const char *branch)
{
    size_t n = strlen(ref), m = strlen(branch);
    return m && n > m && ref[n - m - 1] == '/' && strcmp(ref + n - m, branch) == 0;
}

static int override_look(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                         struct amp_error *err)
{
    (void)id;
    struct search *s = ctx;
    struct amp_override o;
    amp_buf_reset(&s->mem);
    if (amp_rec_parse(&override_rec, rec->json, &s->mem, &o, err) < 0)
        return -1;
    s->found = s->found || (o.until_ms >= s->since_ms && names_branch(s->ref, o.branch));
    return 0;
}

int amp_override_covers(struct amp_store *s, const char *ref, int64_t since_ms,
                        struct amp_error *err)
{
    struct search search = {.ref = ref, .since_ms = since_ms};
    amp_buf_init(&search.mem, AMP_REC_MAX);
    int rc = amp_store_each(s, KIND, NULL, override_look, &search, err);
    amp_buf_release(&search.mem);
    return rc < 0 ? -1 : search.found;
}
