/* The two filters: sign each line, and pass what is signed by its sender. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/pipe.h>

#include "base/codes.h"
#include "cli/config.h"
#include "message/delivery/intake.h"
#include "message/delivery/sender/identity.h"
#include "message/identity/verify.h"
#include "shared/finding.h"
#include "sign.h"

enum { LINE_MAX_OUT = 34 << 20, OPERATORS_MAX = 257 };

/* Reads more of standard input. 0: go on; 1: its end; -1: error. */
static int input_more(struct amp_lines *lines, struct amp_error *err)
{
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    if (amp_out_flush(err) < 0)
        return -1;
    if (amp_poll(&p, 1, -1, &amp_stop) < 0) {
        if (errno == EINTR && !amp_stop)
            return 0;
        return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    }
    switch (amp_lines_fill(lines, STDIN_FILENO, err)) {
    case AMP_READ_FAILED:
        return -1;
    case AMP_READ_END:
        return 1;
    default:
        return 0;
    }
}

static int line_out(struct amp_span line, struct amp_error *err)
{
    return amp_out(line, err) < 0 ? -1 : amp_out(AMP_SPAN("\n"), err);
}

/* Signing */

struct signing {
    struct amp_signer *signer;
    struct amp_buf out;
};

/* Prints why a line is refused; the stream goes on. */
static void line_refuse(const struct amp_line *line, const char *code, const char *what)
{
    const struct amp_finding f = {.severity = AMP_SEV_ERROR,
                                  .code = code,
                                  .field = "",
                                  .pointer = "",
                                  .rule = "identity",
                                  .message = what,
                                  .found = "",
                                  .expected = ""};
    const struct amp_line_place at = {
        .tool = "amp-sign", .line = line->number, .offset = line->offset};
    amp_finding_print(NULL, &f, &at);
    amp_refused(code, 1);
}

static int line_sign(struct signing *s, const struct amp_line *line, struct amp_error *err)
{
    struct amp_error why;
    bool replace = !strcmp(opt.signed_lines, "replace");
    amp_buf_reset(&s->out);
    int64_t now = amp_now_ms();
    int rc = replace ? amp_signer_line(s->signer, line->bytes, now, &s->out, &why)
                     : amp_signer_unsigned_line(s->signer, line->bytes, now, &s->out, &why);
    if (rc == 0)
        return line_out(amp_buf_span(&s->out), err);
    if (why.status == AMP_NO && !strcmp(opt.signed_lines, "pass"))
        return line_out(line->bytes, err);
    if (why.status == AMP_NO || why.status == AMP_DATAERR) {
        line_refuse(line, why.code, why.what);
        return 0;
    }
    *err = why;
    return -1;
}

static int stream_sign(struct signing *s, struct amp_lines *lines, struct amp_error *err)
{
    for (bool end = false;;) {
        struct amp_line line;
        enum amp_line_result got = amp_lines_next(lines, &line);
        int rc = 0;
        if (got == AMP_LINE)
            rc = line_sign(s, &line, err);
        else if (got == AMP_LINE_TOO_LONG)
            line_refuse(&line, AMP_CODE(line_too_long), "the line is longer than 32 MiB");
        else if (end || got == AMP_LINE_END)
            return amp_out_flush(err);
        else if ((rc = input_more(lines, err)) > 0)
            end = true;
        if (rc < 0)
            return -1;
    }
}

static int verb_sign(struct amp_command *c, struct amp_error *err)
{
    struct signing s = {0};
    struct amp_lines lines;
    (void)c;
    if (signer_open(&s.signer, err) < 0)
        return -1;
    amp_note_terminal(NULL);
    amp_lines_init(&lines, amp_json_limits_default.max_bytes);
    amp_buf_init(&s.out, LINE_MAX_OUT);
    int rc = stream_sign(&s, &lines, err);
    amp_buf_release(&s.out);
    amp_lines_release(&lines);
    amp_signer_free(s.signer);
    return rc;
}

/* Verifying */

struct verifying {
    struct amp_trust *trust;
    struct amp_verifier *verifier;
    struct amp_intake intake;
    const char *operators[OPERATORS_MAX]; /* principals */
    uint32_t n_ops;
};

static int operator_add(void *arg, const char *text, struct amp_error *err)
{
    struct verifying *v = arg;
    if (v->n_ops == OPERATORS_MAX)
        return amp_fail(err, AMP_CONFIG, bad_config, "identity.operators has more than %d names",
                        OPERATORS_MAX - 1);
    v->operators[v->n_ops++] = text;
    return 0;
}

