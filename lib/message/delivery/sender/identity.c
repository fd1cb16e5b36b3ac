/* Finds who said a message, and signs what a tool says itself. */
#include "message/delivery/sender/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/delivery/ledger/ledger.h"
#include "message/protocol/question.h"

#define ADMIN     "admin"
#define SYSTEM    "system"
#define EXECUTOR  "executor"
#define REVIEWER  "reviewer"
#define LINES_MAX ((size_t)256 << 20)

/* The names of an agent: its own, and that of its type. */
enum { OWN_NAME, TYPE_NAME, NAMES };

struct amp_identities {
    enum amp_identity_require require;
    const char *const *operators;
    const char *state; /* the caller's */
    struct amp_trust *trust;
    struct amp_verifier *verifier;
    struct amp_signer *signer;         /* or NULL */
    char principal[AMP_PRINCIPAL_MAX]; /* of the signer */
    const char *type;                  /* of the agent, or NULL; the caller's */
    struct amp_signer *named[NAMES];   /* of a name of the agent; NULL: not needed yet */
    struct amp_reader *reader;
    void (*warn)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
};

int amp_identity_require_find(const char *word)
{
    static const char *const words[] = {"local", "all", "off", NULL};
    return amp_word_find(words, amp_span_str(word));
}

/* ---- opening ---- */

static void trust_warn(void *ctx, const struct amp_trust_finding *f)
{
    const struct amp_identities *ids = ctx;
    if (ids->warn)
        ids->warn("%s:%u: %s: %s", f->path, (unsigned)f->line, f->code, f->what);
}

static int signer_open(const struct amp_identities_options *opt, struct amp_identities *ids,
                       struct amp_error *err)
{
    if (opt->principal)
        snprintf(ids->principal, sizeof ids->principal, "%s", opt->principal);
    if (opt->principal && !(ids->reader = amp_reader_new(NULL, err)))
        return -1;
    if (opt->key)
        return amp_signer_of_file(opt->key, opt->agent_socket, &ids->signer, err);
    return opt->principal ? amp_state_signer(opt->state, opt->principal, &ids->signer, err) : 0;
}

static int trust_open(const struct amp_identities_options *opt, struct amp_identities *ids,
                      struct amp_error *err)
{
    if (opt->state)
        return amp_state_trust(opt->state, opt->allowed_signers, trust_warn, ids, &ids->trust, err);
    return amp_trust_new(trust_warn, ids, &ids->trust, err) < 0
               ? -1
               : amp_trust_add(ids->trust, opt->allowed_signers, false, true, err);
}

int amp_identities_open(const struct amp_identities_options *opt, struct amp_identities **out,
                        struct amp_error *err)
{
    *out = NULL;
    if (opt->require == AMP_IDENTITY_OFF)
        return 0;
    struct amp_identities *ids = calloc(1, sizeof *ids);
    if (!ids)
        return amp_fail_memory(err);
    ids->require = opt->require;
    ids->operators = opt->operators;
    ids->state = opt->state;
    ids->warn = opt->warn;
    /* The signer first: it may make the state's keys, which the trust then has. */
    int rc = signer_open(opt, ids, err);
    if (rc == 0)
        rc = trust_open(opt, ids, err);
    const struct amp_verifier_options how = {
        .trust = ids->trust,
        .skew_ms = opt->skew_ms ? opt->skew_ms : AMP_IDENTITY_SKEW_MS,
        .max_age_ms = opt->max_age_ms ? opt->max_age_ms : AMP_IDENTITY_MAX_AGE_MS,
        .stop = opt->stop};
    if (rc == 0)
        rc = amp_verifier_new(&how, &ids->verifier, err);
    if (rc < 0) {
        amp_identities_close(ids);
        return -1;
    }
    *out = ids;
    return 0;
}

void amp_identities_close(struct amp_identities *ids)
{
    if (!ids)
        return;
    amp_verifier_free(ids->verifier);
    amp_trust_free(ids->trust);
    amp_signer_free(ids->signer);
    for (int i = 0; i < NAMES; i++)
        amp_signer_free(ids->named[i]);
    amp_reader_free(ids->reader);
    free(ids);
}

int amp_identities_refresh(struct amp_identities *ids, struct amp_error *err)
{
    if (!ids)
        return 0;
    if (ids->signer && amp_signer_refresh(ids->signer, err) < 0)
        return -1;
    for (int i = 0; i < NAMES; i++)
        if (ids->named[i] && amp_signer_refresh(ids->named[i], err) < 0)
            return -1;
    return amp_trust_refresh(ids->trust, err);
}

