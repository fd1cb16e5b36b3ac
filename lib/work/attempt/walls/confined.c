/* The walls around one attempt: quarantine, places, proxy, takeover. */
#include "work/attempt/walls/confined.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/pipe.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/process/runner.h"
#include "work/attempt/left/forgeries.h"
#include "work/attempt/left/unfinished.h"
#include "work/confine/effective.h"

#define PLACES_MAX 29
#define OWN_TOOLS  4
#define PLACES_OWN (5 + OWN_TOOLS) /* besides object directories */

/* The directory that an agent keeps between its attempts at a subtask. */
#define KEPT_BYTES   ((int64_t)256 << 20)
#define KEPT_ENTRIES 20000

bool amp_worker_reaches_repository(const struct amp_worker *w)
{
    const struct amp_confine_report *r = w->opt->confine;
    char **more = w->opt->policy ? w->opt->policy->grants[AMP_GRANT_WRITE] : NULL;

    return !amp_worker_confines(w) || r->level == AMP_LEVEL_NONE ||
           (r->lacks & 1u << AMP_LACK_FILES) || (more && *more);
}

int amp_confined_text(const struct amp_worker *w, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw jw;

    if (!w->opt->confine)
        return amp_buf_str(out, "{\"level\":\"none\"}", err);
    amp_jw_init(&jw, out);
    amp_confine_report_put(w->opt->confine, &jw);
    return amp_jw_end(&jw, err);
}

int amp_confined_note(const struct amp_worker *w, struct amp_buf *out, struct amp_error *err)
{
    return amp_buf_str(out, "confinement: ", err) < 0 || amp_confined_text(w, out, err) < 0 ||
                   amp_buf_add(out, "", 1, err) < 0
               ? -1
               : 0;
}

int amp_confined_record(struct amp_worker *w, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0}, record = {0};
    bool all = amp_worker_confines(w) && !w->opt->confine->lacks;
    const struct amp_line_place at = {.tool = w->opt->tool, .line = 1, .now_ms = amp_now_ms()};

    amp_buf_init(&text, 8192);
    amp_buf_init(&record, 32768);
    if (amp_buf_fmt(&text, err, "the agent %s: ", w->opt->agent) < 0 ||
        amp_confined_text(w, &text, err) < 0 || amp_buf_add(&text, "", 1, err) < 0)
        return -1;
    const struct amp_finding f = {.severity = AMP_SEV_WARNING,
                                  .type = AMP_SPAN(""),
                                  .id = AMP_SPAN(""),
                                  .code = all ? AMP_CODE(confined) : AMP_CODE(not_confined),
                                  .field = "",
                                  .pointer = "",
                                  .rule = "confinement",
                                  .message = text.data,
                                  .found = "",
                                  .expected = ""};
    return amp_finding_record(&f, &at, &record, err) < 0 ||
                   amp_store_error_log(w->store, amp_buf_span(&record), err) < 0
               ? -1
               : 0;
}

static int directory_make(const char *dir, const char *name, char *out, size_t size,
                          struct amp_error *err)
{
    snprintf(out, size, "%s/%s", dir, name);
    return mkdir(out, 0700) == 0 ? 0 : amp_fail_errno(err, AMP_CANTCREAT, "%s", out);
}

/* The text that covers the worktree's .git file. */
static int cover_make(struct amp_assignment *k, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, 2 * PATH_MAX);
    snprintf(k->walls.cover, sizeof k->walls.cover, "%s/dotgit", k->files.dir);
    return amp_buf_fmt(&text, err, "gitdir: %s\n", k->files.git) < 0
               ? -1
               : amp_file_write_atomic(AT_FDCWD, k->walls.cover, 0400, amp_buf_span(&text), err);
}

