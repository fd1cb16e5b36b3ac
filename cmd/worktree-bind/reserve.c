/* reserve, release, reservations. */
#include "worktree/paths/reserve.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "bind.h"
#include "worktree/person.h"

/* The holder: the agent that calls, or the person's login; --holder names another one. */
static void holder_find(struct amp_reserve_spec *spec, char name[128])
{
    struct amp_agent_caller caller;
    bool agent = amp_agent_calls(environ, &caller);
    snprintf(name, 128, "%s", agent ? caller.name : amp_cli_login("unknown"));
    spec->person = !agent && !opt.holder;
    spec->holder = opt.holder ? opt.holder : name;
}

static int reservation_print(void *ctx, const struct amp_reservation *r, int64_t since_ms,
                             struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    char since[AMP_TIME_MAX];
    struct amp_jw w;
    (void)ctx;
    amp_buf_init(&out, 64 << 10);
    amp_time_format(since_ms, since);
    if (opt.json) {
        amp_jw_init(&w, &out);
        amp_jw_open(&w, '{');
        amp_jw_some_str(&w, "holder", r->holder);
        amp_jw_some_str(&w, "task_id", r->task);
        amp_jw_some_str(&w, "pattern", r->pattern);
        amp_jw_some_str(&w, "since", amp_span_str(since));
        amp_jw_close(&w, '}');
        if (amp_jw_end_line(&w, err) < 0)
            return -1;
    } else if (amp_text_safe(r->holder, 0, &out, err) < 0 || amp_buf_str(&out, "\t", err) < 0 ||
               amp_text_safe(r->task.n ? r->task : AMP_SPAN("-"), 0, &out, err) < 0 ||
               amp_buf_str(&out, "\t", err) < 0 || amp_text_safe(r->pattern, 0, &out, err) < 0 ||
               amp_buf_str(&out, "\n", err) < 0) {
        return -1;
    }
    return amp_out(amp_buf_span(&out), err);
}

/* Syncs the records, then writes the file that the hooks read. */
static int session_publish(struct session *s, struct amp_error *err)
{
    return amp_store_sync(s->store, err) < 0 ||
                   amp_reserve_publish(s->store, s->info.common, err) < 0
               ? -1
               : 0;
}

int verb_reserve(int argc, char **argv)
{
    SESSION s = {0};
    struct amp_error err;
    char name[128];
    struct amp_reserve_spec spec = {
        .task = opt.task, .patterns = (const char *const *)argv, .n = argc, .now_ms = amp_now_ms()};
    if (argc == 0)
        amp_die_usage("at least one GLOB is required");
    holder_find(&spec, name);
    if (amp_person_or_self(environ, spec.holder, "reserve paths for it", &err) ||
        session_open(&s, true, &err) || amp_reserve(s.store, &spec, &err) ||
        session_publish(&s, &err))
        return amp_complain(&err);
    return 0;
}

int verb_release(int argc, char **argv)
{
    SESSION s = {0};
    struct amp_error err;
    char name[128];
    uint32_t n = 0;
    struct amp_reserve_spec spec = {.patterns = (const char *const *)argv, .n = argc};
    if ((argc == 0) != opt.all)
        amp_die_usage("either GLOB... or --all is required");
    holder_find(&spec, name);
    if (amp_person_or_self(environ, spec.holder, "release its paths", &err) ||
        session_open(&s, true, &err) || amp_reserve_release(s.store, &spec, &n, &err) ||
        session_publish(&s, &err))
        return amp_complain(&err);
    return n > 0 || argc == 0 ? 0 : AMP_NO;
}

int verb_reservations(int argc, char **argv)
{
    SESSION s = {0};
    struct amp_error err;
    (void)argc;
    (void)argv;
    if (session_open(&s, true, &err) || session_publish(&s, &err) ||
        amp_reserve_each(s.store, reservation_print, NULL, &err))
        return amp_complain(&err);
    return 0;
}
