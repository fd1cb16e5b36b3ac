/* What each mode writes for a line. */
#include "validate.h"

static int reports(const struct validate_options *opt, const struct verdict *v, struct result *r,
                   struct amp_error *err)
{
    for (unsigned i = 0; i < v->n_findings; i++)
        if (report_add(opt, v, &v->findings[i], &r->reports, err) < 0)
            return -1;
    return 0;
}

static int effective(const struct verdict *v, struct result *r, struct amp_error *err)
{
    size_t begun = result_begin(r);
    int got = effective_line(v, &r->text, err);
    if (got < 0 || (got == 0 && amp_buf_str(&r->text, "\n", err) < 0))
        return -1;
    return result_end(r, begun, err);
}

int emit_line(const struct validate_options *opt, const struct verdict *v, struct result *r,
              struct amp_error *err)
{
    if (v->n_findings > 0 && reports(opt, v, r, err) < 0)
        return -1;
    if (v->answer == LINE_REFUSED)
        return 0;
    if (opt->effective)
        return effective(v, r, err);
    return result_pass(r, v->chunk, v->whole, err);
}