int amp_confined_prepare(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    char email[256];

    if (!amp_worker_confines(w) || w->opt->confine->level == AMP_LEVEL_NONE)
        return 0;
    if (!*k->repo)
        return directory_make(k->files.dir, "home", k->walls.home, sizeof k->walls.home, err);
    amp_agent_email(w->opt->agent, email, sizeof email);
    const struct amp_git_quarantine_spec spec = {k->repo, k->worktree, k->files.git, w->opt->agent,
                                                 email};
    const struct amp_unfinished record = {.agent = w->opt->agent,
                                          .task = k->task,
                                          .dir = k->files.dir + strlen(w->state_dir) + 1,
                                          .repo = k->repo,
                                          .branch = k->branch,
                                          .base = k->base,
                                          .start = k->start};
    if (amp_unfinished_record(w->state_dir, &record, k->walls.record, err) < 0 ||
        amp_git_quarantine_make(w->git, &spec, &k->walls.quarantine, err) < 0 ||
        cover_make(k, err) < 0 ||
        directory_make(k->files.dir, "home", k->walls.home, sizeof k->walls.home, err) < 0)
        return -1;
    k->walls.quarantined = true;
    return 0;
}

/* ---- the start ---- */

const char *amp_confined_home(const struct amp_worker *w)
{
    for (char *const *e = w->opt->envp; e && *e; e++)
        if (strncmp(*e, "HOME=", 5) == 0)
            return *e + 5;
    return NULL;
}

bool amp_confined_helpers(char out[PATH_MAX])
{
    char helper[PATH_MAX];

    if (amp_helper_path("agent-claude", helper, sizeof helper, NULL) < 0 || !realpath(helper, out))
        return false;
    *strrchr(out, '/') = '\0';
    return true;
}

/* Adds the tools of ours that agents use, seen from the directory of this program: the MCP server
 * and the hook before tool calls, and the settings for them. A missing one is left out. */
static size_t tools_add(char found[][PATH_MAX], struct amp_confine_place *places)
{
    static const char *const tools[OWN_TOOLS] = {"amp-mcp", "hitl-prompt", "../share/amp/SKILL.md",
                                                 "../share/amp/agents"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    size_t n = 0;
    ssize_t got = readlink("/proc/self/exe", self, sizeof self - 1);

    if (got <= 0)
        return 0;
    self[got] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < OWN_TOOLS; i++) {
        snprintf(path, sizeof path, "%s/%s", self, tools[i]);
        if (realpath(path, found[n])) {
            places[n] = (struct amp_confine_place){.path = found[n]};
            n++;
        }
    }
    return n;
}

int amp_confined_start(struct amp_worker *w, struct amp_assignment *k,
                       const struct amp_child_spec *spec, struct amp_child *child,
                       struct amp_error *err)
{
    AMP_FREE struct amp_confine_place *places = NULL;
    char tools[OWN_TOOLS][PATH_MAX];
    char real[PATH_MAX], libexec[PATH_MAX], dot_git[PATH_MAX + 8];
    size_t n = 0;
    const struct amp_confine_report *report = w->opt->confine;
    const struct amp_git_quarantine *q = &k->walls.quarantine;

    if (!amp_worker_confines(w))
        return amp_child_start(spec, child, err);
    AMP_CLOSE int log = -1;
    AMP_CLEANUP(amp_access_release) struct amp_confine_policy policy = *w->opt->policy;
    if (amp_access_restrict(k->v, &policy, err) < 0)
        return -1;
    if (policy.network == AMP_NETWORK_EGRESS_RESTRICTED &&
        ((log = amp_gate_log(w->state_dir, err)) < 0 ||
         amp_gate_start(&policy, w->opt->agent, log, STDERR_FILENO, &k->walls.gate, err) < 0))
        return -1;
    if (!(places = calloc(PLACES_MAX + k->n_places, sizeof *places)))
        return amp_fail_memory(err);
    places[n++] = (struct amp_confine_place){.path = k->files.dir, .write = true};
    places[n++] = (struct amp_confine_place){.path = k->files.kept_dir, .write = true};
    if (q->n_objects > PLACES_MAX - PLACES_OWN)
        return amp_fail(err, AMP_CONFIG, quarantine_refused, "%s: more than %d object directories",
                        k->repo, PLACES_MAX - PLACES_OWN);
    for (uint32_t i = 0; i < q->n_objects; i++)
        places[n++] = (struct amp_confine_place){.path = q->objects[i]};
    snprintf(dot_git, sizeof dot_git, "%s/.git", k->worktree);
    if (k->walls.quarantined && report->level == AMP_LEVEL_FULL)
        places[n++] = (struct amp_confine_place){.path = k->walls.cover, .at = dot_git};
    /* The adapters, our tools, and the command itself, if they are somewhere else than the
     * toolchain. */
    if (amp_confined_helpers(libexec))
        places[n++] = (struct amp_confine_place){.path = libexec};
    n += tools_add(tools, places + n);
    if (spec->argv[0][0] == '/' && realpath(spec->argv[0], real))
        places[n++] = (struct amp_confine_place){.path = real};
    for (size_t i = 0; i < k->n_places; i++)
        places[n++] = k->places[i];
    const char *const hidden[] = {w->state_dir, NULL};
    const struct amp_confine c = {
        .policy = &policy,
        .home = amp_confined_home(w),
        .hidden = hidden,
        .report = report,
        .worktree = k->worktree,
        .places = places,
        .n_places = n,
        .scratch = *k->walls.home ? k->walls.home : NULL,
        .gate_fd = k->walls.gate.fd,
    };
    return amp_confine_start(&c, spec, child, err);
}

