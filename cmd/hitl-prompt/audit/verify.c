/* Verifies the decisions of the audit trail, and the chain of the log. */
#include "audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "flow/head.h"
#include "identity/state.h"
#include "store/history/verify.h"

int audit_signature(struct amp_identities *ids, struct amp_reader *reader,
                    const struct amp_audit_entry *e, char out[64], struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    struct amp_identity who;
    struct amp_error no;
    struct amp_view v;

    *out = '\0';
    if (e->line.n == 0)
        return 0;
    int rc = amp_reader_line(reader, e->line, &any, &v, NULL, NULL, err);
    if (rc < 0)
        return -1;
    const struct amp_sig sig = {v.sig.key, v.sig.alg, v.sig.time, v.sig.value};
    if (rc == 0 || sig.key.n == 0) {
        snprintf(out, 64, "%s", rc == 0 ? "malformed" : "unsigned");
        return 0;
    }
    if (amp_verifier_message(amp_identities_verifier(ids), &sig, v.message, AMP_SPAN(""), 0, &who,
                             &no) < 0) {
        if (no.status != AMP_NO) {
            *err = no;
            return -1;
        }
        snprintf(out, 64, "%s", no.code);
        return 0;
    }
    snprintf(out, 64, "%s",
             amp_identities_is_operator(ids, amp_span_str(who.key), who.time_ms) ? "valid"
                                                                                 : "not_operator");
    return 0;
}

static void chain_note(void *ctx, uint32_t seg, uint64_t off, const char *what)
{
    (void)ctx;
    amp_warn("log/%06u.ndjson, offset %" PRIu64 ": %s", seg, off, what);
}

int audit_chain(struct amp_store *s, struct audit_verdict *v, struct amp_error *err)
{
    AMP_CLEANUP(amp_auto_trust) struct amp_trust *trust = NULL;
    AMP_CLEANUP(amp_auto_verifier) struct amp_verifier *verifier = NULL;
    struct amp_verifier_options opt = {0};
    struct amp_store_verdict found;

    if (amp_state_trust(amp_store_dir(s), NULL, NULL, NULL, &trust, err) < 0)
        return -1;
    opt.trust = trust;
    if (amp_verifier_new(&opt, &verifier, err) < 0)
        return -1;
    const struct amp_store_verify how = {
        .check = amp_head_check, .ctx = verifier, .note = chain_note};
    v->ran = true;
    if (amp_store_verify(s, &how, &found, err) < 0) {
        if (strcmp(err->code, "log_tampered") != 0)
            return -1;
        snprintf(v->log, sizeof v->log, "The log was changed: %s", err->what);
        return 0;
    }
    v->intact = true;
    snprintf(v->log, sizeof v->log,
             "The log is intact: frames %" PRIu64 " to %" PRIu64 " in %u segments", found.first,
             found.last, found.segments);
    return 0;
}
