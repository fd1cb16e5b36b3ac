/*
 * Resources: the files of an attempt, the task, the inbox; and who wants to know when they change.
 * A change is noticed by a digest of the contents, or of a file's size and times, after a write to
 * the state directory or to the attempt.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "mcp.h"
#include "message/protocol/compose/json.h"
#include "people/story/story.h"

#define FILE_MAX ((size_t)8 << 20)
#define TASK_URI "amp://task/"
#define LISTED   10000 /* tasks in the list of resources */
#define PAGE     200   /* resources in an answer */

static const struct resource {
    const char *uri, *name, *doc, *mime;
    unsigned where;
    const char *variable; /* of the file; NULL: read is used */
    json_t *(*read)(struct mcp *m, struct amp_error *err);
} resources[] = {
    {"amp://task", "task", "The task that you work on, as my_task returns it", "application/json",
     MCP_ATTEMPT, NULL, mcp_attempt_task_read},
    {"amp://attempt/message", "message", "The message that gave you the work", "application/json",
     MCP_ATTEMPT, "AMP_MESSAGE", NULL},
    {"amp://attempt/criteria", "criteria", "The acceptance criteria", "application/json",
     MCP_ATTEMPT, "AMP_CRITERIA", NULL},
    {"amp://attempt/diff", "diff", "The change under review", "text/x-diff", MCP_REVIEWER,
     "AMP_DIFF", NULL},
    {"amp://attempt/context", "context", "The dispatch and the result under review",
     "application/json", MCP_REVIEWER, "AMP_CONTEXT", NULL},
    {"amp://attempt/verdict", "verdict", "The last verdict about this work", "application/json",
     MCP_ATTEMPT, NULL, mcp_attempt_verdict_read},
    {"amp://attempt/work-log", "work log", "What you wrote into the work log", "text/plain",
     MCP_ATTEMPT, "AMP_WORK_LOG", NULL},
    {"amp://attempt/result", "result", "Your answer, once reply has written it", "application/json",
     MCP_ATTEMPT, "AMP_RESULT", NULL},
    {"amp://attempt/kept", "kept", "What your last attempt at this subtask left for you",
     "text/plain", MCP_ATTEMPT, "AMP_KEPT", NULL},
    {"amp://task", "task", "The task that you work on, as my_task returns it", "application/json",
     MCP_STATE, NULL, NULL},
    {"amp://inbox", "inbox", "The messages that wait for you; the tool inbox takes them",
     "application/json", MCP_STATE, NULL, mcp_inbox_list},
};
enum { RESOURCES = sizeof resources / sizeof *resources };

static const struct resource *resource_find(const struct mcp *m, const char *uri)
{
    for (int i = 0; i < RESOURCES; i++)
        if ((resources[i].where & m->where) && strcmp(resources[i].uri, uri) == 0)
            return &resources[i];
    return NULL;
}

static const char *file_of(const struct resource *r)
{
    const char *path = r->variable ? getenv(r->variable) : NULL;

    return path && *path ? path : NULL;
}

/* A file that is not there is no resource, yet. */
static bool is_there(const struct resource *r)
{
    struct stat st;
    const char *path = file_of(r);

    return !r->variable || (path && lstat(path, &st) == 0 && S_ISREG(st.st_mode));
}

/* ---- contents ---- */

/* NO: there is no such resource. */
static json_t *document_read(struct mcp *m, const char *uri, const struct resource *r,
                             struct amp_error *err)
{
    if (r && r->read)
        return r->read(m, err);
    if (m->where & MCP_STATE) {
        if (r)
            return mcp_task_read(m, "", err);
        if (strncmp(uri, TASK_URI, strlen(TASK_URI)) == 0 && uri[strlen(TASK_URI)])
            return mcp_task_read(m, uri + strlen(TASK_URI), err);
    }
    amp_fail(err, AMP_NO, unknown_resource, "there is no resource %.200s", uri);
    return NULL;
}

static json_t *file_contents(const struct resource *r, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    const char *path = file_of(r);

    amp_buf_init(&text, FILE_MAX);
    AMP_CLOSE int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    if (fd < 0) {
        amp_fail(err, AMP_NO, unknown_resource, "%s: there is no such file in this attempt",
                 r->uri);
        return NULL;
    }
    char self[48];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (amp_file_read(AT_FDCWD, self, FILE_MAX, &text, err) < 0)
        return NULL;
    json_t *string = json_stringn(text.data ? text.data : "", text.len);
    if (string) /* valid UTF-8 */
        return json_pack("{s:s, s:s, s:o}", "uri", r->uri, "mimeType", r->mime, "text", string);
    size_t n = sodium_base64_encoded_len(text.len, sodium_base64_VARIANT_ORIGINAL);
    AMP_FREE char *blob = malloc(n);
    if (!blob) {
        amp_fail_memory(err);
        return NULL;
    }
    sodium_bin2base64(blob, n, (const unsigned char *)text.data, text.len,
                      sodium_base64_VARIANT_ORIGINAL);
    return json_pack("{s:s, s:s, s:s}", "uri", r->uri, "mimeType", "application/octet-stream",
                     "blob", blob);
}

