/* hitl-prompt show: prints one question with what is known about it. */
#include <unistd.h>

#include "evidence/evidence.h"
#include "flow/decide/offer.h"
#include "hitl.h"

const struct amp_opt show_opts[] = {AMP_OPT_END};

static int show_print(struct hitl *h, const struct amp_question *q, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_EVIDENCE ev = {0};
    const struct amp_page page = {hitl_width(STDOUT_FILENO), amp_color_of(STDOUT_FILENO), &text,
                                  err, EVIDENCE_MORE};

    amp_buf_init(&text, 8 * AMP_QUESTION_BYTES);
    if (amp_evidence_load(h->store, q, &ev, err) < 0 || evidence_question(q, &ev, &page) < 0 ||
        evidence_answers(q, &page) < 0)
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
