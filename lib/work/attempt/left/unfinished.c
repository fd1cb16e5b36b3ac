/* Attempts whose worker was killed: the files that name them, and the commits in their quarantines.
 */
#include "work/attempt/left/unfinished.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/protocol/protocol.h>

#include "base/codes.h"
#include "message/delivery/outbox.h"
#include "work/agent/contract/contract.h"
#include "json/record.h"

#define PLACE      "run/.unfinished" /* no task has this name */
#define RECORD_MAX (64u << 10)

#define FIELD(name) AMP_REC_EVER(CSTR, struct amp_unfinished, #name, name)
static const struct amp_rec_field fields[] = {FIELD(agent),  FIELD(task), FIELD(dir),  FIELD(repo),
                                              FIELD(branch), FIELD(base), FIELD(start)};
AMP_REC_TABLE(unfinished_rec, "the record of an attempt", struct amp_unfinished, fields);

int amp_unfinished_record(const char *state_dir, const struct amp_unfinished *u,
                          char name[PATH_MAX], struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    char path[PATH_MAX + 64];
    const char *last = strrchr(u->dir, '/');

    snprintf(path, sizeof path, "%s/" PLACE, state_dir);
    amp_buf_init(&text, RECORD_MAX);
    if (amp_mkdirs(path, 0700, err) < 0 || amp_rec_write(&unfinished_rec, u, &text, err) < 0)
        return -1;
    int n = snprintf(path, sizeof path, "%s/" PLACE "/%s.%s", state_dir, u->task,
                     last ? last + 1 : u->dir);
    if (n < 0 || n >= PATH_MAX)
        return amp_fail(err, AMP_CANTCREAT, path_too_long, "%s: path too long", state_dir);
    memcpy(name, path, (size_t)n + 1);
    /* Not synced: it is for killed processes; the quarantine is not synced either. */
    AMP_CLOSE int fd = amp_file_open(AT_FDCWD, name, O_WRONLY | O_CREAT | O_EXCL, 0600, err);
    return fd < 0 ? -1 : amp_write_all(fd, amp_buf_span(&text), err);
}

static int error_record(const struct amp_unfinished_spec *s, const char *code, const char *text,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf record = {0};
    const struct amp_line_place at = {.tool = s->tool, .line = 1, .now_ms = amp_now_ms()};
    const struct amp_finding f = {.severity = AMP_SEV_WARNING,
                                  .type = AMP_SPAN(""),
                                  .id = AMP_SPAN(""),
                                  .code = code,
                                  .field = "",
                                  .pointer = "",
                                  .rule = "confinement",
                                  .message = text,
                                  .found = "",
                                  .expected = ""};

    amp_buf_init(&record, 64 << 10);
    return amp_finding_record(&f, &at, &record, err) < 0 ||
                   amp_store_error_log(s->store, amp_buf_span(&record), err) < 0
               ? -1
               : 0;
}

enum settled { SETTLED_ERROR = -1, SETTLED, SETTLED_REFUSED, SETTLED_LATER };

/* The failure of one attempt, as opposed to one of the worker or the store. */
static enum settled failure_note(const struct amp_unfinished_spec *s,
                                 const struct amp_unfinished *u, const char *dir,
                                 const struct amp_error *why, struct amp_error *err)
{
    char text[3 * PATH_MAX];

    if (why->status == AMP_INTERRUPTED || why->status == AMP_UNAVAILABLE ||
        why->status == AMP_INTERNAL || why->status == AMP_TEMPFAIL) {
        *err = *why;
        return SETTLED_ERROR;
    }
    snprintf(text, sizeof text,
             "%.200s: the commits of an attempt of %.200s that was killed are not kept: %s: "
             "%.500s; they are "
             "in %s",
             u->task, u->agent, why->code, why->what, dir);
    s->note("%s", text);
    if (error_record(s, why->code, text, err) < 0)
        return SETTLED_ERROR;
    return why->status == AMP_NOPERM ? SETTLED_REFUSED : SETTLED_LATER;
}

static enum settled commits_keep(const struct amp_unfinished_spec *s,
                                 const struct amp_unfinished *u, const char *dir,
                                 struct amp_error *err)
{
    char email[256], ref[AMP_KEEP_REF_MAX], text[1024];
    struct amp_git_taken t;
    struct amp_error why;