static json_t *contents_read(struct mcp *m, const char *uri, struct amp_error *err)
{
    const struct resource *r = resource_find(m, uri);
    AMP_BUF struct amp_buf text = {0};

    if (r && r->variable)
        return file_contents(r, err);
    json_auto_t *document = document_read(m, uri, r, err);
    amp_buf_init(&text, MCP_TEXT_MAX);
    if (!document || amp_json_dump(document, &text, err) < 0)
        return NULL;
    json_t *c = json_pack("{s:s, s:s, s:s%}", "uri", uri, "mimeType", "application/json", "text",
                          text.data, text.len);
    if (!c)
        amp_fail_memory(err);
    return c;
}

void mcp_resources_read(struct mcp *m, const struct mcp_to *to, const json_t *params)
{
    const char *uri = amp_json_str(params, "uri");
    struct amp_error err;

    if (!*uri) {
        mcp_error(m, to, AMP_RPC_PARAMS, NULL, "uri is missing");
        return;
    }
    json_t *contents = contents_read(m, uri, &err);
    if (contents)
        mcp_result(m, to, mcp_cacheable(to, json_pack("{s:[o]}", "contents", contents), 0));
    else if (err.status == AMP_NO)
        mcp_error(m, to, to->modern ? AMP_RPC_PARAMS : AMP_RPC_RESOURCE,
                  json_pack("{s:s, s:s}", "uri", uri, "code", err.code), "%s", err.what);
    else
        mcp_error(m, to, AMP_RPC_INTERNAL, json_pack("{s:s}", "code", err.code), "%s", err.what);
}

/* ---- lists ---- */

static json_t *describe(const char *uri, const char *name, const char *doc, const char *mime)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "uri", uri, "name", name, "description", doc,
                     "mimeType", mime);
}

static int task_list(void *ctx, const struct amp_brief *b, struct amp_error *err)
{
    json_t *list = ctx;
    char uri[AMP_TASK_ID_MAX + sizeof TASK_URI], id[AMP_TASK_ID_MAX];

    (void)err;
    if (!amp_span_copy(b->id, id, sizeof id))
        return 0;
    snprintf(uri, sizeof uri, TASK_URI "%s", id);
    json_t *o = describe(uri, id, "A task of yours", "application/json");
    json_array_append_new(list, o);
    return json_array_size(list) >= LISTED;
}

static json_t *list_make(struct mcp *m, struct amp_error *err)
{
    json_t *list = json_array();
    const struct amp_brief_filter mine = {.agent = m->agent};

    for (int i = 0; i < RESOURCES; i++) {
        const struct resource *r = &resources[i];
        if (resource_find(m, r->uri) == r && is_there(r))
            json_array_append_new(list, describe(r->uri, r->name, r->doc, r->mime));
    }
    if ((m->where & MCP_STATE) &&
        (mcp_store(m, err) < 0 || amp_brief_each(m->store, &mine, task_list, list, err) < 0)) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static void digest_of(const json_t *value, char out[AMP_SHA256_MAX])
{
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, MCP_TEXT_MAX);
    out[0] = '\0';
    if (value && amp_json_dump(value, &text, NULL) == 0)
        amp_sha256_hex(amp_buf_span(&text), out);
}

/* The page that the cursor names: the number of its first resource. NULL: not a cursor of ours. */
static json_t *page_make(const json_t *list, const json_t *cursor)
{
    const char *text = cursor ? json_string_value(cursor) : "0";
    int64_t at = 0;
    char next[24];

    if (!text ||
        amp_num_parse(amp_span_str(text), 0, (int64_t)json_array_size(list), &at, NULL) < 0)
        return NULL;
    json_t *page = json_array(), *result = json_pack("{s:o}", "resources", page);
    size_t i = (size_t)at;
    for (; result && i < json_array_size(list) && i < (size_t)at + PAGE; i++)
        json_array_append(page, json_array_get(list, i));
    snprintf(next, sizeof next, "%zu", i);
    if (result && i < json_array_size(list))
        json_object_set_new(result, "nextCursor", json_string(next));
    return result;
}

