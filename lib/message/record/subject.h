/*
 * The subject engine. A subject is a kind of stored records: a table of fields, a machine or a list
 * of states, and `carry`, the only code that is the subject's own. These functions serve all
 * subjects; a calling sequence:
 *
 *     AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
 *     struct amp_permit w;
 *     if (amp_subject_find(&permits, store, AMP_KEY(permits.kind, id), &mem, &w, err) > 0)
 *         ...
 *     struct amp_subject_step step = {.key = AMP_KEY(permits.kind, id), .event = EV, .with = &own};
 *     if (amp_subject_step(&permits, store, &step, &mem, &w, &outcome, err) < 0)
 *         ...
 *
 * The struct of a record holds no memory: its texts are in `mem`. A record with a state that the
 * subject does not have, or that its table cannot read, is refused: DATAERR bad_record.
 */
#ifndef AMP_MESSAGE_RECORD_SUBJECT_H
#define AMP_MESSAGE_RECORD_SUBJECT_H

#include <amp/fsm/fsm.h>

#include "message/store/store.h"
#include "json/record.h"

struct amp_subject_step {
    struct amp_key key;
    uint8_t event;     /* of the machine */
    const void *with;  /* the subject's own values, for check, facts and carry */
    const char *actor; /* for the log; NULL: the input's consumer */
    int64_t now_ms;
    const struct amp_store_input *input; /* NULL: none */
    const struct amp_store_emit *emits;
    uint32_t n_emits;
};

/* A step in its turn. */
struct amp_subject_turn {
    const struct amp_subject_step *step;
    const struct amp_store_rec *now; /* as it is stored; now->found is false for a new record */
    uint8_t from;                    /* the state before the step */
    uint32_t effects;                /* of the machine's row, */
    const char *code;                /* and its code, or NULL */
    /* The commit. The engine sets event and to from the machine, actor and emits from the step, and
     * the record's JSON at the end; carry may set due_ms and remove. Without a machine carry sets
     * the event and the record's state. */
    struct amp_store_change *change;
};

/* Called in the turn, under the main lock, as an amp_store_fn: 0 goes on, 1 changes nothing, -1
 * fails with err. */
typedef int (*amp_subject_fn)(void *rec, struct amp_subject_turn *t, struct amp_error *err);

/* An offset of a member, from 1 on; 0: the struct has no such member. */
#define AMP_SUBJECT_AT(type, member) (offsetof(type, member) + 1)

struct amp_subject {
    const char *kind;
    const struct amp_rec *table;
    const struct amp_fsm *machine;
    const char *const *states; /* without a machine: its states, the first for a new record; ends
                                * with NULL */
    /* AMP_SUBJECT_AT of members outside of the table, 0: none. */
    uint32_t state; /* uint8_t; without it there is one state */
    uint32_t rev;   /* uint64_t */
    uint32_t key;   /* const struct amp_key *: while a record of each, of or due is visited */
    uint32_t due;   /* int64_t: the record's deadline in ms, 0: none; without this member carry sets
                     * change->due_ms */
    amp_subject_fn check; /* before the machine's step; NULL: none */
    uint32_t (*facts)(const void *rec, const struct amp_subject_turn *t); /* NULL: none */
    amp_subject_fn carry; /* changes the record for the effects */
};

/* 1: found; 0: there is none, and rec is as a new record; -1: fails. */
int amp_subject_find(const struct amp_subject *u, struct amp_store *s, struct amp_key key,
                     struct amp_buf *mem, void *rec, struct amp_error *err);

/* Calls fn for each record, in the order of keys; state NULL: any. fn returns 0, 1 to stop or -1;
 * it may use the store. The record is valid until fn returns. */
typedef int (*amp_subject_each_fn)(void *ctx, const void *rec, struct amp_error *err);
int amp_subject_each(const struct amp_subject *u, struct amp_store *s, const char *state,
                     amp_subject_each_fn fn, void *ctx, struct amp_error *err);
/* Calls fn for each record whose key begins with this part. */
int amp_subject_of(const struct amp_subject *u, struct amp_store *s, struct amp_span part,
                   amp_subject_each_fn fn, void *ctx, struct amp_error *err);
/* Calls fn for each record that is due, the earliest first. */
int amp_subject_due(const struct amp_subject *u, struct amp_store *s, int64_t now_ms,
                    amp_subject_each_fn fn, void *ctx, struct amp_error *err);

/* One commit: reads the record, checks, steps the machine and carries its effects out. rec gets the
 * record after the step, or as it is if nothing changed. rec (with mem) and outcome may be NULL. */
int amp_subject_step(const struct amp_subject *u, struct amp_store *s,
                     const struct amp_subject_step *step, struct amp_buf *mem, void *rec,
                     enum amp_store_outcome *outcome, struct amp_error *err);

/* Writes a record as it is given, without the machine. once: only if there is none. */
int amp_subject_put(const struct amp_subject *u, struct amp_store *s, struct amp_key key,
                    const void *rec, bool once, const char *event, const char *actor,
                    struct amp_error *err);

/* Removes a record, whatever its state is. rev: only if it is still at this revision, 0: any.
 * 1: removed; 0: there is none or it was changed. */
int amp_subject_remove(const struct amp_subject *u, struct amp_store *s, struct amp_key key,
                       uint64_t rev, const char *event, const char *actor, struct amp_error *err);
/* The same with the event "forget". */
int amp_subject_forget(const struct amp_subject *u, struct amp_store *s, struct amp_key key,
                       uint64_t rev, const char *actor, struct amp_error *err);

#endif