struct amp_verifier *amp_identities_verifier(struct amp_identities *ids)
{
    return ids ? ids->verifier : NULL;
}

struct amp_trust *amp_identities_trust(struct amp_identities *ids)
{
    return ids ? ids->trust : NULL;
}

struct amp_signer *amp_identities_signer(struct amp_identities *ids)
{
    return ids ? ids->signer : NULL;
}

/* ---- who ---- */

static bool may_speak(const struct amp_identities *ids, struct amp_span key, struct amp_span role,
                      int64_t time_ms)
{
    const struct amp_trust_entry *entry;
    char principal[AMP_PRINCIPAL_MAX];
    struct amp_error no;
    return amp_trust_find(ids->trust, key, AMP_SIGN_MESSAGES, role, time_ms, &entry, principal,
                          &no) == 0;
}

bool amp_identities_is_operator(const struct amp_identities *ids, struct amp_span key,
                                int64_t time_ms)
{
    if (may_speak(ids, key, AMP_SPAN(AMP_OPERATOR_ROLE), time_ms))
        return true;
    for (size_t i = 0; ids->operators && ids->operators[i]; i++)
        if (amp_trust_is(ids->trust, key, amp_span_str(ids->operators[i]), time_ms))
            return true;
    return false;
}

int amp_identities_signs_as(struct amp_identities *ids, char principal[AMP_PRINCIPAL_MAX])
{
    struct amp_signer *by = amp_identities_signer(ids);
    const struct amp_trust_entry *entry;
    struct amp_error why;
    int64_t now = amp_now_ms();

    if (!by)
        return 0;
    struct amp_span key = amp_span_str(amp_signer_public(by)->fingerprint);
    return amp_identities_is_operator(ids, key, now) &&
           (amp_trust_find(ids->trust, key, "amp", AMP_SPAN(AMP_OPERATOR_ROLE), now, &entry,
                           principal, &why) == 0 ||
            amp_trust_find(ids->trust, key, "amp", AMP_SPAN(""), now, &entry, principal, &why) ==
                0);
}

bool amp_identities_is_named(const struct amp_identities *ids, const struct amp_identity *by,
                             const char *name)
{
    bool shared = strpbrk(name, "*?") || strcmp(name, EXECUTOR) == 0 ||
                  strcmp(name, REVIEWER) == 0 || strcmp(name, AMP_OPERATOR_ROLE) == 0;
    return !shared &&
           amp_trust_is(ids->trust, amp_span_str(by->key), amp_span_str(name), by->time_ms);
}

bool amp_said_by(const struct amp_identities *ids, const struct amp_said *said, const char *role)
{
    if (said->how != AMP_SAID_SIGNED)
        return said->how == AMP_SAID_UNCHECKED || amp_span_is(said->from, role);
    if (strcmp(role, ADMIN) == 0)
        return said->is_operator;
    return may_speak(ids, amp_span_str(said->by.key), amp_span_str(role), said->by.time_ms);
}

struct amp_span amp_speaker(const struct amp_view *v, char mem[AMP_SPEAKER_MAX])
{
    const struct amp_question_terms *t = amp_questions_of(v->protocol);
    struct amp_span op;

    if (!t || !t->reviewed || !t->reviewed(v, &op))
        return v->from;
    /* A name that is too long or malformed is nobody's principal. */
    snprintf(mem, AMP_SPEAKER_MAX, AMP_OPERATOR_ROLE "/%.*s", AMP_CLIP(op, 200));
    return amp_span_str(mem);
}

int amp_identities_who(struct amp_identities *ids, const struct amp_view *v, bool trusted,
                       struct amp_said *said, struct amp_error *why, struct amp_error *err)
{
    char mem[AMP_SPEAKER_MAX];
    *said = (struct amp_said){.from = v->from};
    if (!ids)
        return 1;
    int n = (int)(v->from.n < 100 ? v->from.n : 100);
    if (v->sig.key.n == 0) {
        said->how = AMP_SAID_TRUSTED;
        if (trusted && ids->require == AMP_IDENTITY_LOCAL)
            return 1;
        amp_fail(why, AMP_NO, unsigned, "is not signed, but is from \"%.*s\"", n, v->from.p);
        return 0;
    }
    const struct amp_sig sig = {v->sig.key, v->sig.alg, v->sig.time, v->sig.value};
    said->how = AMP_SAID_SIGNED;
    if (amp_verifier_message(ids->verifier, &sig, v->message, AMP_SPAN(""), amp_now_ms(), &said->by,
                             why) < 0) {
        if (why->status == AMP_NO)
            return 0;
        *err = *why;
        return -1;
    }
    struct amp_span key = amp_span_str(said->by.key), from = amp_speaker(v, mem);
    said->is_operator = amp_identities_is_operator(ids, key, said->by.time_ms);
    if (from.n == 0 || (amp_span_is(from, ADMIN) && said->is_operator) ||
        may_speak(ids, key, from, said->by.time_ms))
        return 1;
    amp_fail(why, AMP_NO, bad_sender, "is from \"%.*s\", but signed by %s", AMP_CLIP(from, 100),
             said->by.principal);
    return 0;
}

