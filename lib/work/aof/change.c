/* Changes: composing the steps. */
#include "work/aof/change.h"
#include "json/record.h"

#include <stdio.h>

#include <amp/json/writer.h>

#include "base/codes.h"

int amp_aof_change_init(struct amp_aof_change *c, struct amp_aof_data *a, const char *actor,
                        int64_t now_ms, struct amp_error *err)
{
    int64_t size;
    *c = (struct amp_aof_change){.data = a, .actor = actor, .now_ms = now_ms};
    amp_buf_init(&c->steps, AMP_AOF_CHANGE_BYTES);
    amp_buf_init(&c->events, AMP_AOF_CHANGE_BYTES);
    if (amp_aof_log_next(a, &c->next_event, err) < 0 || amp_aof_log_size(a, &size, err) < 0)
        return -1;
    return amp_buf_fmt(&c->steps, err, "{\"do\":\"begin\",\"log\":%lld}\n", (long long)size);
}

void amp_aof_change_release(struct amp_aof_change *c)
{
    amp_buf_release(&c->steps);
    amp_buf_release(&c->events);
}

static void step_open(struct amp_aof_change *c, struct amp_jw *w, const char *what)
{
    amp_jw_init(w, &c->steps);
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "do", what);
}

static int step_close(struct amp_aof_change *c, struct amp_jw *w, struct amp_error *err)
{
    amp_jw_close(w, '}');
    c->n++;
    return amp_jw_end_line(w, err);
}

int amp_aof_move(struct amp_aof_change *c, const char *id, uint8_t from, uint8_t to,
                 struct amp_error *err)
{
    struct amp_jw w;
    step_open(c, &w, "move");
    amp_jw_member_text(&w, "id", id);
    amp_jw_member_text(&w, "from", amp_aof_status_name(from));
    amp_jw_member_text(&w, "to", amp_aof_status_name(to));
    return step_close(c, &w, err);
}

int amp_aof_edit(struct amp_aof_change *c, const char *id, uint8_t at, const struct amp_aof_set *v,
                 unsigned n, struct amp_span log, struct amp_error *err)
{
    struct amp_jw w;
    step_open(c, &w, "edit");
    amp_jw_member_text(&w, "id", id);
    amp_jw_member_text(&w, "at", amp_aof_status_name(at));
    amp_jw_member_open(&w, "set", '[');
    for (unsigned i = 0; i < n; i++) {
        amp_jw_open(&w, '[');
        amp_jw_str(&w, amp_span_str(v[i].path));
        if (v[i].value.p)
            amp_jw_str(&w, v[i].value);
        amp_jw_close(&w, ']');
    }
    amp_jw_close(&w, ']');
    amp_jw_some_str(&w, "log", log);
    return step_close(c, &w, err);
}

int amp_aof_put(struct amp_aof_change *c, const char *path, struct amp_span text,
                struct amp_error *err)
{
    struct amp_jw w;
    step_open(c, &w, "put");
    amp_jw_member_text(&w, "path", path);
    amp_jw_member_str(&w, "text", text);
    return step_close(c, &w, err);
}

int amp_aof_put_in(struct amp_aof_change *c, const char *id, uint8_t at, const char *name,
                   struct amp_span text, struct amp_error *err)
{
    char path[AMP_AOF_PATH_MAX];
    struct amp_jw w;
    int n = snprintf(path, sizeof path, "tasks/%s/%s/%s", amp_aof_status_name(at), id, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return amp_fail(err, AMP_CANTCREAT, bad_path, "the path %s is too long", name);
    step_open(c, &w, "put");
    amp_jw_member_text(&w, "path", path);
    amp_jw_member_str(&w, "text", text);
    amp_jw_member_text(&w, "id", id);
    amp_jw_member_text(&w, "at", amp_aof_status_name(at));
    return step_close(c, &w, err);
}

int amp_aof_drop(struct amp_aof_change *c, const char *path, struct amp_error *err)
{
    struct amp_jw w;
    step_open(c, &w, "drop");
    amp_jw_member_text(&w, "path", path);
    return step_close(c, &w, err);
}

int amp_aof_create(struct amp_aof_change *c, const char *id, uint8_t status, struct amp_span text,
                   struct amp_error *err)
{
    struct amp_jw w;
    step_open(c, &w, "create");
    amp_jw_member_text(&w, "id", id);
    amp_jw_member_text(&w, "at", amp_aof_status_name(status));
    amp_jw_member_str(&w, "text", text);
    return step_close(c, &w, err);
}

int amp_aof_event_add(struct amp_aof_change *c, const char *type, struct amp_span task,
                      struct amp_span payload, struct amp_error *err)
{
    struct amp_jw w;
    size_t at = c->events.len;
    amp_jw_init(&w, &c->events);
    amp_jw_open(&w, '{');
    amp_jw_member_uint(&w, "eventId", c->next_event);
    amp_jw_member_text(&w, "type", type);
    amp_rec_time(&w, "timestamp", c->now_ms);
    amp_jw_member_text(&w, "actor", c->actor);
    amp_jw_some_str(&w, "taskId", task);
    amp_jw_member_raw(&w, "payload", payload);
    amp_jw_close(&w, '}');
    if (amp_jw_end_line(&w, err) < 0)
        return -1;
    c->next_event++;
    step_open(c, &w, "event");
    amp_jw_member_str(&w, "line", (struct amp_span){c->events.data + at, c->events.len - at - 1});
    return step_close(c, &w, err);
}
