/* hitl-prompt show: prints one question with what is known about it. */
#include <unistd.h>

#include "flow/decide/offer.h"
#include "hitl.h"
#include "task/record.h"

const struct amp_opt show_opts[] = {AMP_OPT_END};

static int show_print(struct hitl *h, const struct amp_question *q, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_TASK struct amp_task t = {0};
    bool found = false;

    if (q->about.kind == AMP_SUBJECT_TASK &&
        amp_task_load(h->store, amp_span_str(q->about.task), &t, &found, err) < 0)
        return -1;
    amp_buf_init(&text, AMP_QUESTION_BYTES);
    if (question_text(q, found ? &t : NULL, width_of(STDOUT_FILENO), &text, err) < 0 ||
        amp_buf_fmt(&text, err, "  Answer: %s\n", amp_answer_form(q)) < 0)
        return -1;
    return amp_out(amp_buf_span(&text), err);
}

int hitl_show(int argc, char **argv)
{
    struct hitl h;
    struct amp_question q = {0};
    struct amp_error err;

    if (argc != 1)
        amp_die_usage("show needs one question: show ID");
    int rc = hitl_open("read questions", &h, &err);
    if (rc == 0)
        rc = amp_offer_find(&h.d, argv[0], &q, &err);
    if (rc == 0)
        rc = show_print(&h, &q, &err);
    amp_question_release(&q);
    hitl_close(&h);
    return rc < 0 ? amp_complain(&err) : AMP_OK;
}
