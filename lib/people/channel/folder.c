/*
 * A folder of questions and answers, with the discipline of a Maildir: a file is written in tmp and
 * appears by a rename, and an answer is claimed by a rename, so one process takes it.
 *
 *   questions/tmp new cur     open questions in new, as forms to fill in; settled ones in cur, with
 *                             who decided
 *   answers/tmp new cur       answers in new; taken ones in cur
 *   answers/refused           refused ones, each with FILE.reason
 *
 * A person answers by saving the form in questions/new, or by moving a file into answers/new. The
 * folder and its directories belong to the user and nobody else may write them; a file that belongs
 * to somebody else, or is a link, is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/base/pipe.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "people/answer/text/signed.h"
#include "people/channel/private.h"

#define FORM_MAX  (256u << 10)
#define NAME_SIZE 128
#define END_LINE  "# end of the form"
#define CLAIMS    100 /* files that are taken in one step */

enum dir { Q_TMP, Q_NEW, Q_CUR, A_TMP, A_NEW, A_CUR, A_REFUSED, DIRS };
static const char *const dir_names[DIRS] = {
    [Q_TMP] = "questions/tmp",      [Q_NEW] = "questions/new", [Q_CUR] = "questions/cur",
    [A_TMP] = "answers/tmp",        [A_NEW] = "answers/new",   [A_CUR] = "answers/cur",
    [A_REFUSED] = "answers/refused"};

struct folder {
    char *path;
    int dirs[DIRS];
    int watch;        /* inotify */
    bool look;        /* files may be there */
    bool signed_only; /* files of the user do not prove who answers */
    const char *login;
};

/* ---- opening ---- */

static int directory_check(int fd, const char *path, const char *name, struct amp_error *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s/%s", path, name);
    if (st.st_uid != geteuid() || st.st_mode & 022)
        return amp_fail(
            err, AMP_NOPERM, folder_permissions,
            "%s/%s belongs to another user, or others may write it: answers there prove "
            "nothing (chmod go-w)",
            path, name);
    return 0;
}

