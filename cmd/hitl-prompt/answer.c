/* hitl-prompt answer: answers one question from the command line. */
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "hitl.h"
#include "people/answer/text/signed.h"

#define LINE_MAX_BYTES (2 * AMP_QUESTION_BYTES + 1)

static const char *commit, *file;
static bool print;

static const struct amp_opt answer_opts[] = {
    {0, "commit", AMP_OPT_STRING, &commit, "COMMIT", "the commit of a rollback"},
    {0, "file", AMP_OPT_PATH, &file, "FILE",
     "take the answer from FILE (- is standard input): JSON, a form, or a signed answer"},
    {0, "print", AMP_OPT_FLAG, &print, NULL,
     .doc = "also write the decision to standard output, for a pipe"},
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

/* A decision stays in the outbox, which the hitl-prompt that runs writes, or the next one; with
 * --print this process writes it, too. */
static int decision_write(struct hitl *h, const char *question, struct amp_span line,
                          struct amp_error *err)
{
    if (!print)
        amp_note("%s: the decision is recorded: what waits for it goes on, or does so when it "
                 "starts",
                 question);
    else if (amp_decider_flush(&h->d, STDOUT_FILENO, err) < 0 ||
             (h->d.dirty && amp_out(line, err) < 0)) /* another process has the outbox */
        return -1;
    return amp_store_sync(h->store, err);
}

/* Before a late answer is refused, the fallback decided: that is written. */
static int refused_flush(struct hitl *h)
{
    struct amp_error err;

    if (print && amp_decider_flush(&h->d, STDOUT_FILENO, &err) < 0)
        amp_complain(&err);
    return -1;
}

/* Tells the person what became of the answer, or writes the decision. */
static int offer_report(struct hitl *h, enum amp_offered rc, const char *question,
                        const char *action, const struct amp_buf *line, uint32_t left,
                        struct amp_error *err)
{
    switch (rc) {
    case AMP_OFFERED_COUNTED:
        amp_note("%s is counted; %u more must agree", action, left);
        return amp_store_sync(h->store, err);
    case AMP_OFFERED_DEFERRED:
        amp_note("%s is put off; it is asked again", question);
        return amp_store_sync(h->store, err);
    case AMP_OFFERED_DECIDED:
        return decision_write(h, question, amp_buf_span(line), err);
    default:
        return refused_flush(h);
    }
}

static int answer_make(struct hitl *h, int argc, char **argv, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0}, sent = {.max = LINE_MAX_BYTES};
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
        .line = &sent,
    };
    enum amp_offered rc = amp_offer_make(&h->d, &offer, err);
    return offer_report(h, rc, argv[0], argv[1], &sent, left, err);
}

/* An answer that came by any road. */
static int file_take(struct hitl *h, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0}, sent = {.max = LINE_MAX_BYTES};
    uint32_t left = 0;
    struct amp_answer_from from = {.channel = AMP_CHANNEL_FILE,
                                   .where = file,
                                   .login = hitl_operator,
                                   .left = &left,
                                   .line = &sent};
    struct amp_answer_about about;

    amp_buf_init(&text, AMP_ANSWER_TEXT_MAX);
    if (hitl_token_answers(&from.tokens, err) < 0 ||
        amp_file_read_any(file, AMP_ANSWER_TEXT_MAX - 1, &text, err) < 0)
        return -1;
    enum amp_offered rc = amp_answer_take(&h->d, amp_buf_span(&text), &from, &about, err);
    if (rc == AMP_OFFERED_DECIDED)
        amp_note("%s: %s by %s", about.question, about.action, about.op);
    return offer_report(h, rc, about.question, about.action, &sent, left, err);
}

static int answer_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (file ? c->argc > 0 || commit : c->argc < 2)
        amp_die_usage(file ? "--file has the complete answer"
                           : "answer needs a question and an action: answer ID ACTION [NOTE]");
    return 0;
}

static int hitl_answer(struct amp_command *c, struct amp_error *err)
{
    return file ? file_take(c->own, err) : answer_make(c->own, c->argc, c->argv, err);
}

const struct amp_verb answer_verbs[] = {
    {"answer", "[ID ACTION [NOTE…]]", "answer a question", answer_opts, hitl_answer,
     .check = answer_check, .opens = HITL_OPENS_QUESTIONS, .act = "answer escalations",
     .signals = true, .finds_state = true, .values = "question", .who = AMP_WHO_PERSON},
    {0},
};