void mcp_resources_list(struct mcp *m, const struct mcp_to *to, const json_t *params)
{
    struct amp_error err;
    json_auto_t *list = list_make(m, &err);

    if (!list) {
        mcp_error(m, to, AMP_RPC_INTERNAL, json_pack("{s:s}", "code", err.code), "%s", err.what);
        return;
    }
    digest_of(list, m->list_was);
    json_t *page = page_make(list, json_object_get(params, "cursor"));
    if (page)
        mcp_result(m, to, mcp_cacheable(to, page, 0));
    else
        mcp_error(m, to, AMP_RPC_PARAMS, NULL, "cursor: not one of this list");
}

void mcp_resources_templates(struct mcp *m, const struct mcp_to *to)
{
    json_t *list = json_array();

    if (m->where & MCP_STATE)
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:s, s:s}", "uriTemplate", TASK_URI "{task_id}", "name",
                      "any task", "description",
                      "A task by its id or an unambiguous prefix of it, as my_task returns it",
                      "mimeType", "application/json"));
    mcp_result(m, to, mcp_cacheable(to, json_pack("{s:o}", "resourceTemplates", list), 3600000));
}

/* ---- subscriptions ---- */

/* Computes a digest that changes when the resource does; "": it cannot be read. */
static void resource_digest(struct mcp *m, const char *uri, char out[AMP_SHA256_MAX])
{
    const struct resource *r = resource_find(m, uri);
    struct stat st;
    struct amp_error err;

    out[0] = '\0';
    if (r && r->variable) {
        const char *path = file_of(r);
        if (path && lstat(path, &st) == 0)
            snprintf(out, AMP_SHA256_MAX, "%llx.%llx.%llx.%llx", (unsigned long long)st.st_ino,
                     (unsigned long long)st.st_size, (unsigned long long)st.st_mtim.tv_sec,
                     (unsigned long long)st.st_mtim.tv_nsec);
        return;
    }
    if (r && r->read == mcp_attempt_verdict_read) /* of an earlier attempt: it does not change */
        return;
    json_auto_t *document = document_read(m, uri, r, &err);
    digest_of(document, out);
}

static struct mcp_watch *watch_find(struct mcp *m, const char *uri)
{
    for (int i = 0; i < MCP_URIS_MAX; i++)
        if (m->watches[i].uri && strcmp(m->watches[i].uri, uri) == 0)
            return &m->watches[i];
    return NULL;
}

/* False: there is no place for one more. */
static bool watch_add(struct mcp *m, const char *uri, bool session)
{
    struct mcp_watch *w = watch_find(m, uri);
    struct amp_error err;

    for (int i = 0; !w && i < MCP_URIS_MAX; i++)
        if (!m->watches[i].uri) {
            char *copy = strdup(uri);
            if (!copy)
                return false;
            w = &m->watches[i];
            *w = (struct mcp_watch){.uri = copy};
            resource_digest(m, uri, w->was);
        }
    if (!w)
        return false;
    if (!session)
        w->users++;
    else if (!w->session)
        w->session = true;
    if ((m->where & MCP_ATTEMPT) && m->control)
        mcp_control(m, &err); /* its directory is watched; without a worker nothing changes */
    return true;
}

static void watch_drop(struct mcp_watch *w)
{
    if (w->session || w->users)
        return;
    free(w->uri);
    *w = (struct mcp_watch){0};
}

static bool is_known(struct mcp *m, const char *uri)
{
    return resource_find(m, uri) ||
           ((m->where & MCP_STATE) && strncmp(uri, TASK_URI, strlen(TASK_URI)) == 0 &&
            uri[strlen(TASK_URI)]);
}

void mcp_resources_subscribe(struct mcp *m, const struct mcp_to *to, const json_t *params, bool on)
{
    const char *uri = amp_json_str(params, "uri");
    struct mcp_watch *w = watch_find(m, uri);

    if (!*uri) {
        mcp_error(m, to, AMP_RPC_PARAMS, NULL, "uri is missing");
        return;
    }
    if (on && !is_known(m, uri)) {
        mcp_error(m, to, AMP_RPC_RESOURCE, json_pack("{s:s}", "uri", uri),
                  "there is no resource %.200s", uri);
        return;
    }
    if (on && !watch_add(m, uri, true)) {
        mcp_error(m, to, AMP_RPC_INTERNAL, NULL, "%d resources are subscribed (the limit)",
                  MCP_URIS_MAX);
        return;
    }
    if (!on && w) {
        w->session = false;
        watch_drop(w);
    }
    mcp_result(m, to, json_object());
}

/* ---- subscriptions/listen ---- */

static json_t *subscription_meta(const struct mcp_call *stream)
{
    return json_pack("{s:o}", "io.modelcontextprotocol/subscriptionId",
                     json_loads(stream->to.id, JSON_DECODE_ANY, NULL));
}