static int directory_open(int base, const char *path, const char *name, struct amp_error *err)
{
    if (mkdirat(base, name, 0700) < 0 && errno != EEXIST)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s/%s", path, name);
    int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s/%s", path, name);
    if (directory_check(fd, path, name, err) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int folder_open(struct folder *f, struct amp_error *err)
{
    if (amp_mkdirs(f->path, 0700, err) < 0)
        return -1;
    AMP_CLOSE int base = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (base < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", f->path);
    if (directory_check(base, f->path, ".", err) < 0)
        return -1;
    AMP_CLOSE int questions = directory_open(base, f->path, "questions", err);
    AMP_CLOSE int answers = questions < 0 ? -1 : directory_open(base, f->path, "answers", err);
    if (answers < 0)
        return -1;
    for (int i = 0; i < DIRS; i++)
        if ((f->dirs[i] = directory_open(base, f->path, dir_names[i], err)) < 0)
            return -1;
    f->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (f->watch < 0)
        return amp_fail_errno(err, AMP_UNAVAILABLE, "cannot watch %s", f->path);
    for (int i = Q_NEW; i <= A_NEW; i += A_NEW - Q_NEW) {
        char dir[64];
        snprintf(dir, sizeof dir, "/proc/self/fd/%d", f->dirs[i]);
        if (inotify_add_watch(f->watch, dir, IN_CLOSE_WRITE | IN_MOVED_TO) < 0)
            return amp_fail_errno(err, AMP_UNAVAILABLE, "cannot watch %s/%s", f->path,
                                  dir_names[i]);
    }
    return 0;
}

/* ---- questions ---- */

/* The file of a question: its key, as far as it is safe in a name, and a digest of the key. The
 * message does not count, because it may be unknown when the question is settled. */
static void question_name(const struct channel_question *a, char out[NAME_SIZE])
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char digest[AMP_SHA256_MAX], safe[64];
    size_t n = 0;

    amp_sha256_hex(amp_span_str(a->q.key), digest);
    for (const char *p = a->q.key; *p && n < sizeof safe - 1; p++)
        safe[n++] = strchr(plain, *p) ? *p : '-';
    safe[n] = '\0';
    snprintf(out, NAME_SIZE, "%s.%.16s.txt", safe, digest);
}

static int form_make(const struct delivery *d, const char *refused, struct amp_buf *out,
                     struct amp_error *err)
{
    const struct amp_facts *f = d->facts;
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, FORM_MAX);
    if (amp_buf_fmt(out, err,
                    "# Fill in \"answer\" and save this file. Possible answers: %s\n"
                    "question: %s\ndigest: %s\nanswer:\nnote:\n#\n# %s\n# arrived: %s\n",
                    amp_facts_get(f, AMP_FACT_answers), amp_facts_get(f, AMP_FACT_question),
                    amp_facts_get(f, AMP_FACT_digest), amp_facts_get(f, AMP_FACT_title),
                    amp_facts_get(f, AMP_FACT_arrived)) < 0 ||
        (refused && amp_buf_fmt(out, err, "# The last answer was refused: %s\n", refused) < 0) ||
        amp_buf_str(&text, amp_facts_get(f, AMP_FACT_text), err) < 0 ||
        amp_buf_str(&text, amp_facts_get(f, AMP_FACT_evidence), err) < 0)
        return -1;
    /* Labels are the program's own lines, the lines of others begin with "|": both are ignored. */
    for (struct amp_span rest = amp_buf_span(&text); rest.n;) {
        const char *lf = memchr(rest.p, '\n', rest.n);
        size_t n = lf ? (size_t)(lf - rest.p) + 1 : rest.n;
        if (amp_buf_fmt(out, err, "%s%.*s", *rest.p == '|' ? "" : "# ", (int)n, rest.p) < 0)
            return -1;
        rest = (struct amp_span){rest.p + n, rest.n - n};
    }
    return amp_buf_str(out, END_LINE "\n", err);
}

/* Writes a file in a tmp directory and renames it; both directories are synced. */
static int file_put(struct folder *f, enum dir tmp, enum dir to, const char *name,
                    struct amp_span text, struct amp_error *err)
{
    char unique[NAME_SIZE + 64], id[AMP_UUID_MAX];

    amp_uuid4(id);
    snprintf(unique, sizeof unique, "%s.%s", name, id);
    AMP_CLOSE int fd =
        openat(f->dirs[tmp], unique, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s/%s/%s", f->path, dir_names[tmp], unique);
    if (amp_write_all(fd, text, err) == 0 && fsync(fd) == 0 &&
        renameat(f->dirs[tmp], unique, f->dirs[to], name) == 0 && fsync(f->dirs[to]) == 0)
        return 0;
    amp_fail_errno(err, AMP_IOERR, "%s/%s/%s", f->path, dir_names[to], name);
    unlinkat(f->dirs[tmp], unique, 0);
    return -1;
}

static int question_put(struct folder *f, struct delivery *d, const char *refused,
                        struct amp_error *err)
{
    char name[NAME_SIZE];
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, 2 * FORM_MAX);
    question_name(d->asked, name);
    if (form_make(d, refused, &text, err) < 0)
        return -1;
    delivery_shows(d, amp_buf_span(&text));
    return file_put(f, Q_TMP, Q_NEW, name, amp_buf_span(&text), err);
}

/* Moves the form to cur, with what was decided before it. */
static int question_settle(struct folder *f, const struct delivery *d, struct amp_error *err)
{
    char name[NAME_SIZE], head[1024];
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, 4 * FORM_MAX);
    question_name(d->asked, name);
    snprintf(head, sizeof head, "Settled: %s by %s, through %s",
             amp_facts_get(d->facts, AMP_FACT_decision), amp_facts_get(d->facts, AMP_FACT_operator),
             amp_facts_get(d->facts, AMP_FACT_channel));
    if (amp_fact_mark("# ", head, &text, err) < 0)
        return -1;
    AMP_CLOSE int fd = openat(f->dirs[Q_NEW], name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        while (text.len < 2 * FORM_MAX &&
               amp_read_more(fd, &text, 65536, name, err) == AMP_READ_BYTES)
            continue;
    if (file_put(f, Q_TMP, Q_CUR, name, amp_buf_span(&text), err) < 0)
        return -1;
    if (unlinkat(f->dirs[Q_NEW], name, 0) < 0 && errno != ENOENT)
        return amp_fail_errno(err, AMP_IOERR, "%s/%s/%s", f->path, dir_names[Q_NEW], name);
    return 0;
}

static void folder_tell(struct channel *c, struct delivery *d)
{
    struct folder *f = c->own;
    struct amp_error err;
    int rc =
        d->at == DELIVERY_SENDING ? question_put(f, d, NULL, &err) : question_settle(f, d, &err);

    delivery_ended(d, rc < 0 ? &err : NULL);
}

/* ---- answers ---- */

/* Reads a file that the folder's user wrote. 1: *out has it; 0: refused, *why says why. */
static int answer_read(int fd, struct amp_buf *out, struct amp_error *why)
{
    struct stat st;
    int rc = AMP_READ_BYTES;

    if (fd < 0) { /* ELOOP: a link */
        amp_fail_errno(why, AMP_NOPERM, "the answer's file cannot be opened");
        return 0;
    }
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1 ||
        st.st_mode & 022) {
        amp_fail(why, AMP_NOPERM, folder_permissions,
                 "the answer's file belongs to another user, others may write it, or it is not a "
                 "regular file of its own");
        return 0;
    }
    while (rc == AMP_READ_BYTES && out->len <= AMP_ANSWER_TEXT_MAX)
        rc = amp_read_more(fd, out, 65536, "the answer", why);
    if (rc == AMP_READ_BYTES || rc == AMP_READ_FAILED) {
        amp_fail(why, AMP_DATAERR, bad_answer,
                 "the answer's file cannot be read, or is longer "
                 "than %d bytes",
                 AMP_ANSWER_TEXT_MAX);
        return 0;
    }
    return 1;
}

