/* hitl-prompt answer: answers one question from the command line. */
#include <unistd.h>

#include "flow/decide/offer.h"
#include "hitl.h"

static const char *commit;

const struct amp_opt answer_opts[] = {
    {0, "commit", AMP_OPT_STRING, &commit, "COMMIT", "the commit of a rollback"},
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
        return -1;
    default:
        return amp_decider_flush(&h->d, STDOUT_FILENO, err);
    }
}

int hitl_answer(int argc, char **argv)
{
    struct hitl h;
    struct amp_error err;

    if (argc < 2)
        amp_die_usage("answer needs a question and an action: answer ID ACTION [NOTE]");
    int rc = hitl_open("answer escalations", &h, &err);
    if (rc == 0)
        rc = answer_make(&h, argc, argv, &err);
    hitl_close(&h);
    return rc < 0 ? amp_complain(&err) : AMP_OK;
}