int amp_said_refuse(const struct amp_said *said, struct amp_error *why, const char *what)
{
    bool sig = said->how == AMP_SAID_SIGNED;
    struct amp_span who = sig ? amp_span_str(said->by.principal) : said->from;
    amp_fail(why, AMP_NO, bad_sender, "%s %.*s: %s", sig ? "is signed by" : "is from",
             (int)(who.n < 128 ? who.n : 128), who.p, what);
    return 0;
}

int amp_said_by_addressee(struct amp_store *s, const struct amp_view *ack,
                          const struct amp_said *said, struct amp_error *why, struct amp_error *err)
{
    struct amp_message_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    struct amp_span ref = ack->body.ack.ref;
    if (said->how == AMP_SAID_UNCHECKED || amp_span_is(ack->from, SYSTEM) || ref.n == 0)
        return 1;
    amp_buf_init(&mem, LINES_MAX);
    if (amp_message_find(s, ref, &mem, &rec, err) < 0)
        return -1;
    if (rec.found && rec.to.n > 0 && !rec.for_many && !amp_span_eq(rec.to, ack->from) &&
        !amp_span_eq(rec.from, ack->from))
        return amp_said_refuse(said, why, "the message is addressed to another role");
    return 1;
}

bool amp_input_is_trusted(const char *path)
{
    char name[16];
    struct stat st;
    if (path && strcmp(path, "-") != 0)
        return false;
    ssize_t n = readlink("/proc/self/fd/0", name, sizeof name);
    return fstat(STDIN_FILENO, &st) < 0 || !S_ISFIFO(st.st_mode) || (n > 0 && name[0] != '/');
}

/* ---- signing ---- */

static bool principal_has_role(const char *own, struct amp_span role)
{
    return strncmp(own, role.p, role.n) == 0 &&
           (own[role.n] == '\0' || (own[role.n] == '/' && own[role.n + 1] != '\0'));
}

/* Whether the tool's principal is or begins with the role, or is an operator's for the admin. */
static bool is_own_role(const struct amp_identities *ids, struct amp_span role)
{
    return role.n == 0 || principal_has_role(ids->principal, role) ||
           (amp_span_is(role, ADMIN) &&
            principal_has_role(ids->principal, AMP_SPAN(AMP_OPERATOR_ROLE)));
}

/* Whether the name is that of a part of the toolkit, whose lines no agent signs. */
static bool is_part(const char *name)
{
    static const char *const parts[] = {EXECUTOR, REVIEWER,      AMP_OPERATOR_ROLE, ADMIN,
                                        SYSTEM,   "coordinator", "router",          "log-head"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(name, parts[i]) == 0)
            return true;
    return false;
}

/* A name of the agent that the principal executor/NAME or reviewer/NAME is; NULL: it has none. */
static const char *agent_name(const struct amp_identities *ids, int which)
{
    const char *slash = strchr(ids->principal, '/');

    if (!slash || !ids->state ||
        (!principal_has_role(ids->principal, AMP_SPAN(EXECUTOR)) &&
         !principal_has_role(ids->principal, AMP_SPAN(REVIEWER))))
        return NULL;
    const char *name = which == OWN_NAME ? slash + 1 : ids->type;
    return name && !is_part(name) ? name : NULL;
}

void amp_identities_type(struct amp_identities *ids, const char *type)
{
    if (ids)
        ids->type = type;
}

/* In protocols without roles an agent speaks under its own name, with a key of that name. *out is
 * NULL if the line is from another sender. */
static int signer_find(struct amp_identities *ids, const struct amp_view *v,
                       struct amp_signer **out, struct amp_error *err)
{
    /* An operator's tool decides in the name of the operator, whatever its own name is. */
    bool own = is_own_role(ids, v->from) ||
               (v->kind == AMP_KIND_DECISION && is_own_role(ids, AMP_SPAN(AMP_OPERATOR_ROLE)));