/* ---- the takeover ---- */

/* Its commits are in the repository. A failure leaves a directory behind. */
static void quarantine_drop(struct amp_worker *w, struct amp_assignment *k)
{
    struct amp_error e;

    if (amp_git_quarantine_drop(w->git, k->repo, k->files.git, &e) < 0)
        w->opt->note("%s", e.what);
    rmdir(k->walls.home); /* if it was not used */
}

/* A failure leaves it as it is: it is tried again after the next attempt. */
static void kept_bound(struct amp_worker *w, const struct amp_assignment *k)
{
    struct amp_error e;
    int rc = amp_confine_scratch_bound(k->files.kept_dir, KEPT_BYTES, KEPT_ENTRIES, &e);

    if (rc > 0)
        w->opt->note("%s had more than %lld MiB or %d files: it was emptied, and the next attempt "
                     "begins without it",
                     k->files.kept_dir, (long long)(KEPT_BYTES >> 20), KEPT_ENTRIES);
    else if (rc < 0)
        w->opt->note("%s: %s", k->files.kept_dir, e.what);
}

int amp_confined_finish(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    char email[256], ref[AMP_KEEP_REF_MAX];
    struct amp_taking *t = &k->taking;

    amp_gate_end(&k->walls.gate);
    kept_bound(w, k);
    if (!k->walls.quarantined) {
        if (*k->walls.home)
            rmdir(k->walls.home); /* if it was not used */
        return 0;
    }
    if (!*k->start) { /* a review: nothing is taken over */
        quarantine_drop(w, k);
        unlink(k->walls.record);
        return 0;
    }
    amp_agent_email(w->opt->agent, email, sizeof email);
    amp_git_keep_ref(w->opt->agent, amp_now_ms(), ref);
    const struct amp_git_take_spec spec = {
        .repo = k->repo,
        .worktree = k->worktree,
        .dir = k->files.git,
        .branch = k->branch,
        .base = k->base,
        .start = k->start,
        .name = w->opt->agent,
        .email = email,
        .keep = ref,
        .limits = w->opt->take,
    };
    if (amp_git_quarantine_take(w->git, &spec, &t->taken, &t->error) == 0) {
        t->done = true;
        /* Work that the agent left elsewhere stays for people. */
        if (strcmp(t->taken.head, k->branch) == 0 && !t->taken.unfinished)
            quarantine_drop(w, k);
        unlink(k->walls.record);
        if (t->taken.kept)
            w->opt->note("%s: the agent replaced commits; they are kept as %s", k->branch, ref);
        return 0;
    }
    if (t->error.status == AMP_INTERNAL || t->error.status == AMP_UNAVAILABLE ||
        t->error.status == AMP_INTERRUPTED) {
        *err = t->error;
        return -1;
    }
    unlink(k->walls.record);
    return amp_forgeries_untaken(w, k, err);
}
