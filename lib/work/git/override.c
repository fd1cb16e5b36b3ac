/* The records of overrides. */
#include "work/git/override.h"

#include <string.h>

#include "message/record/subject.h"

#define MEMBER(as, key, member) AMP_REC_EVER(as, struct amp_override, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(CSTR, "branch", branch), MEMBER(CSTR, "agent", agent), MEMBER(TIME, "until", until_ms),
    MEMBER(CSTR, "reason", reason), MEMBER(CSTR, "by", by),
};
AMP_REC_TABLE(override_rec, "an override's record", struct amp_override, fields);

static const char *const states[] = {"OPEN", NULL};
static const struct amp_subject overrides = {
    .kind = "override", .table = &override_rec, .states = states};

int amp_override_record(struct amp_store *s, const char *id, const struct amp_override *o,
                        struct amp_error *err)
{
    return amp_subject_put(&overrides, s, AMP_KEY(overrides.kind, amp_span_str(id)), o, false,
                           "GRANT", NULL, err) < 0
               ? -1
               : amp_store_sync(s, err);
}

struct search {
    const char *ref;
    int64_t since_ms;
    bool found;
};

/* Whether ref ends with the branch, after a slash. */
static bool names_branch(const char *ref, const char *branch)
{
    size_t n = strlen(ref), m = strlen(branch);
    return m && n > m && ref[n - m - 1] == '/' && strcmp(ref + n - m, branch) == 0;
}

static int override_look(void *ctx, const void *rec, struct amp_error *err)
{
    struct search *s = ctx;
    const struct amp_override *o = rec;

    (void)err;
    s->found |= o->until_ms >= s->since_ms && names_branch(s->ref, o->branch);
    return s->found;
}

int amp_override_covers(struct amp_store *s, const char *ref, int64_t since_ms,
                        struct amp_error *err)
{
    struct search search = {.ref = ref, .since_ms = since_ms};

    return amp_subject_each(&overrides, s, NULL, override_look, &search, err) < 0 ? -1
                                                                                  : search.found;
}
