/* Opens what the options name (signers, trust, keys and times), and records changes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/num.h>
#include <amp/protocol/protocol.h>

#include "base/codes.h"
#include "sign.h"

int signer_check(struct amp_command *c, struct amp_error *err)
{
    int ways = (opt.key != NULL) + (opt.agent != NULL) + (opt.principal != NULL);
    (void)err;
    if (ways != 1)
        amp_die_usage(ways == 0 ? "no key: give --key FILE, --ssh-agent KEY, or --state DIR and "
                                  "--as PRINCIPAL"
                                : "--key, --ssh-agent and --as exclude each other");
    if (!opt.principal)
        return 0;
    if (!opt.state)
        amp_die_no_state();
    c->act = "sign with a key of the state directory";
    return 0;
}

int signer_open(struct amp_signer **out, struct amp_error *err)
{
    const char *socket = getenv("SSH_AUTH_SOCK");
    return opt.key     ? amp_signer_of_file(opt.key, socket, out, err)
           : opt.agent ? amp_signer_of_agent(socket, opt.agent, out, err)
                       : amp_state_signer(opt.state, opt.principal, out, err);
}

static void finding_warn(void *ctx, const struct amp_trust_finding *f)
{
    (void)ctx;
    if (f->line > 0)
        amp_warn("%s:%u: %s: %s; the line is ignored", f->path, f->line, f->code, f->what);
    else
        amp_warn("%s: %s: %s", f->path, f->code, f->what);
}

int trust_open(struct amp_trust **out, struct amp_error *err)
{
    if (!opt.state && !opt.allowed)
        amp_die_usage("no trusted keys: give --allowed-signers FILE or --state DIR");
    if (opt.state)
        return amp_state_trust(opt.state, opt.allowed, finding_warn, NULL, out, err);
    AMP_CLEANUP(amp_auto_trust) struct amp_trust *t = NULL;
    if (amp_trust_new(finding_warn, NULL, &t, err) < 0 ||
        amp_trust_add(t, opt.allowed, false, true, err) < 0)
        return -1;
    *out = t;
    t = NULL;
    return 0;
}

int key_named(const char *text, struct amp_pubkey *key, struct amp_error *err)
{
    struct amp_span t = amp_span_str(text);
    *key = (struct amp_pubkey){0};
    if (amp_fingerprint_is(t)) {
        amp_span_copy(t, key->fingerprint, sizeof key->fingerprint);
        return 0;
    }
    return memchr(t.p, ' ', t.n) ? amp_pubkey_parse(t, key, err) : amp_pubkey_read(text, key, err);
}

int time_named(const char *option, const char *text, int64_t *ms, struct amp_error *err)
{
    struct amp_span t = amp_span_str(text);
    int64_t before;
    if (amp_span_is(t, "now")) {
        *ms = amp_now_ms();
        return 0;
    }
    if (t.n > 1 && t.p[0] == '-' &&
        amp_num_duration((struct amp_span){t.p + 1, t.n - 1}, 0, (int64_t)3650 * 86400000, &before,
                         NULL) == 0) {
        *ms = amp_now_ms() - before;
        return 0;
    }
    if (amp_time_parse(t, ms) && *ms > 0)
        return 0;
    return amp_fail(err, AMP_USAGE, bad_time,
                    "--%s takes a time such as 2026-11-22T10:00:00Z, \"now\" or -2h, not \"%.60s\"",
                    option, text);
}

int change_record(struct amp_store *s, const char *code, struct amp_span fingerprint,
                  const char *what, struct amp_error *err)
{
    const struct amp_line_place at = {.tool = "amp-sign", .now_ms = amp_now_ms()};
    const struct amp_finding f = {.severity = AMP_SEV_WARNING,
                                  .type = {"", 0},
                                  .id = fingerprint,
                                  .code = code,
                                  .field = "",
                                  .pointer = "",
                                  .rule = "identity",
                                  .message = what,
                                  .found = "",
                                  .expected = ""};
    AMP_BUF struct amp_buf record = {0};
    if (!s)
        return 0;
    amp_buf_init(&record, 1 << 16);
    return amp_finding_record(&f, &at, &record, err) < 0
               ? -1
               : amp_store_error_log(s, amp_buf_span(&record), err);
}