    *out = own ? ids->signer : NULL;
    for (int i = 0; i < NAMES && !*out; i++) {
        const char *name = agent_name(ids, i);
        if (!name || !amp_span_is(v->from, name))
            continue;
        if (!ids->named[i] && amp_state_signer(ids->state, name, &ids->named[i], err) < 0)
            return -1;
        *out = ids->named[i];
    }
    return 0;
}

int amp_identities_sign(struct amp_identities *ids, struct amp_span line, struct amp_buf *out,
                        struct amp_error *err)
{
    struct amp_signer *by = NULL;
    static const struct amp_check_options quick = {.heads = true};
    struct amp_view v;
    if (!ids || !ids->signer)
        return amp_buf_add(out, line.p, line.n, err);
    if (amp_reader_line(ids->reader, line, &quick, &v, NULL, NULL, err) < 0)
        return -1;
    if (v.sig.key.n == 0 && v.json && signer_find(ids, &v, &by, err) < 0)
        return -1;
    return by ? amp_signer_line(by, line, amp_now_ms(), out, err)
              : amp_buf_add(out, line.p, line.n, err);
}

/* The recorded line of the sender's own attempt, if `line` is the recorded line of a further one;
 * else rec->found is false. Only the sweep makes a record with an origin, of the line that it
 * composed, so another line with its id is not taken for it. */
static int first_attempt_find(struct amp_store *s, struct amp_span id, struct amp_span line,
                              struct amp_buf *mem, struct amp_message_rec *rec,
                              struct amp_error *err)
{
    struct amp_message_rec again;
    AMP_BUF struct amp_buf own = {.max = LINES_MAX};
    rec->found = false;
    if (id.n == 0)
        return 0;
    if (amp_message_find(s, id, &own, &again, err) < 0)
        return -1;
    if (!again.found || again.origin.n == 0 || !amp_span_eq(again.line, line))
        return 0;
    return amp_message_find(s, again.origin, mem, rec, err);
}

int amp_identities_sign_again(struct amp_identities *ids, struct amp_store *s, struct amp_span line,
                              struct amp_buf *out, struct amp_error *err)
{
    static const struct amp_check_options quick = {.heads = true};
    struct amp_view v;
    struct amp_said said;
    struct amp_message_rec first;
    struct amp_error why;
    AMP_BUF struct amp_buf mem = {.max = LINES_MAX};
    struct amp_signer *signer = NULL;
    size_t before = out->len;
    if (amp_identities_sign(ids, line, out, err) < 0)
        return -1;
    if (!ids || !ids->reader || out->len - before != line.n)
        return 0;
    if (amp_reader_line(ids->reader, line, &quick, &v, NULL, NULL, err) < 0)
        return -1;
    if (v.sig.key.n > 0)
        return 0;
    if (first_attempt_find(s, v.id, line, &mem, &first, err) < 0)
        return -1;
    if (!first.found)
        return 0;
    if (amp_reader_line(ids->reader, first.line, &quick, &v, NULL, NULL, err) < 0)
        return -1;
    int known = amp_identities_who(ids, &v, false, &said, &why, err);
    if (known <= 0 || said.how != AMP_SAID_SIGNED || !said.by.local)
        return known < 0 ? -1 : 0;
    if (amp_state_signer_existing(ids->state, said.by.principal, &signer, &why) < 0)
        return amp_fail_unless_no(err, &why);
    out->len = before;
    int rc = amp_signer_line(signer, line, amp_now_ms(), out, err);
    amp_signer_free(signer);
    return rc;
}

int amp_signature_write(const struct amp_signature *sig, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "key", sig->key);
    amp_jw_member_str(&w, "alg", sig->alg);
    amp_jw_member_str(&w, "time", sig->time);
    amp_jw_member_str(&w, "value", sig->value);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

int amp_signature_line(struct amp_span message, struct amp_span sig, struct amp_buf *out,
                       struct amp_error *err)
{
    if (sig.n == 0)
        return amp_buf_add(out, message.p, message.n, err);
    return amp_buf_fmt(out, err, "{\"sig\":%.*s,\"msg\":", (int)sig.n, sig.p) < 0 ||
                   amp_buf_add(out, message.p, message.n, err) < 0
               ? -1
               : amp_buf_str(out, "}", err);
}
