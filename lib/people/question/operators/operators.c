/* Checks who may decide, and counts votes. */
#include "people/question/operators/operators.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/codes.h"
#include "base/words.h"

#define ENTRY_MAX (64u << 10)

AMP_WORDS(proof_words, AMP_PROOF_OF_PERSON_LIST);

const char *amp_known_by_name(enum amp_known_by by)
{
    return proof_words[by];
}

static int known_by_find(struct amp_span word)
{
    return amp_word_find(proof_words, word);
}

/* ---- the configuration ---- */

struct operator_entry {
    const char *name, *principal;
    struct amp_span *protocols, *reasons, *risks, *by;
    uint32_t n_protocols, n_reasons, n_risks, n_by;
    struct amp_buf mem;
};
static const struct amp_rec_field operator_fields[] = {
    AMP_REC_EVER(CSTR, struct operator_entry, "name", name),
    AMP_REC(CSTR, struct operator_entry, "principal", principal),
    AMP_REC_WORDS(struct operator_entry, "protocols", protocols, false),
    AMP_REC_WORDS(struct operator_entry, "reasons", reasons, false),
    AMP_REC_WORDS(struct operator_entry, "risks", risks, false),
    AMP_REC_WORDS(struct operator_entry, "by", by, false),
};
AMP_REC_TABLE(operator_rec, "an entry of hitl.operators", struct operator_entry, operator_fields);

struct approval_entry {
    const char *protocol, *reason, *risk, *deny;
    int64_t need;
    struct amp_buf mem;
};
static const struct amp_rec_field approval_fields[] = {
    AMP_REC(CSTR, struct approval_entry, "protocol", protocol),
    AMP_REC(CSTR, struct approval_entry, "reason", reason),
    AMP_REC(CSTR, struct approval_entry, "risk", risk),
    AMP_REC(CSTR, struct approval_entry, "deny", deny),
    AMP_REC(INT, struct approval_entry, "need", need),
};
AMP_REC_TABLE(approval_rec, "an entry of hitl.approvals", struct approval_entry, approval_fields);

struct amp_operators {
    struct operator_entry operators[AMP_OPERATORS_MAX];
    struct approval_entry approvals[AMP_APPROVALS_MAX];
    uint32_t n_operators, n_approvals;
};

struct amp_operators *amp_operators_new(struct amp_error *err)
{
    struct amp_operators *o = calloc(1, sizeof *o);
    if (!o)
        amp_fail_memory(err);
    return o;
}

void amp_operators_free(struct amp_operators *o)
{
    if (!o)
        return;
    for (uint32_t i = 0; i < o->n_operators; i++)
        amp_buf_release(&o->operators[i].mem);
    for (uint32_t i = 0; i < o->n_approvals; i++)
        amp_buf_release(&o->approvals[i].mem);
    free(o);
}

static int entry_fail(const char *what, const struct amp_error *why, struct amp_error *err)
{
    return amp_fail(err, AMP_CONFIG, bad_config, "%s: %s", what, why->what);
}

static int operator_check(const struct operator_entry *e, struct amp_error *err)
{
    if (!*e->name)
        return amp_fail(err, AMP_CONFIG, bad_config, "hitl.operators: an entry has no name");
    if (*e->principal && !amp_principal_is(amp_span_str(e->principal)))
        return amp_fail(err, AMP_CONFIG, bad_config,
                        "hitl.operators: \"%.100s\" is not a principal (NAME or ROLE/NAME)",
                        e->principal);
    for (uint32_t i = 0; i < e->n_by; i++)
        if (known_by_find(e->by[i]) < 0)
            return amp_fail(err, AMP_CONFIG, bad_config,
                            "hitl.operators: %.100s: \"by\" has login, key and token", e->name);
    return 0;
}

