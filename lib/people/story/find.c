/* The task that a person means, and the directories of its attempts. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/protocol/amp/compose.h"
#include "people/story/story.h"

#define ATTEMPTS_MAX 10000

/* ---- names ---- */

struct search {
    const char *prefix;
    char id[AMP_TASK_ID_MAX], other[AMP_TASK_ID_MAX];
    unsigned n;
    long number; /* the number that the id ends with; -1: any */
};

static int id_compare(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct search *s = ctx;
    char text[AMP_TASK_ID_MAX];

    (void)rec, (void)err;
    if (!amp_span_copy(id, text, sizeof text) || strcmp(text, AMP_TASK_NONE) == 0)
        return 0;
    const char *digits = strrchr(text, '-');
    if (s->number >= 0 && (!digits || strtol(digits + 1, NULL, 10) != s->number))
        return 0;
    if (s->n++)
        memcpy(s->other, s->id, sizeof s->other);
    memcpy(s->id, text, sizeof s->id);
    return 0;
}

static bool is_number(const char *name)
{
    size_t n = strspn(name, "0123456789");

    return n > 0 && n < 10 && !name[n];
}

int amp_story_find(struct amp_store *s, const char *name, char id[AMP_TASK_ID_MAX],
                   struct amp_error *err)
{
    struct search found = {.number = -1};
    char prefix[AMP_TASK_ID_MAX];
    struct amp_store_rec rec;
    bool number = is_number(name);

    if (!*name || strlen(name) >= sizeof prefix - 2 || !amp_id_is_safe(amp_span_str(name)))
        return amp_fail(err, AMP_NO, unknown_task, "\"%.100s\" is not the id of a task", name);
    if (number)
        found.number = strtol(name, NULL, 10);
    /* "2026-007" and "t-2026-007" mean T-2026-007. */
    if (number)
        snprintf(prefix, sizeof prefix, "T");
    else if (*name >= '0' && *name <= '9')
        snprintf(prefix, sizeof prefix, "T-%s", name);
    else
        snprintf(prefix, sizeof prefix, "%c%s", *name == 't' ? 'T' : *name, name + 1);
    if (amp_store_get(s, AMP_KEY(AMP_TASK_KIND, amp_span_str(prefix)), &rec, err) < 0)
        return -1;
    if (rec.found) {
        snprintf(id, AMP_TASK_ID_MAX, "%s", prefix);
        return 0;
    }
    if (amp_store_each_of(s, AMP_TASK_KIND, amp_span_str(prefix), id_compare, &found, err) < 0)
        return -1;
    if (found.n == 0)
        return amp_fail(err, AMP_NO, unknown_task,
                        "no task \"%.100s\" in %s (task-dispatch list --all shows all)", name,
                        amp_store_dir(s));
    /* If tasks of several years have this number, take the newest. */
    if (found.n > 1 && !number)
        return amp_fail(err, AMP_NO, ambiguous_task,
                        "\"%.100s\" is the beginning of %u tasks, such as %s and %s", name, found.n,
                        found.other, found.id);
    snprintf(id, AMP_TASK_ID_MAX, "%s", found.id);
    return 0;
}

/* ---- attempts ---- */

/* Splits AGENT-SUBTASK-NUMBER-RANDOM; the agent's name may have dashes. */
static bool name_split(char *name, char **subtask, int64_t *number)
{
    char *part[3];

    for (int i = 0; i < 3; i++) {
        part[i] = strrchr(name, '-');
        if (!part[i] || !part[i][1])
            return false;
        *part[i]++ = '\0';
    }
    *subtask = part[2];
    *number = strtoll(part[1], NULL, 10);
    return *name && strlen(part[0]) == 8 && *number > 0;
}

static int attempt_add(struct amp_story *st, const char *dir, const char *entry,
                       struct amp_error *err)
{
    char path[PATH_MAX], name[256], *subtask;
    struct stat at;
    int64_t number;

    if (strlen(entry) >= sizeof name || strncmp(entry, "kept-", 5) == 0)
        return 0;
    snprintf(name, sizeof name, "%s", entry);
    int n = snprintf(path, sizeof path, "%s/%s", dir, entry);
    if (n < 0 || (size_t)n >= sizeof path || !name_split(name, &subtask, &number) ||
        lstat(path, &at) < 0 || !S_ISDIR(at.st_mode))
        return 0;
    if (amp_grow(&st->attempts, &st->cap_attempts, st->n_attempts, sizeof *st->attempts, err) < 0)
        return -1;
    struct amp_story_attempt *a = &st->attempts[st->n_attempts++];
    *a = (struct amp_story_attempt){.dir = strdup(path),
                                    .agent = strdup(name),
                                    .subtask = strdup(subtask),
                                    .number = number,
                                    .at_ms = (int64_t)at.st_ctim.tv_sec * 1000 +
                                             at.st_ctim.tv_nsec / 1000000};
    /* The message file is written once, when the attempt begins. */
    n = snprintf(path, sizeof path, "%s/%s/message.json", dir, entry);
    if (n > 0 && (size_t)n < sizeof path && lstat(path, &at) == 0)
        a->at_ms = (int64_t)at.st_mtim.tv_sec * 1000 + at.st_mtim.tv_nsec / 1000000;
    /* Only a reviewer gets a diff. */
    n = snprintf(path, sizeof path, "%s/%s/diff.patch", dir, entry);
    a->review = n > 0 && (size_t)n < sizeof path && lstat(path, &at) == 0;
    return a->dir && a->agent && a->subtask ? 0 : amp_fail_memory(err);
}

static int compare_attempts(const void *a, const void *b)
{
    const struct amp_story_attempt *x = a, *y = b;

    return x->at_ms != y->at_ms ? (x->at_ms < y->at_ms ? -1 : 1) : strcmp(x->dir, y->dir);
}

int amp_story_attempts(const char *state, const char *id, struct amp_story *st,
                       struct amp_error *err)
{
    char dir[PATH_MAX];
    struct dirent *e;
    int rc = 0;

    if (!amp_id_is_safe(amp_span_str(id)))
        return 0;
    int n = snprintf(dir, sizeof dir, "%s/run/%s", state, id);
    DIR *d = n > 0 && (size_t)n < sizeof dir ? opendir(dir) : NULL;
    while (rc == 0 && d && st->n_attempts < ATTEMPTS_MAX && (e = readdir(d)))
        rc = attempt_add(st, dir, e->d_name, err);
    if (d)
        closedir(d);
    if (st->n_attempts)
        qsort(st->attempts, st->n_attempts, sizeof *st->attempts, compare_attempts);
    return rc;
}

void amp_story_log(const struct amp_store *s, const char *id, char *out, size_t size)
{
    AMP_STORY st = {0};
    struct amp_error ignored;

    *out = '\0';
    if (amp_story_attempts(amp_store_dir(s), id, &st, &ignored) == 0 && st.n_attempts)
        snprintf(out, size, "%s", st.attempts[st.n_attempts - 1].dir);
}
