/*
 * Agents of one or several types share an account, such as a subscription (queue.types in
 * amp.json). A usage limit or a spent credit is of the account, whichever agent reports it: no job
 * of its types starts until the limit ends, in any pool of the state. Key "account.<name>", kept
 * after the end.
 */
#ifndef AMP_WORK_ITEM_CLAIM_ACCOUNT_H
#define AMP_WORK_ITEM_CLAIM_ACCOUNT_H

#include "message/record/subject.h"
#include "work/item/claim/queue.h"

/* The account of a type: its setting `account`, else its name. Valid as long as the settings and
 * the type. */
struct amp_span amp_account_of(const struct amp_queue_settings *s, struct amp_span type);

struct amp_account {
    const char *name, *agent; /* agent: that reported the limit */
    int64_t since_ms, until_ms;
    uint8_t state;
};
enum { AMP_ACCOUNT_OPEN, AMP_ACCOUNT_LIMITED };
/* Records a limit; of two, the one that ends later counts. 1: it is new; 0: a recorded one ends
 * later, or at the same time. */
int amp_account_limit(struct amp_store *s, const struct amp_account *a, struct amp_error *err);
/* Ends a limit before its time, as a person says, and the wait of the jobs that were parked by it.
 * 1; 0: there is none. */
int amp_account_lift(struct amp_store *s, const struct amp_queue_settings *set, const char *name,
                     const char *by, int64_t now_ms, struct amp_error *err);
/* *until_ms: the end of the account's limit; 0: it has none. */
int amp_account_until(struct amp_store *s, struct amp_span name, int64_t now_ms, int64_t *until_ms,
                      struct amp_error *err);
/* Calls fn for each account that has a limit (struct amp_account). */
int amp_accounts_each(struct amp_store *s, int64_t now_ms, amp_subject_each_fn fn, void *ctx,
                      struct amp_error *err);

/* The limits that one process knows, for `closed` of an order (work/item/order.h). */
enum { AMP_ACCOUNTS_MAX = 64 };
struct amp_accounts {
    const struct amp_queue_settings *set;
    uint32_t n;
    struct {
        char name[AMP_QUEUE_TYPE_MAX];
        int64_t until_ms;
    } v[AMP_ACCOUNTS_MAX];
};
int amp_accounts_load(struct amp_accounts *a, struct amp_store *s, int64_t now_ms,
                      struct amp_error *err);
/* The end of the limit of a type's account; 0: none. ctx: struct amp_accounts. */
int64_t amp_accounts_closed(const void *ctx, struct amp_span type);

#endif