    amp_agent_email(u->agent, email, sizeof email);
    amp_git_keep_ref(u->agent, amp_now_ms(), ref);
    const struct amp_git_take_spec take = {.repo = u->repo,
                                           .dir = dir,
                                           .branch = u->branch,
                                           .base = u->base,
                                           .start = u->start,
                                           .name = u->agent,
                                           .email = email,
                                           .keep = ref,
                                           .limits = s->limits};
    if (amp_git_quarantine_keep(s->git, &take, &t, &why) < 0)
        return failure_note(s, u, dir, &why, err);
    if (t.kept) {
        snprintf(text, sizeof text,
                 "%s: an attempt of %s was killed; its commits are kept as %s (git log %s)",
                 u->task, u->agent, ref, ref);
        s->note("%s", text);
        if (error_record(s, AMP_CODE(attempt_kept), text, err) < 0)
            return SETTLED_ERROR;
    }
    /* Work that the agent left elsewhere stays for people. */
    if (strcmp(t.head, u->branch) == 0 && !t.unfinished)
        amp_git_quarantine_drop(s->git, u->repo, dir, NULL);
    return SETTLED;
}

static enum settled attempt_settle(const struct amp_unfinished_spec *s,
                                   const struct amp_unfinished *u, struct amp_error *err)
{
    char dir[2 * PATH_MAX], head[2 * PATH_MAX + 8];

    snprintf(dir, sizeof dir, "%s/%s/git", s->state_dir, u->dir);
    snprintf(head, sizeof head, "%s/HEAD", dir);
    if (access(head, F_OK) != 0) /* killed before, or after the takeover */
        return SETTLED;
    if (*u->start)
        return commits_keep(s, u, dir, err);
    amp_git_quarantine_drop(s->git, u->repo, dir, NULL);
    return SETTLED;
}

/* Takes the agent's name, unless the caller has it. 1: the agent is at work. */
static int agent_lock(const struct amp_unfinished_spec *s, const char *agent, int *lock,
                      struct amp_error *err)
{
    struct amp_error why;

    if (s->agent)
        return strcmp(s->agent, agent) != 0;
    if (amp_outbox_lock(s->store, agent, 0, lock, &why) == 0) {
        amp_agent_end_leftovers(s->state_dir, agent, false);
        return 0;
    }
    if (amp_code_is(why.code, lock_timeout))
        return 1;
    *err = why;
    return -1;
}

static bool is_path_below(const char *dir)
{
    return strncmp(dir, "run/", 4) == 0 && !strstr(dir, "..");
}

static int file_settle(const struct amp_unfinished_spec *s, int place, const char *name,
                       uint32_t *failed, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0}, mem = {0};
    struct amp_unfinished u;
    struct amp_error why;
    AMP_CLOSE int lock = -1;

    amp_buf_init(&text, RECORD_MAX);
    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_file_read(place, name, RECORD_MAX - 1, &text, &why) < 0)
        return amp_code_is(why.code, no_memory) ? amp_fail_memory(err) : 0; /* gone meanwhile */
    if (amp_rec_parse(&unfinished_rec, amp_buf_span(&text), &mem, &u, &why) < 0 ||
        !amp_id_is_safe(amp_span_str(u.agent)) || !is_path_below(u.dir)) {
        s->note("%s/" PLACE "/%s is not the record of an attempt", s->state_dir, name);
        ++*failed;
        return 0;
    }
    int busy = agent_lock(s, u.agent, &lock, err);
    if (busy)
        return busy < 0 ? -1 : 0;
    switch (attempt_settle(s, &u, err)) {
    case SETTLED_REFUSED:
        ++*failed;
        /* fall through */
    case SETTLED:
        unlinkat(place, name, 0);
        return 0;
    case SETTLED_LATER:
        ++*failed;
        return 0;
    default:
        return -1;
    }
}

int amp_unfinished_settle(const struct amp_unfinished_spec *s, uint32_t *failed,
                          struct amp_error *err)
{
    char path[PATH_MAX + 64];
    struct dirent *e;
    int rc = 0;

    *failed = 0;
    snprintf(path, sizeof path, "%s/" PLACE, s->state_dir);
    AMP_DIR DIR *d = amp_dir_open(AT_FDCWD, path);
    if (!d)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "%s", path);
    while (rc == 0 && (e = readdir(d)))
        if (e->d_name[0] != '.')
            rc = file_settle(s, dirfd(d), e->d_name, failed, err);
    return rc;
}
