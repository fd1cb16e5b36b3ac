/* hitl-prompt answer: answers one question from the command line. */
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "flow/decide/answer/signed.h"
#include "hitl.h"

static const char *commit, *file;

const struct amp_opt answer_opts[] = {
    {0, "commit", AMP_OPT_STRING, &commit, "COMMIT", "the commit of a rollback"},
    {0, "file", AMP_OPT_PATH, &file, "FILE",
     "take the answer from FILE (- is standard input): JSON, a form, or a signed answer"},
    AMP_OPT_END,
};

/* The words behind the action, joined by blanks. */
static int note_join(int argc, char **argv, struct amp_buf *out, struct amp_error *err)
{
    amp_buf_init(out, AMP_QUESTION_BYTES);
    for (int i = 0; i < argc; i++)
        if (amp_buf_fmt(out, err, "%s%s", i ? " " : "", argv[i]) < 0)
            return -1;
    return 0;
}

/* A terminal is no place for a decision: it stays in the outbox, which the prompt writes. */
static int decision_write(struct hitl *h, struct amp_error *err)
{
    if (!isatty(STDOUT_FILENO))
        return amp_decider_flush(&h->d, STDOUT_FILENO, err);
    if (amp_store_sync(h->store, err) < 0)
        return -1;
    amp_note("the decision is recorded: the hitl-prompt that runs writes it, or the next one "
             "(./loop.sh)");
    return 0;
}

/* Before a late answer is refused, the fallback decided: that is written. */
static int refused_flush(struct hitl *h)
{
    struct amp_error err;

    if (!isatty(STDOUT_FILENO) && amp_decider_flush(&h->d, STDOUT_FILENO, &err) < 0)
        amp_complain(&err);
    return -1;
}

static int answer_make(struct hitl *h, int argc, char **argv, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    uint32_t left = 0;

    if (note_join(argc - 1, argv + 1, &line, err) < 0)
        return -1;
    const struct amp_offer offer = {
        .name = argv[0],
        .answer = {.action = line.data, .op = hitl_operator, .commit = commit},
        .how = hitl_author.how,
        .key = hitl_author.key,
        .principal = hitl_author.principal,
        .channel = AMP_CHANNEL_COMMAND,
        .left = &left,
    };
    switch (amp_offer_make(&h->d, &offer, err)) {
    case AMP_OFFERED_COUNTED:
        amp_note("%s is counted; %u more must agree", argv[1], left);
        return amp_store_sync(h->store, err);
    case AMP_OFFERED_FAILED:
    case AMP_OFFERED_REFUSED:
        return refused_flush(h);
    default:
        return decision_write(h, err);
    }
}

/* An answer that came by any road. */
static int file_take(struct hitl *h, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_answer_from from = {
        .channel = AMP_CHANNEL_FILE, .where = file, .login = hitl_operator};
    struct amp_answer_about about;

    amp_buf_init(&text, AMP_ANSWER_TEXT_MAX);
    if (hitl_token_answers(&from.tokens, err) < 0 ||
        amp_file_read_any(file, AMP_ANSWER_TEXT_MAX - 1, &text, err) < 0)
        return -1;
    enum amp_offered rc = amp_answer_take(&h->d, amp_buf_span(&text), &from, &about, err);
    if (rc == AMP_OFFERED_FAILED || rc == AMP_OFFERED_REFUSED)
        return refused_flush(h);
    amp_note("%s: %s by %s", about.question, about.action, about.op);
    return decision_write(h, err);
}

int hitl_answer(int argc, char **argv)
{
    struct hitl h;
    struct amp_error err;

    if (file ? argc > 0 || commit : argc < 2)
        amp_die_usage(file ? "--file has the complete answer"
                           : "answer needs a question and an action: answer ID ACTION [NOTE]");
    int rc = hitl_open("answer escalations", &h, &err);
    if (rc == 0)
        rc = file ? file_take(&h, &err) : answer_make(&h, argc, argv, &err);
    hitl_close(&h);
    return rc < 0 ? amp_complain(&err) : AMP_OK;
}