/* Whether the form is complete and has an answer: editors write a file in parts. */
static bool form_is_filled(struct amp_span text)
{
    static const char answer[] = "\nanswer:";
    const char *at = text.n ? memmem(text.p, text.n, answer, sizeof answer - 1) : NULL;

    if (!at || !memmem(text.p, text.n, END_LINE, sizeof END_LINE - 1))
        return false;
    for (at += sizeof answer - 1; at < text.p + text.n && *at != '\n'; at++)
        if (!strchr(" \t\r", *at))
            return true;
    return false;
}

static void refusal_keep(struct folder *f, const char *name, const struct amp_error *why)
{
    char reason[NAME_MAX + 16];
    AMP_BUF struct amp_buf text = {0};
    struct amp_error err;

    amp_buf_init(&text, 4096);
    snprintf(reason, sizeof reason, "%.*s.reason", NAME_MAX - 8, name);
    if (renameat(f->dirs[A_CUR], name, f->dirs[A_REFUSED], name) == 0 &&
        amp_buf_fmt(&text, &err, "%s: %s\n", why->code, why->what) == 0)
        (void)file_put(f, A_TMP, A_REFUSED, reason, amp_buf_span(&text), &err);
}

/* Takes a claimed file; its name in cur is unique. The rest of refused files is kept with the
 * reason. */
static int answer_take(struct channel *c, const char *name, struct amp_span text,
                       struct amp_error *why)
{
    struct folder *f = c->own;
    const struct amp_answer_from from = {.channel = AMP_CHANNEL_FOLDER,
                                         .where = c->name,
                                         .login = f->signed_only ? NULL : f->login,
                                         .tokens = c->all->tokens};
    enum amp_offered rc = channel_answer(c, text, &from, why);

    if (rc == AMP_OFFERED_REFUSED)
        refusal_keep(f, name, why);
    return rc == AMP_OFFERED_REFUSED ? 1 : rc == AMP_OFFERED_FAILED ? -1 : 0;
}

/* The name of a claimed file in cur: nothing there is replaced. */
static int claim_make(struct folder *f, enum dir from, const char *name, char out[NAME_MAX + 1])
{
    char id[AMP_UUID_MAX];

    amp_uuid4(id);
    snprintf(out, NAME_MAX + 1, "%.*s.%s", NAME_MAX - AMP_UUID_MAX - 1, name, id);
    return renameat(f->dirs[from], name, f->dirs[A_CUR], out);
}