void mcp_resources_listen(struct mcp *m, const struct mcp_to *to, const json_t *params)
{
    const json_t *filter = json_object_get(params, "notifications");
    json_t *u;
    json_t *uris = json_array(), *agreed = json_object();
    struct amp_error err;
    size_t i;

    if (!json_is_object(filter) || to->batch >= 0) {
        json_decref(uris);
        json_decref(agreed);
        mcp_error(m, to, AMP_RPC_PARAMS, NULL, "notifications is missing, or is not an object");
        return;
    }
    struct mcp_call *stream = mcp_call_new(m, to, &err);
    if (!stream) {
        json_decref(uris);
        json_decref(agreed);
        mcp_error(m, to, AMP_RPC_INTERNAL, NULL, "%s", err.what);
        return;
    }
    json_array_foreach (json_object_get(filter, "resourceSubscriptions"), i, u) {
        const char *uri = json_string_value(u);
        if (!uri || stream->n_uris == MCP_URIS_MAX || !is_known(m, uri) ||
            !watch_add(m, uri, false) || !(stream->uris[stream->n_uris] = strdup(uri)))
            continue;
        stream->n_uris++;
        json_array_append(uris, u);
    }
    stream->list_changed = json_is_true(json_object_get(filter, "resourcesListChanged"));
    if (stream->list_changed)
        json_object_set_new(agreed, "resourcesListChanged", json_true());
    if (stream->n_uris)
        json_object_set(agreed, "resourceSubscriptions", uris);
    json_decref(uris);
    mcp_notify(
        m, "notifications/subscriptions/acknowledged",
        json_pack("{s:o, s:o}", "_meta", subscription_meta(stream), "notifications", agreed));
}

void mcp_listen_free(struct mcp_call *call)
{
    for (uint32_t i = 0; i < call->n_uris; i++) {
        struct mcp_watch *w = watch_find(call->m, call->uris[i]);
        if (w) {
            w->users--;
            watch_drop(w);
        }
        free(call->uris[i]);
    }
    call->n_uris = 0;
}

/* ---- telling ---- */

static bool wants_list(const struct mcp *m)
{
    for (size_t i = 0; i < MCP_CALLS_MAX; i++)
        if (m->calls[i] && m->calls[i]->list_changed)
            return true;
    return m->initialized && m->list_was[0];
}

bool mcp_resources_watched(const struct mcp *m)
{
    for (int i = 0; i < MCP_URIS_MAX; i++)
        if (m->watches[i].uri)
            return true;
    return wants_list(m);
}

static void uri_tell(struct mcp *m, const struct mcp_watch *w)
{
    if (w->session)
        mcp_notify(m, "notifications/resources/updated", json_pack("{s:s}", "uri", w->uri));
    for (size_t i = 0; i < MCP_CALLS_MAX; i++) {
        const struct mcp_call *s = m->calls[i];
        for (uint32_t k = 0; s && !s->tool && k < s->n_uris; k++)
            if (strcmp(s->uris[k], w->uri) == 0)
                mcp_notify(m, "notifications/resources/updated",
                           json_pack("{s:o, s:s}", "_meta", subscription_meta(s), "uri", w->uri));
    }
}

static void list_tell(struct mcp *m)
{
    char now[AMP_SHA256_MAX];
    struct amp_error err;
    json_auto_t *list = list_make(m, &err);

    digest_of(list, now);
    bool changed = list && m->list_was[0] && strcmp(now, m->list_was) != 0;
    if (list)
        memcpy(m->list_was, now, sizeof now);
    if (!changed)
        return;
    if (m->initialized)
        mcp_notify(m, "notifications/resources/list_changed", NULL);
    for (size_t i = 0; i < MCP_CALLS_MAX; i++)
        if (m->calls[i] && m->calls[i]->list_changed)
            mcp_notify(m, "notifications/resources/list_changed",
                       json_pack("{s:o}", "_meta", subscription_meta(m->calls[i])));
}

void mcp_resources_look(struct mcp *m)
{
    char now[AMP_SHA256_MAX];

    for (int i = 0; i < MCP_URIS_MAX; i++) {
        struct mcp_watch *w = &m->watches[i];
        if (!w->uri)
            continue;
        resource_digest(m, w->uri, now);
        if (strcmp(now, w->was) != 0) {
            memcpy(w->was, now, sizeof now);
            uri_tell(m, w);
        }
    }
    if (wants_list(m))
        list_tell(m);
}

void mcp_resources_close(struct mcp *m)
{
    for (int i = 0; i < MCP_URIS_MAX; i++)
        free(m->watches[i].uri);
}
