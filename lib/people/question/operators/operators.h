/*
 * Operators: who may decide which questions, and how many have to agree (amp.json, hitl.operators
 * and hitl.approvals). Pure: nothing is stored here; the votes are in the record of the question.
 *
 * A person is known by the login, by a key whose principal is the person's, or by the token of a
 * question. Without hitl.operators everybody may decide; without hitl.approvals one answer decides.
 */
#ifndef AMP_PEOPLE_QUESTION_OPERATORS_OPERATORS_H
#define AMP_PEOPLE_QUESTION_OPERATORS_OPERATORS_H

#include "message/identity/trust.h"
#include "json/record.h"

/* The operator that the decisions of fallbacks name; the state's key operator/policy signs them. */
#define AMP_POLICY_OPERATOR "policy"

enum { AMP_OPERATORS_MAX = 256, AMP_APPROVALS_MAX = 64, AMP_APPROVALS_NEED_MAX = 16 };

/* X(NAME, word): how a person is known. A policy is not a person: it is a fallback that the
 * configuration names, and needs no permission. */
#define AMP_PROOF_OF_PERSON_LIST(X)                                                                \
    X(LOGIN, "login")                                                                              \
    X(KEY, "key")                                                                                  \
    X(TOKEN, "token")                                                                              \
    X(POLICY, "policy")
enum amp_known_by {
#define X(name, word) AMP_KNOWN_BY_##name,
    AMP_PROOF_OF_PERSON_LIST(X) AMP_KNOWN_BY_COUNT
#undef X
};
const char *amp_known_by_name(enum amp_known_by by);

/* The person who answers. Texts are never NULL. */
struct amp_answerer {
    const char *name;      /* of the person: "ann" */
    const char *principal; /* of the key: "operator/ann"; "": operator/NAME */
    const char *key;       /* the fingerprint of the key that proves it; "": none */
    const char *login;     /* of the answering process; "": unknown (another machine) */
    enum amp_known_by by;
};

/* The subject of a decision. "": unknown. */
struct amp_matter {
    const char *protocol; /* "amp" */
    const char *reason;   /* one of SW4RM's eight */
    const char *type;     /* the protocol's own word: the type of the escalation, … */
    const char *risk;     /* low, medium, high */
};

struct amp_operators;
/* NULL: failure. */
struct amp_operators *amp_operators_new(struct amp_error *err);
void amp_operators_free(struct amp_operators *o); /* NULL: nothing */

/* One element of hitl.operators, a name or a JSON object: {"name","principal","protocols":[…],
 * "reasons":[…],"risks":[…],"by":[…]}. A reason is also a type. A list that is missing allows
 * everything; an unknown risk or reason is allowed only without the list. One of hitl.approvals:
 * {"protocol","reason","risk", "need":N,"deny":"one"|"need"}. ops: struct amp_operators. CONFIG
 * bad_config. */
int amp_operators_add(void *ops, const char *text, struct amp_error *err);
int amp_approvals_add(void *ops, const char *text, struct amp_error *err);

/* Whether the person may decide. 1: yes; person gets the name that votes are counted by. 0: no, and
 * *why is NOPERM not_operator (not among hitl.operators) or not_authorized (among them, but not for
 * this protocol, reason, risk or proof). */
int amp_operators_may(const struct amp_operators *o, const struct amp_matter *m,
                      const struct amp_answerer *who, char person[AMP_PRINCIPAL_MAX],
                      struct amp_error *why);

/* Whether the person is an operator at all: any entry has the name, or there are no entries. 0: no,
 * *why is NOPERM not_operator. For what is not a question, such as a suspension. */
int amp_operators_is(const struct amp_operators *o, const struct amp_answerer *who,
                     struct amp_error *why);

/* Checks a decision that arrives with a signature: the principal of its key decides, not what the
 * message says. local: a key of the state directory, which signs for logins, tokens and policies;
 * another key is a person's own. by: as what the question's record has this signature; COUNT: it
 * has not, so a local key may have signed for a login or a token. 0: no, *why is NO not_operator or
 * not_authorized. */
int amp_operators_signed(const struct amp_operators *o, const struct amp_matter *m,
                         const char *principal, bool local, enum amp_known_by by,
                         struct amp_error *why);
/* COUNT: none of the words. */
enum amp_known_by amp_known_by_find(struct amp_span word);

/* need: the persons that have to give the same answer, at least 1: the largest number of the rows
 * that match. one_denies: one answer against ends the question; else denials need as many. */
struct amp_quorum {
    uint32_t need;
    bool one_denies;
};
struct amp_quorum amp_operators_need(const struct amp_operators *o, const struct amp_matter *m);

/* ---- votes ---- */

/* An answer that did not decide alone, or the one that did at last; a member of the question's
 * record ("votes"). line is the decision as if this person had decided alone, signed by the person:
 * the proof of the vote. */
struct amp_vote {
    struct amp_span person, principal, key, by, channel, shown, action, note;
    struct amp_span digest; /* of what was answered: votes for the same are counted together */
    struct amp_span line;
    int64_t at_ms;
    bool against;
};
/* For AMP_REC_MANY. */
extern const struct amp_rec amp_vote_rec;

enum amp_votes_end {
    AMP_VOTES_REFUSED, /* *why: NO duplicate_vote: this person has voted */
    AMP_VOTES_OPEN,    /* counted; more are needed */
    AMP_VOTES_DECIDED, /* the question has the answer of the last vote */
};
struct amp_votes_count {
    uint32_t have, need; /* for the answer of the last vote */
    bool replaces;       /* the vote takes the place of an earlier one of the person, … */
    uint32_t at;         /* with this index; else of a new one */
};
/* Counts a vote that is added to n others. Two votes are of one person if the person, the principal
 * or the key is the same. A person may replace an approval by an answer against. */
enum amp_votes_end amp_votes_add(const struct amp_quorum *a, const struct amp_vote *v, uint32_t n,
                                 const struct amp_vote *added, struct amp_votes_count *count,
                                 struct amp_error *why);

#endif