int amp_operators_add(void *ops, const char *text, struct amp_error *err)
{
    struct amp_operators *o = ops;
    struct amp_error why;

    if (o->n_operators == AMP_OPERATORS_MAX)
        return amp_fail(err, AMP_CONFIG, bad_config, "hitl.operators has more than %d entries",
                        AMP_OPERATORS_MAX);
    struct operator_entry *e = &o->operators[o->n_operators];
    struct amp_buf mem = {0};
    amp_buf_init(&mem, ENTRY_MAX);
    if (*text == '{') {
        if (amp_rec_parse(&operator_rec, amp_span_str(text), &mem, e, &why) < 0) {
            amp_buf_release(&mem);
            return entry_fail("hitl.operators", &why, err);
        }
    } else {
        *e = (struct operator_entry){.principal = ""};
        if (amp_buf_add(&mem, text, strlen(text) + 1, err) < 0) {
            amp_buf_release(&mem);
            return -1;
        }
        e->name = mem.data;
    }
    if (operator_check(e, err) < 0) {
        amp_buf_release(&mem);
        return -1;
    }
    e->mem = mem;
    o->n_operators++;
    return 0;
}

int amp_approvals_add(void *ops, const char *text, struct amp_error *err)
{
    struct amp_operators *o = ops;
    struct amp_error why;

    if (o->n_approvals == AMP_APPROVALS_MAX)
        return amp_fail(err, AMP_CONFIG, bad_config, "hitl.approvals has more than %d entries",
                        AMP_APPROVALS_MAX);
    struct approval_entry *e = &o->approvals[o->n_approvals];
    struct amp_buf mem = {0};
    amp_buf_init(&mem, ENTRY_MAX);
    if (amp_rec_parse(&approval_rec, amp_span_str(text), &mem, e, &why) < 0) {
        amp_buf_release(&mem);
        return entry_fail("hitl.approvals", &why, err);
    }
    if (e->need < 1 || e->need > AMP_APPROVALS_NEED_MAX ||
        (*e->deny && strcmp(e->deny, "one") && strcmp(e->deny, "need"))) {
        amp_buf_release(&mem);
        return amp_fail(err, AMP_CONFIG, bad_config,
                        "hitl.approvals: need is a number from 1 to %d, deny is one or need",
                        AMP_APPROVALS_NEED_MAX);
    }
    e->mem = mem;
    o->n_approvals++;
    return 0;
}

/* ---- who may ---- */

static bool span_is_nocase(struct amp_span a, const char *s)
{
    return a.n == strlen(s) && strncasecmp(a.p, s, a.n) == 0;
}

static bool list_allows(const struct amp_span *v, uint32_t n, const char *word)
{
    for (uint32_t i = 0; i < n; i++)
        if (span_is_nocase(v[i], word))
            return true;
    return n == 0;
}

/* Without a principal in the entry it is operator/NAME. */
static bool names_operator(const char *principal, const char *name)
{
    static const char role[] = "operator/";
    return strncmp(principal, role, sizeof role - 1) == 0 &&
           strcmp(principal + sizeof role - 1, name) == 0;
}

static bool principal_is(const struct operator_entry *e, const char *principal)
{
    return *e->principal ? strcmp(e->principal, principal) == 0
                         : names_operator(principal, e->name);
}

/* A key proves its principal, not a name that somebody typed. */
static bool entry_is(const struct operator_entry *e, const struct amp_answerer *who)
{
    return who->by == AMP_KNOWN_BY_KEY ? principal_is(e, who->principal)
                                       : strcmp(e->name, who->name) == 0;
}