/* Why the message may not pass; 0: it may. */
static int message_check(struct verifying *v, const struct amp_view *view, struct amp_error *why)
{
    struct amp_identity who;
    char mem[AMP_SPEAKER_MAX];
    if (view->sig.key.n == 0)
        return opt.allow_unsigned ? 0
                                  : amp_fail(why, AMP_NO, unsigned, "the message is not signed");
    const struct amp_sig sig = {.key = view->sig.key,
                                .alg = view->sig.alg,
                                .time = view->sig.time,
                                .value = view->sig.value};
    struct amp_span from = amp_speaker(view, mem);
    if (from.n == 0)
        return amp_fail(why, AMP_NO, bad_sender, "the message names no sender");
    int rc = amp_verifier_message(v->verifier, &sig, view->message, from, amp_now_ms(), &who, why);
    /* Operators speak for the admin: operator/NAME, and those of identity.operators. */
    bool admin = amp_span_is(from, "admin");
    for (uint32_t i = 0; rc < 0 && amp_code_is(why->code, bad_sender) && admin && i < v->n_ops; i++)
        rc = amp_verifier_message(v->verifier, &sig, view->message, amp_span_str(v->operators[i]),
                                  amp_now_ms(), &who, why);
    return rc;
}

/* Writes {"to":…,"msg":…}, or the bare message of a line without a recipient. */
static int unwrapped_out(const struct amp_view *view, struct amp_error *err)
{
    struct amp_signed s;
    if (view->sig.key.n == 0)
        return line_out(view->line, err);
    if (!amp_signed_split(view->line, &s) || s.to.n == 0)
        return line_out(view->message, err);
    if (amp_out(AMP_SPAN("{\"to\":"), err) < 0 || amp_out(s.to, err) < 0 ||
        amp_out(AMP_SPAN(",\"msg\":"), err) < 0 || amp_out(view->message, err) < 0)
        return -1;
    return amp_out(AMP_SPAN("}\n"), err);
}

static int message_verify(struct verifying *v, const struct amp_view *view, struct amp_error *err)
{
    struct amp_error why;
    if (message_check(v, view, &why) == 0)
        return opt.unwrap ? unwrapped_out(view, err) : line_out(view->line, err);
    if (why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    amp_refused(why.code, 1);
    return amp_intake_refuse(&v->intake, view, &why, err);
}

static int stream_verify(struct verifying *v, struct amp_error *err)
{
    for (;;) {
        struct amp_view view;
        enum amp_intake_got got;
        if (amp_trust_refresh(v->trust, err) < 0)
            return -1;
        while ((got = amp_intake_next(&v->intake, &view, err)) > 0) {
            if (got == AMP_INTAKE_BAD)
                amp_refused(v->intake.bad_code, 1);
            else if (message_verify(v, &view, err) < 0)
                return -1;
        }
        if (got < 0)
            return -1;
        if (v->intake.lines.eof)
            return amp_out_flush(err);
        if (input_more(&v->intake.lines, err) < 0)
            return -1;
    }
}

/* The state's error log gets the refusals. */
static int verify_open(struct verifying *v, struct amp_store *s, struct amp_error *err)
{
    if (operator_add(v, AMP_OPERATOR_ROLE, err) < 0 ||
        amp_config_values(opt.config, opt.state, "identity.operators", operator_add, v, err) < 0 ||
        trust_open(&v->trust, err) < 0 ||
        amp_verifier_new(&(struct amp_verifier_options){.trust = v->trust,
                                                        .skew_ms = opt.skew_ms,
                                                        .max_age_ms = opt.max_age_ms,
                                                        .stop = &amp_stop},
                         &v->verifier, err) < 0 ||
        amp_intake_init(&v->intake, s, "amp-sign", err) < 0)
        return -1;
    v->intake.say = amp_finding_print_error;
    return 0;
}

static int verb_verify(struct amp_command *c, struct amp_error *err)
{
    struct verifying v = {0};
    int rc = verify_open(&v, c->store, err);
    if (rc == 0) {
        amp_note_terminal(NULL);
        rc = stream_verify(&v, err);
    }
    if (v.intake.reader)
        amp_intake_release(&v.intake);
    amp_verifier_free(v.verifier);
    amp_trust_free(v.trust);
    return rc;
}

static const char *const signed_choices[] = {"pass", "replace", "refuse", NULL};

static const struct amp_opt sign_opts[] = {
    SIGNER_OPTS,
    {0, "signed", AMP_OPT_CHOICE, &opt.signed_lines, "WORD",
     .doc = "what to do with lines that are signed already", .choices = signed_choices},
    AMP_OPT_END,
};
static const struct amp_opt verify_opts[] = {
    {0, "unwrap", AMP_OPT_FLAG, &opt.unwrap, NULL, .doc = "write the messages without signatures"},
    {0, "allow-unsigned", AMP_OPT_FLAG, &opt.allow_unsigned, NULL,
     .doc = "pass unsigned messages, too"},
    AMP_OPT_SKEW(opt.skew_ms),
    AMP_OPT_MAX_AGE(opt.max_age_ms),
    AMP_OPT_END,
};

const struct amp_verb filter_verbs[] = {
    {NULL, "", "sign each line of stdin", sign_opts, verb_sign, .check = signer_check,
     .signals = true, .who = AMP_WHO_WITH("--as")},
    {"verify", "", "pass the lines that are signed by their sender", verify_opts, verb_verify,
     .opens = AMP_OPENS_GIVEN, .signals = true},
    {0},
};
