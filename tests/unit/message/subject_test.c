/* The subject engine: putting, visiting by the first part of the key, deadlines, removal. */
#include "message/record/subject.h"

#include <stdio.h>
#include <string.h>

#include "../scratch.h"
#include "../tap.h"

struct thing {
    struct amp_span name;
    int64_t n, due_ms;
    uint64_t rev;
    const struct amp_key *key;
};
static const struct amp_rec_field fields[] = {AMP_REC_EVER(TEXT, struct thing, "name", name),
                                              AMP_REC_EVER(INT, struct thing, "n", n)};
AMP_REC_TABLE(thing_rec, "a thing", struct thing, fields);

/* Adds to n; 0 changes nothing. */
static int thing_carry(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    struct thing *x = rec;
    (void)err;
    x->n += t->step->now_ms;
    x->due_ms = 0;
    t->change->event = "add";
    return t->step->now_ms == 0;
}

static const char *const states[] = {"THERE", NULL};
static const struct amp_subject things = {.kind = "thing",
                                          .table = &thing_rec,
                                          .states = states,
                                          .rev = AMP_SUBJECT_AT(struct thing, rev),
                                          .key = AMP_SUBJECT_AT(struct thing, key),
                                          .due = AMP_SUBJECT_AT(struct thing, due_ms),
                                          .carry = thing_carry};

struct seen {
    char text[200];
    struct amp_store *store;
};

/* Notes "part/name=n " of each thing; removes it if there is a store. */
static int thing_see(void *ctx, const void *rec, struct amp_error *err)
{
    struct seen *s = ctx;
    const struct thing *x = rec;
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%.*s/%.*s=%lld ", AMP_CLIP(x->key->part[1], 9),
             AMP_CLIP(x->name, 20), (long long)x->n);
    return s->store && amp_subject_remove(&things, s->store, *x->key, x->rev, "drop", "me", err) < 0
               ? -1
               : 0;
}

int main(void)
{
    static const char *const parts[] = {"ann", "bob", "bob\x1b", "bo"};
    struct amp_store *store;
    struct amp_error err = {0};
    struct amp_buf mem = {.max = AMP_REC_MAX};
    struct thing x;
    struct seen all = {0}, due = {0}, of[4] = {{{0}, NULL}};
    const char *dir = scratch();
    if (amp_store_open(dir, &(struct amp_store_options){0}, &store, &err) < 0)
        return TAP_OK(false, "%s", err.what), tap_done();
    for (int i = 0; i < 4; i++) {
        const struct thing put = {.name = amp_span_str(parts[i]), .n = i, .due_ms = 10 * i};
        TAP_INT(amp_subject_put(&things, store,
                                AMP_KEY("thing", amp_span_str(parts[i]), AMP_SPAN("x")), &put,
                                false, "put", "me", &err),
                0, "a record is put");
    }
    const struct amp_key bob = AMP_KEY("thing", AMP_SPAN("bob"), AMP_SPAN("x"));
    const struct thing other = {.name = AMP_SPAN("eve"), .n = 9};
    amp_subject_put(&things, store, bob, &other, true, "put", "me", &err);
    TAP_OK(amp_subject_find(&things, store, bob, &mem, &x, &err) == 1 && x.n == 1 && x.rev == 1 &&
               x.due_ms == 10,
           "put once changes no record that is there; a find gives the deadline");
    for (int i = 0; i < 4; i++)
        amp_subject_of(&things, store, amp_span_str(parts[i]), thing_see, &of[i], &err);
    TAP_STR(of[0].text, "x/ann=0 ", "the records of one first part");
    TAP_STR(of[1].text, "x/bob=1 ", "not of one that begins with it");
    TAP_STR(of[2].text, "x/bob\x1b=2 ", "of a part that is a digest in the key");
    TAP_STR(of[3].text, "x/bo=3 ", "not of a longer one");
    amp_subject_due(&things, store, 20, thing_see, &due, &err);
    TAP_STR(due.text, "x/bob=1 x/bob\x1b=2 ", "those that are due, the earliest first");
    struct amp_subject_step step = {.key = bob, .now_ms = 5};
    TAP_OK(amp_subject_step(&things, store, &step, &mem, &x, NULL, &err) == 0 && x.n == 6 &&
               x.rev == 2 && x.due_ms == 0,
           "a step changes a record that has no state, and its deadline");
    TAP_INT(amp_subject_remove(&things, store, bob, 1, "drop", "me", &err), 0,
            "one that has changed is not removed");
    all.store = store;
    amp_subject_each(&things, store, NULL, thing_see, &all, &err);
    memset(all.text, 0, sizeof all.text);
    all.store = NULL;
    amp_subject_each(&things, store, NULL, thing_see, &all, &err);
    TAP_STR(all.text, "", "all are removed while they are visited");
    amp_store_close(store);
    amp_buf_release(&mem);
    return tap_done();
}