static int entry_allows(const struct operator_entry *e, const struct amp_matter *m,
                        const struct amp_answerer *who, struct amp_error *why)
{
    const struct {
        const struct amp_span *v;
        uint32_t n;
        const char *word, *what;
    } lists[] = {{e->protocols, e->n_protocols, m->protocol, "questions of the protocol"},
                 {e->reasons, e->n_reasons, m->reason, "questions with the reason"},
                 {e->risks, e->n_risks, m->risk, "questions with the risk"},
                 {e->by, e->n_by, amp_known_by_name(who->by), "with the proof"}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (!list_allows(lists[i].v, lists[i].n, lists[i].word) &&
            !(lists[i].v == e->reasons && list_allows(e->reasons, e->n_reasons, m->type))) {
            amp_fail(why, AMP_NOPERM, not_authorized,
                     "%.100s may not decide %s \"%.100s\" (hitl.operators)", e->name, lists[i].what,
                     *lists[i].word ? lists[i].word : "unknown");
            return 0;
        }
    return 1;
}

/* Several persons with one login would be one person. */
static int vote_counts(const struct amp_operators *o, const struct amp_matter *m,
                       const struct amp_answerer *who, struct amp_error *why)
{
    if (who->by != AMP_KNOWN_BY_LOGIN || strcmp(who->name, who->login) == 0 ||
        amp_operators_need(o, m).need == 1)
        return 1;
    amp_fail(why, AMP_NOPERM, not_authorized,
             "several approvals are needed: \"%.100s\" is not the login, so the answer needs a key",
             who->name);
    return 0;
}

int amp_operators_may(const struct amp_operators *o, const struct amp_matter *m,
                      const struct amp_answerer *who, char person[AMP_PRINCIPAL_MAX],
                      struct amp_error *why)
{
    const char *name = who->name;
    struct amp_error no = {0};

    snprintf(person, AMP_PRINCIPAL_MAX, "%s", name);
    if (who->by == AMP_KNOWN_BY_POLICY || !o)
        return 1;
    for (uint32_t i = 0; i < o->n_operators; i++) {
        const struct operator_entry *e = &o->operators[i];
        if (!entry_is(e, who))
            continue;
        snprintf(person, AMP_PRINCIPAL_MAX, "%s", e->name);
        if (entry_allows(e, m, who, &no))
            return vote_counts(o, m, who, why);
    }
    if (o->n_operators == 0)
        return vote_counts(o, m, who, why);
    if (*no.code)
        *why = no;
    else
        amp_fail(why, AMP_NOPERM, not_operator,
                 "%.100s is not in hitl.operators of the configuration",
                 who->by == AMP_KNOWN_BY_KEY ? who->principal : name);
    return 0;
}

int amp_operators_is(const struct amp_operators *o, const struct amp_answerer *who,
                     struct amp_error *why)
{
    for (uint32_t i = 0; o && i < o->n_operators; i++)
        if (entry_is(&o->operators[i], who))
            return 1;
    if (!o || o->n_operators == 0)
        return 1;
    amp_fail(why, AMP_NOPERM, not_operator, "%.100s is not in hitl.operators of the configuration",
             who->name);
    return 0;
}

enum amp_known_by amp_known_by_find(struct amp_span word)
{
    int by = 0;
    while (by < AMP_KNOWN_BY_COUNT && !amp_span_is(word, amp_known_by_name((enum amp_known_by)by)))
        by++;
    return (enum amp_known_by)by;
}

int amp_operators_signed(const struct amp_operators *o, const struct amp_matter *m,
                         const char *principal, bool local, enum amp_known_by by,
                         struct amp_error *why)
{
    struct amp_answerer who = {.name = principal, .principal = principal, .key = "", .login = ""};
    struct amp_error no = {0};

    if (!o || o->n_operators == 0 || (local && names_operator(principal, AMP_POLICY_OPERATOR)))
        return 1;
    for (uint32_t i = 0; i < o->n_operators; i++) {
        const struct operator_entry *e = &o->operators[i];
        if (!(local ? names_operator(principal, e->name) : principal_is(e, principal)))
            continue;
        who.by = !local ? AMP_KNOWN_BY_KEY : by < AMP_KNOWN_BY_COUNT ? by : AMP_KNOWN_BY_LOGIN;
        if (entry_allows(e, m, &who, &no))
            return 1;
        who.by = AMP_KNOWN_BY_TOKEN;
        if (local && by == AMP_KNOWN_BY_COUNT && entry_allows(e, m, &who, &no))
            return 1;
    }
    if (*no.code)
        *why = no;
    else
        amp_fail(why, AMP_NOPERM, not_operator,
                 "%.100s is not in hitl.operators of the configuration", principal);
    why->status = AMP_NO;
    return 0;
}

static bool field_matches(const char *wanted, const char *has)
{
    return !*wanted || strcasecmp(wanted, has) == 0;
}

struct amp_quorum amp_operators_need(const struct amp_operators *o, const struct amp_matter *m)
{
    struct amp_quorum a = {1, true};
    for (uint32_t i = 0; o && i < o->n_approvals; i++) {
        const struct approval_entry *e = &o->approvals[i];
        /* An unknown risk counts as every risk. */
        if (!field_matches(e->protocol, m->protocol) ||
            (!field_matches(e->reason, m->reason) && !field_matches(e->reason, m->type)) ||
            (*m->risk && !field_matches(e->risk, m->risk)) || e->need <= a.need)
            continue;
        a = (struct amp_quorum){(uint32_t)e->need, strcmp(e->deny, "need") != 0};
    }
    return a;
}

/* ---- votes ---- */

#define VOTE(as, key_, member) AMP_REC(as, struct amp_vote, key_, member)
static const struct amp_rec_field vote_fields[] = {
    AMP_REC_EVER(TEXT, struct amp_vote, "operator", person),
    VOTE(TEXT, "principal", principal),
    VOTE(TEXT, "key", key),
    AMP_REC_EVER(TEXT, struct amp_vote, "by", by),
    AMP_REC_EVER(TEXT, struct amp_vote, "channel", channel),
    VOTE(TEXT, "shown", shown),
    AMP_REC_EVER(TEXT, struct amp_vote, "action", action),
    VOTE(TEXT, "note", note),
    AMP_REC_EVER(TEXT, struct amp_vote, "digest", digest),
    AMP_REC_EVER(TIME, struct amp_vote, "at", at_ms),
    VOTE(BOOL, "against", against),
    VOTE(TEXT, "line", line),
};
const struct amp_rec amp_vote_rec = {
    "a vote", vote_fields, sizeof vote_fields / sizeof vote_fields[0], sizeof(struct amp_vote)};

static bool person_is_same(const struct amp_vote *a, const struct amp_vote *b)
{
    return amp_span_eq(a->person, b->person) ||
           (a->principal.n > 0 && amp_span_eq(a->principal, b->principal)) ||
           (a->key.n > 0 && amp_span_eq(a->key, b->key));
}

enum amp_votes_end amp_votes_add(const struct amp_quorum *a, const struct amp_vote *v, uint32_t n,
                                 const struct amp_vote *added, struct amp_votes_count *count,
                                 struct amp_error *why)
{
    *count = (struct amp_votes_count){.have = 1, .need = a->need, .at = n};
    for (uint32_t i = 0; i < n; i++) {
        if (!person_is_same(&v[i], added))
            continue;
        if (count->replaces || v[i].against || !added->against) {
            amp_fail(why, AMP_NO, duplicate_vote,
                     "%.*s has answered this question (%.*s); %u different persons have to agree",
                     AMP_CLIP(added->person, 100), AMP_CLIP(v[i].action, 100), a->need);
            return AMP_VOTES_REFUSED;
        }
        count->replaces = true;
        count->at = i;
    }
    for (uint32_t i = 0; i < n; i++)
        if (!person_is_same(&v[i], added) && v[i].against == added->against &&
            (added->against || amp_span_eq(v[i].digest, added->digest)))
            count->have++;
    if (added->against && a->one_denies)
        return AMP_VOTES_DECIDED;
    return count->have >= a->need ? AMP_VOTES_DECIDED : AMP_VOTES_OPEN;
}
