/* The keys that sign what amp-route says itself: as "system", as the router, and as the agents into
 * whose inboxes it puts messages. */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/delivery/sender/identity.h"
#include "message/protocol/delivery.h"
#include "wiring.h"

#define SYSTEM    "system"
#define KEYS_MOST 8

struct amp_identity_cli route_identity = AMP_IDENTITY_CLI;

static struct {
    const char *state, *config, *agent;
    struct amp_reader *reader;
    struct speaker {
        char principal[AMP_PRINCIPAL_MAX];
        struct amp_identities *ids; /* NULL: the principal cannot have a key */
    } v[KEYS_MOST];
    unsigned n, next; /* next: the one to replace */
} keys;

void answers_open(const char *state, const char *config, const char *agent)
{
    keys.state = state;
    keys.config = config;
    keys.agent = agent;
}

void answers_close(void)
{
    for (unsigned i = 0; i < keys.n; i++)
        amp_identities_close(keys.v[i].ids);
    amp_reader_free(keys.reader);
    keys.reader = NULL;
    keys.n = keys.next = 0;
}

/* Opens the key of a principal, which is made on first use. */
static int speaker_open(const char *principal, struct amp_identities **out, struct amp_error *err)
{
    const struct amp_identity_tool tool = {
        .state = keys.state, .config = keys.config, .principal = principal, .quiet = true};
    struct amp_error why = {0};
    if (amp_identity_cli_open(&route_identity, &tool, out, &why) == 0)
        return 0;
    if (amp_code_is(why.code, bad_principal)) /* a name that keys do not have */
        return 0;
    *err = why;
    return -1;
}

static int speaker_find(const char *principal, struct amp_identities **out, struct amp_error *err)
{
    struct amp_identities *ids = NULL;
    for (unsigned i = 0; i < keys.n; i++)
        if (strcmp(keys.v[i].principal, principal) == 0) {
            *out = keys.v[i].ids;
            return amp_identities_refresh(*out, err);
        }
    if (speaker_open(principal, &ids, err) < 0)
        return -1;
    struct speaker *s = &keys.v[keys.next];
    keys.next = (keys.next + 1) % KEYS_MOST;
    if (keys.n < KEYS_MOST)
        keys.n++;
    else
        amp_identities_close(s->ids);
    snprintf(s->principal, sizeof s->principal, "%s", principal);
    *out = s->ids = ids;
    return 0;
}

/* Chooses whose key signs: ROLE/AGENT if an agent speaks as a role, else the sender. False: it is
 * too long. */
static bool principal_choose(const struct amp_view *v, char out[AMP_PRINCIPAL_MAX])
{
    if (v->from.n == 0 || v->from.n >= AMP_PRINCIPAL_MAX)
        return false;
    bool by_role = v->protocol != AMP_PROTO_NONE && amp_delivery_of(v->protocol)->acks_by_role;
    int n = (int)v->from.n;
    if (!keys.agent || !by_role || amp_span_is(v->from, SYSTEM))
        n = snprintf(out, AMP_PRINCIPAL_MAX, "%.*s", n, v->from.p);
    else
        n = snprintf(out, AMP_PRINCIPAL_MAX, "%.*s/%s", n, v->from.p, keys.agent);
    return n < AMP_PRINCIPAL_MAX;
}

int answer_sign(struct amp_span line, struct amp_buf *out, struct amp_error *err)
{
    static const struct amp_check_options quick = {.heads = true};
    struct amp_view v;
    struct amp_identities *ids = NULL;
    char principal[AMP_PRINCIPAL_MAX];
    if (!keys.state || strcmp(route_identity.require, "off") == 0)
        return amp_buf_add(out, line.p, line.n, err);
    if ((!keys.reader && !(keys.reader = amp_reader_new(NULL, err))) ||
        amp_reader_line(keys.reader, line, &quick, &v, NULL, NULL, err) < 0 ||
        (principal_choose(&v, principal) && speaker_find(principal, &ids, err) < 0))
        return -1;
    return amp_identities_sign(ids, line, out, err);
}
