/* Finds what this machine can enforce, and decides what is enforced. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/words.h"
#include "work/confine/private.h"

AMP_WORDS(level_names, AMP_CONFINE_LEVEL_LIST);

const char *amp_confine_level_name(enum amp_confine_level level)
{
    return level_names[level];
}
AMP_WORDS(lack_texts, AMP_CONFINE_LACK_LIST);
static const char *const demand_names[] = {"require", "best-effort", "off", NULL};

bool amp_confine_demand_find(struct amp_span name, enum amp_confine_demand *out)
{
    int i = amp_word_find(demand_names, name);
    if (i >= 0)
        *out = (enum amp_confine_demand)i;
    return i >= 0;
}

size_t confine_pipe_read(int fd, char *out, size_t size)
{
    size_t n = 0;
    while (n < size - 1) {
        ssize_t got = read(fd, out + n, size - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    out[n] = '\0';
    return n;
}

static bool fact_read(const struct amp_tape *t, struct amp_span name)
{
    uint32_t at = amp_tape_get(t, 0, name);
    return at != AMP_TOK_NONE && t->tok[at].type == AMP_JSON_TRUE;
}

static int means_read(const char *text, size_t n, struct amp_confine_means *m,
                      struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    AMP_BUF struct amp_buf arena = {0};
    struct amp_json_fault fault;
    struct amp_span why = {0};
    int64_t abi = 0;
    amp_tape_init(&t, NULL);
    amp_buf_init(&arena, 4096);
    if (amp_tape_scan(&t, text, n, &fault) < 0)
        return amp_json_fail(err, AMP_UNAVAILABLE, AMP_CODE(helper_failed), "confine --probe",
                             &fault);
    if (t.tok[0].type != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_UNAVAILABLE, helper_failed, "confine --probe: no answer");
    uint32_t at = amp_tape_get(&t, 0, AMP_SPAN("landlock"));
    if (at != AMP_TOK_NONE)
        amp_tok_int(&t, at, &abi);
    at = amp_tape_get(&t, 0, AMP_SPAN("why"));
    if (at != AMP_TOK_NONE && amp_tok_text(&t, at, &arena, &why, err) < 0)
        return -1;
    *m = (struct amp_confine_means){.namespaces = fact_read(&t, AMP_SPAN("namespaces")),
                                    .seccomp = fact_read(&t, AMP_SPAN("seccomp")),
                                    .processes = fact_read(&t, AMP_SPAN("processes")),
                                    .landlock = (int)abi};
    amp_span_copy(why, m->why, sizeof m->why);
    return 0;
}

/* Tries what can be enforced with the helper, once per process. UNAVAILABLE: no helper. */
static int means_probe(const struct amp_confine_means **out, struct amp_error *err)
{
    static struct amp_confine_means means;
    static bool known;
    char helper[PATH_MAX], text[2048];
    int ends[2];
    if (known) {
        *out = &means;
        return 0;
    }
    if (amp_helper_path(CONFINE_HELPER, helper, sizeof helper, err) < 0)
        return -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot make a pipe");
    const char *const argv[] = {helper, "--probe", NULL};
    const struct amp_child_spec spec = {.argv = argv,
                                        .fd_in = -1,
                                        .fd_out = ends[1],
                                        .fd_err = STDERR_FILENO,
                                        .dies_with_us = true};
    struct amp_child child;
    struct amp_child_end end;
    int rc = amp_child_start(&spec, &child, err);
    close(ends[1]);
    size_t n = rc < 0 ? 0 : confine_pipe_read(ends[0], text, sizeof text);
    close(ends[0]);
    if (rc < 0 || amp_child_wait(&child, CONFINE_HELPER_MS, 0, NULL, &end, err) < 0 ||
        means_read(text, n, &means, err) < 0)
        return -1;
    known = true;
    *out = &means;
    return 0;
}

/* The parts that the policy asks for and these means cannot enforce. */
static unsigned lacks_of(const struct amp_confine_policy *p, const struct amp_confine_means *m)
{
    unsigned lacks = 0;
#define LACKS(name, when) lacks |= (when) ? 1u << AMP_LACK_##name : 0
    LACKS(NAMESPACES, !m->namespaces);
    LACKS(LANDLOCK, m->landlock == 0);
    LACKS(SECCOMP, !m->seccomp);
    LACKS(FILES, !m->namespaces && m->landlock == 0);
    LACKS(SIGNALS, !m->namespaces && m->landlock < 6);
    /* The default of the limit is not a demand: uid 0 has none before Linux 6.14. */
    LACKS(PROCESSES,
          p->limits.processes && !m->processes && (p->limits_processes || !m->namespaces));
    switch (p->network) {
    case AMP_NETWORK_DENY_ALL:
        LACKS(NETWORK, !m->namespaces && !m->seccomp);
        break;
    case AMP_NETWORK_EGRESS_RESTRICTED:
        LACKS(NETWORK, !m->namespaces && (m->landlock < 4 || !m->seccomp));
        break;
    case AMP_NETWORK_EGRESS_UNRESTRICTED:
        LACKS(NETWORK, !m->seccomp);
        break;
    default:
        break;
    }
#undef LACKS
    return lacks;
}

int amp_confine_lacks_text(const struct amp_confine_report *r, struct amp_buf *out,
                           struct amp_error *err)
{
    bool comma = false;
    for (int i = 0; i < AMP_LACK_COUNT; i++) {
        if (!(r->lacks & (1u << i)))
            continue;
        if ((comma && amp_buf_str(out, ", ", err) < 0) || amp_buf_str(out, lack_texts[i], err) < 0)
            return -1;
        comma = true;
    }
    return 0;
}

void amp_confine_report_put(const struct amp_confine_report *r, struct amp_jw *w)
{
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "level", amp_confine_level_name(r->level));
    amp_jw_member_text(w, "demand", demand_names[r->demand]);
    amp_jw_member_text(w, "network", amp_network_name(r->network));
    amp_jw_member_open(w, "not_enforced", '[');
    for (int i = 0; i < AMP_LACK_COUNT; i++)
        if (r->lacks & (1u << i))
            amp_jw_str(w, amp_span_str(lack_texts[i]));
    amp_jw_close(w, ']');
    amp_jw_close(w, '}');
}

int amp_confine_choose(enum amp_confine_demand demand, const struct amp_confine_policy *policy,
                       struct amp_confine_report *out, struct amp_error *err)
{
    const struct amp_confine_means *m;
    struct amp_confine_report r = {.demand = demand, .network = policy->network};
    if (demand == AMP_CONFINE_OFF) {
        r.lacks = (1u << AMP_LACK_COUNT) - 1;
        *out = r;
        return 0;
    }
    if (means_probe(&m, err) < 0)
        return -1;
    r.means = *m;
    r.lacks = lacks_of(policy, m);
    r.level = m->landlock == 0 || !m->seccomp ? AMP_LEVEL_NONE
              : m->namespaces                 ? AMP_LEVEL_FULL
                                              : AMP_LEVEL_LANDLOCK;
    if (demand == AMP_CONFINE_REQUIRE && r.lacks) {
        AMP_BUF struct amp_buf text = {0};
        amp_buf_init(&text, 1024);
        if (amp_confine_lacks_text(&r, &text, err) < 0)
            return -1;
        return amp_fail(err, AMP_NOPERM, confinement_unavailable,
                        "this machine cannot enforce: %.*s%s%s; with --best-effort the command "
                        "starts without",
                        AMP_CLIP(amp_buf_span(&text), 220), m->why[0] ? ": " : "", m->why);
    }
    *out = r;
    return 0;
}