/* A file in answers/new. */
static void answer_claim(struct channel *c, const char *name)
{
    struct folder *f = c->own;
    char claimed[NAME_MAX + 1];
    struct amp_error why = {0};
    const struct amp_answer_from from = {.channel = AMP_CHANNEL_FOLDER, .where = c->name};
    const struct amp_answer_about about = {0};
    AMP_BUF struct amp_buf text = {0};

    if (claim_make(f, A_NEW, name, claimed) < 0)
        return; /* another process has it */
    amp_buf_init(&text, AMP_ANSWER_TEXT_MAX + 65536);
    AMP_CLOSE int fd =
        openat(f->dirs[A_CUR], claimed, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (answer_read(fd, &text, &why) > 0) {
        answer_take(c, claimed, amp_buf_span(&text), &why);
        return;
    }
    amp_answer_refused(c->all->opt.decider, &from, &about, &why);
    refusal_keep(f, claimed, &why);
}

/* The delivery of the question whose form has this name. */
static struct delivery *form_delivery(struct channel *c, const char *name)
{
    char own[NAME_SIZE];

    for (size_t i = 0; i < c->all->n_asked; i++) {
        struct channel_question *a = c->all->asked[i];
        if (!a->open)
            continue;
        question_name(a, own);
        if (strcmp(own, name) == 0)
            return &a->deliveries[c - c->all->v];
    }
    return NULL;
}

/* Puts a fresh form in the place of one with a refused answer. */
static void form_again(struct channel *c, const char *name, const struct amp_error *why)
{
    struct delivery *d = form_delivery(c, name);
    struct amp_facts facts;
    struct amp_error err;
    char reason[512];

    if (!d || !d->asked->q.message)
        return;
    amp_facts_init(&facts);
    d->facts = &facts;
    snprintf(reason, sizeof reason, "%s: %s", why->code, why->what);
    reason[strcspn(reason, "\r\n")] = '\0';
    if (amp_facts_of(&facts, &d->asked->q, &err) < 0 ||
        amp_evidence_texts(c->all->opt.decider, &d->asked->q, &d->asked->evidence, &err) < 0 ||
        amp_facts_evidence(&facts, &d->asked->evidence, &err) < 0 ||
        question_put(c->own, d, reason, &err) < 0)
        channel_failed(c, &err);
    d->facts = NULL;
    amp_facts_release(&facts);
}

/* A file in questions/new, which is a form that we wrote or that a person has saved. */
static void form_claim(struct channel *c, const char *name)
{
    struct folder *f = c->own;
    char claimed[NAME_MAX + 1];
    struct amp_error why = {0};
    AMP_BUF struct amp_buf text = {0};
    AMP_CLOSE int fd = openat(f->dirs[Q_NEW], name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    amp_buf_init(&text, AMP_ANSWER_TEXT_MAX + 65536);
    /* Backup files of editors, and forms without an answer, are left alone. */
    if (fd < 0 || !form_delivery(c, name) || answer_read(fd, &text, &why) <= 0 ||
        !form_is_filled(amp_buf_span(&text)) || claim_make(f, Q_NEW, name, claimed) < 0)
        return;
    if (answer_take(c, claimed, amp_buf_span(&text), &why) != 0)
        form_again(c, name, &why);
}

static int directory_take(struct channel *c, enum dir which,
                          void (*take)(struct channel *c, const char *name), struct amp_error *err)
{
    struct folder *f = c->own;
    AMP_DIR DIR *dir = amp_dir_open(f->dirs[which], ".");
    const struct dirent *e;
    int n = 0;

    if (!dir)
        return amp_fail_errno(err, AMP_IOERR, "%s/%s", f->path, dir_names[which]);
    while (n < CLAIMS && (e = readdir(dir)))
        if (e->d_name[0] != '.') {
            take(c, e->d_name);
            n++;
        }
    f->look |= n == CLAIMS && which == A_NEW;
    return 0;
}

static void events_drain(struct folder *f)
{
    _Alignas(struct inotify_event) char b[4096];

    while (read(f->watch, b, sizeof b) > 0)
        f->look = true;
}

static int folder_step(struct channel *c, struct amp_error *err)
{
    struct folder *f = c->own;
    struct amp_error why;

    events_drain(f);
    /* Before the first look at the questions no form is known. */
    if (!f->look || !c->all->scanned)
        return 0;
    f->look = false;
    if (directory_take(c, A_NEW, answer_claim, &why) < 0 ||
        directory_take(c, Q_NEW, form_claim, &why) < 0)
        channel_failed(c, &why);
    return 0;
}

static void folder_watch(struct channel *c, struct channel_wait *w)
{
    struct folder *f = c->own;

    channel_wait_fd(w, f->watch, POLLIN);
    if (f->look && c->all->scanned)
        channel_wait_within(w, 0);
}

static void folder_close(struct channel *c)
{
    struct folder *f = c->own;

    if (!f)
        return;
    for (int i = 0; i < DIRS; i++)
        if (f->dirs[i] >= 0)
            close(f->dirs[i]);
    if (f->watch >= 0)
        close(f->watch);
    free(f->path);
    free(f);
}

static const struct channel_ops folder_ops = {folder_tell, folder_watch, folder_step, folder_close};

int folder_add(struct amp_channels *all, const json_t *config, struct amp_error *err)
{
    struct channel *c;
    struct folder *f;
    const char *path =
        json_is_string(config) ? json_string_value(config) : amp_json_str(config, "path");

    if (!config)
        return 0;
    if (channel_add(all, AMP_CHANNEL_FOLDER, "folder", NULL, &folder_ops, &c, err) < 0)
        return -1;
    if (!(f = calloc(1, sizeof *f)))
        return amp_fail_memory(err);
    c->own = f;
    for (int i = 0; i < DIRS; i++)
        f->dirs[i] = -1;
    f->watch = -1;
    f->look = true;
    f->login = all->opt.decider->people.login;
    f->signed_only = json_is_true(json_object_get(config, "signed"));
    bool home = strncmp(path, "~/", 2) == 0;
    if (path[0] != '/' && !(home && all->opt.home))
        return amp_fail(err, AMP_CONFIG, bad_config,
                        "hitl.channels.folder: a path from the root is needed");
    if (asprintf(&f->path, "%s%s", home ? all->opt.home : "", path + home) < 0) {
        f->path = NULL;
        return amp_fail_memory(err);
    }
    return folder_open(f, err);
}
