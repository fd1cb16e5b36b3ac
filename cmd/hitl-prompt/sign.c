/* hitl-prompt sign: signs an answer with the operator's SSH key. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "hitl.h"
#include "message/protocol/compose/json.h"
#include "people/answer/text/answer.h"
#include "people/answer/text/signed.h"

static const char *question;
static int64_t expires_ms = 86400000;

static const struct amp_opt sign_opts[] = {
    {0, "question", AMP_OPT_PATH, &question, "FILE",
     "the question as a channel told it (JSON), instead of ID in the state directory"},
    {0, "expires", AMP_OPT_DURATION, &expires_ms, "TIME", "how long the answer can be used", 1000,
     30LL * 86400000},
    AMP_OPT_END,
};

static int answer_print(struct amp_signer *signer, const char *key, const char *digest, int argc,
                        char **argv, struct amp_error *err)
{
    AMP_BUF struct amp_buf note = {0}, text = {0};

    amp_buf_init(&note, AMP_ANSWER_TEXT_MAX / 4);
    amp_buf_init(&text, AMP_ANSWER_TEXT_MAX * 2);
    for (int i = 0; i < argc; i++)
        if (amp_buf_fmt(&note, err, "%s%s", i ? " " : "", argv[i]) < 0)
            return -1;
    const struct amp_signed_answer a = {.question = key,
                                        .digest = digest,
                                        .action = note.data,
                                        .now_ms = amp_now_ms(),
                                        .expires_ms = amp_now_ms() + expires_ms};
    return amp_signed_answer_write(signer, &a, &text, err) < 0 ||
                   amp_out(amp_buf_span(&text), err) < 0
               ? -1
               : amp_out_flush(err);
}

/* With the state: the answer must be one to this question. */
static int state_sign(struct hitl *h, int argc, char **argv, struct amp_error *err)
{
    struct amp_question q = {0};
    char digest[AMP_QUESTION_DIGEST_MAX];
    struct amp_operator_answer a;
    AMP_FREE char *word = strdup(argv[1]);
    struct amp_signer *signer = h->opt.ids ? amp_identities_signer(h->opt.ids) : NULL;

    if (!word)
        return amp_fail_memory(err);
    if (!signer)
        return amp_fail(err, AMP_CONFIG, unsigned,
                        "identities are off: there is no key to sign with");
    int rc = amp_offer_find(&h->d, argv[0], &q, err);
    if (rc == 0 && !amp_answer_parse(&q, word, &a))
        rc = amp_fail(err, AMP_DATAERR, bad_answer, "the answer is not %s", amp_answer_words(&q));
    if (rc == 0)
        rc = amp_question_digest(&q, digest, err);
    if (rc == 0)
        rc = answer_print(signer, q.key, digest, argc - 1, argv + 1, err);
    amp_question_release(&q);
    return rc;
}

/* Without the state, on another machine, the signature covers what the file says. */
static int file_sign(int argc, char **argv, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    __attribute__((cleanup(amp_auto_signer))) struct amp_signer *signer = NULL;

    amp_buf_init(&text, AMP_ANSWER_TEXT_MAX);
    if (!hitl_key)
        return amp_fail(err, AMP_USAGE, no_key, "--question needs --key FILE");
    if (amp_file_read_any(question, AMP_ANSWER_TEXT_MAX - 1, &text, err) < 0 ||
        amp_signer_of_file(hitl_key, getenv("SSH_AUTH_SOCK"), &signer, err) < 0)
        return -1;
    json_auto_t *j = amp_json_load(amp_buf_span(&text), err);
    const char *key = amp_json_str(j, "question"), *digest = amp_json_str(j, "digest");
    if (!j)
        return -1;
    if (!*key || strlen(digest) != AMP_QUESTION_DIGEST_MAX - 1)
        return amp_fail(err, AMP_DATAERR, bad_question,
                        "%s has no question and digest, as hitl-prompt tells them", question);
    return answer_print(signer, key, digest, argc, argv, err);
}

static int sign_check(struct amp_command *c, struct amp_error *err)
{
    if (c->argc < (question ? 1 : 2))
        amp_die_usage("sign needs a question and an action: sign ID ACTION [NOTE…], or sign "
                      "--question FILE ACTION [NOTE…]");
    c->opens = question ? AMP_OPENS_NOTHING : HITL_OPENS_QUESTIONS;
    c->act = question ? "sign answers" : "answer escalations";
    return 0;
}

static int hitl_sign(struct amp_command *c, struct amp_error *err)
{
    return question ? file_sign(c->argc, c->argv, err) : state_sign(c->own, c->argc, c->argv, err);
}

const struct amp_verb sign_verbs[] = {
    {"sign", "[ID] ACTION [NOTE…]", "sign an answer with an SSH key", sign_opts, hitl_sign,
     .check = sign_check, .signals = true, .values = "question", .who = AMP_WHO_PERSON},
    {0},
};
