/* task-dispatch verify: checks whether a commit was approved, by the state directory or
 * by a bundle. */
#include "work/loop/review/verify.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "cli/rows.h"
#include "people/proof/bundle.h"
#include "verbs.h"

static const char *repo = ".", *bundle;
static bool quiet, no_coordinator, by_note, self_signed, json;

static const struct amp_opt task_verify_opts[] = {
    AMP_OPT_REPO(repo),
    {0, "bundle", AMP_OPT_PATH, &bundle, "FILE",
     "verify a bundle of export; - for standard input. No state directory is needed"},
    {0, "note", AMP_OPT_FLAG, &by_note, NULL,
     "verify the bundle in the commit's note (" TASK_NOTES ")"},
    {0, "self-signed", AMP_OPT_FLAG, &self_signed, NULL,
     "check only that a bundle is consistent, with the keys in it, which its maker chose"},
    {0, "no-coordinator", AMP_OPT_FLAG, &no_coordinator, NULL,
     "also accept verdicts on tasks without a coordinator"},
    {'q', "quiet", AMP_OPT_FLAG, &quiet, NULL, "print nothing"},
    {0, "json", AMP_OPT_FLAG, &json, NULL, "print one JSON object per commit on standard output"},
    AMP_OPT_END,
};

/* The keys that a bundle was checked with. */
struct relied {
    const char *on;          /* a file or a state directory; NULL: the keys in the bundle */
    const char *coordinator; /* the key that signed the bundle */
};

/* The result for a commit, schemas/records/verified.json. commit "": a bundle without a COMMIT.
 * relied NULL: by the state directory. */
static int verdict_print(const struct amp_verified *v, bool approved, const struct relied *relied,
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = 65536};
    struct amp_jw w;

    amp_jw_init(&w, &line);
    amp_jw_open(&w, '{');
    amp_jw_member_bool(&w, "approved", approved && !(relied && self_signed));
    amp_jw_some_str(&w, "commit", amp_span_str(v->commit));
    amp_jw_some_str(&w, "tree", amp_span_str(v->tree));
    amp_jw_some_str(&w, "task", amp_span_str(v->task));
    amp_jw_some_str(&w, "subtask", amp_span_str(v->subtask));
    amp_jw_some_str(&w, "verdict", amp_span_str(v->verdict));
    amp_jw_some_str(&w, "executor", amp_span_str(v->who.executor));
    amp_jw_some_str(&w, "reviewer", amp_span_str(v->who.reviewer));
    amp_jw_some_str(&w, "operator", amp_span_str(v->who.operator_));
    if (!approved)
        amp_jw_some_str(&w, "why", amp_span_str(v->why));
    if (relied && self_signed)
        amp_jw_member_bool(&w, "consistent", approved);
    if (relied) {
        amp_jw_some_str(&w, "relied_on", amp_span_str(relied->on));
        amp_jw_some_str(&w, "coordinator", amp_span_str(relied->coordinator));
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&line), err);
}

static void who_print(const char *commit, const char *task, const char *more,
                      const struct amp_proof_who *who)
{
    if (quiet || json)
        return;
    amp_note("%.12s %s: task %s%s%s", commit,
             self_signed ? "has a consistent proof" : "is approved", task, *more ? ", " : "", more);
    if (*who->executor)
        amp_note("%.12s: result of %s, verdict of %s%s%s", commit, who->executor, who->reviewer,
                 *who->operator_ ? ", decision of " : "", who->operator_);
}

/* ---- by a bundle ---- */

static int text_read(const struct task_bundle *how, struct amp_git *git, const char *commit,
                     struct amp_buf *out, struct amp_error *err)
{
    const struct amp_git_note note = {how->repo, commit, TASK_NOTES};
    if (!how->note)
        return amp_file_read_any(how->file, AMP_BUNDLE_MAX, out, err);
    int rc = amp_git_note_read(git, &note, out, err);
    return rc == 0  ? amp_fail(err, AMP_NO, no_note, "%s has no note under %s", commit, TASK_NOTES)
           : rc < 0 ? -1
                    : 0;
}

/* The keys in the bundle itself. */
static int own_keys_open(const struct amp_bundle *b, struct amp_identity_cli *how,
                         const struct amp_identity_tool *who, struct amp_identities **ids,
                         struct amp_error *err)
{
    char path[] = "/tmp/amp-bundle-XXXXXX";
    AMP_CLOSE int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", path);
    how->allowed_signers = path;
    int rc = amp_write_all(fd, amp_buf_span(&b->signers), err);
    if (rc == 0)
        rc = amp_identity_cli_open(how, who, ids, err);
    unlink(path);
    return rc;
}

/* Opens the keys to trust: of --allowed-signers or of the state directory; with --self-signed those
 * of the bundle. Anybody can make a bundle with keys of his own, so nothing else selects them. */
static int trust_open(const struct task_bundle *with, const struct amp_bundle *b,
                      struct amp_identities **ids, const char **relied, struct amp_error *err)
{
    struct amp_identity_cli how = amp_tool_identity;
    struct amp_identity_tool who = {
        .state = amp_tool_state, .config = amp_tool_config, .quiet = true};
    how.require = "all";
    *relied = NULL;
    if (with->self_signed) {
        who.state = NULL;
        return own_keys_open(b, &how, &who, ids, err);
    }
    if (how.allowed_signers) {
        who.state = NULL;
        *relied = how.allowed_signers;
        return amp_identity_cli_open(&how, &who, ids, err);
    }
    if (amp_tool_state && *amp_tool_state && access(amp_tool_state, F_OK) == 0) {
        *relied = amp_tool_state;
        return amp_identity_cli_open(&how, &who, ids, err);
    }
    return amp_fail(err, AMP_CONFIG, no_allowed_signers,
                    "no trusted keys: give --allowed-signers FILE; --self-signed checks only that "
                    "the bundle is consistent");
}

/* True if the bundle's landing made the commit as the merge of the approved one. */
static int merge_check(const struct task_bundle *how, struct amp_identities *ids,
                       struct amp_git *git, const struct amp_proof *p,
                       const struct amp_git_look *merge, struct amp_verified *out,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_git_look approved;
    struct amp_landing l;

    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_landing_parse(amp_buf_span(&p->line[AMP_PROOF_landing]), &mem, &l, err) < 0 ||
        amp_git_look(git, how->repo, p->approved, &approved, err) < 0)
        return -1;
    int rc = amp_proof_merge(ids, &l, merge, &approved, out->why, err);
    if (rc > 0 && (!amp_span_copy(l.branch, out->branch, sizeof out->branch) ||
                   !amp_span_copy(l.from, out->from, sizeof out->from)))
        return amp_fail(err, AMP_DATAERR, bad_bundle, "a landing has too long names");
    return rc;
}

/* Finds the proof of the commit, or of the one that it merges, and its place in the bundle. 1, 0 or
 * -1. Neither the tree nor the result's name of the commit counts: other commits have the same
 * tree, and a result may abbreviate the name. */
static int proof_find(const struct task_bundle *how, const struct amp_bundle *b,
                      struct amp_identities *ids, struct amp_git *git,
                      const struct amp_git_look *look, uint32_t *at, struct amp_verified *out,
                      struct amp_error *err)
{
    snprintf(out->why, sizeof out->why, "the bundle is about other commits");
    for (*at = 0; *at < b->n; ++*at) {
        const struct amp_proof *p = &b->proofs[*at];
        if (strcmp(p->approved, look->commit) == 0)
            return 1;
        if (look->parents == 2 && strcmp(p->approved, look->parent[1]) == 0 &&
            p->line[AMP_PROOF_landing].len)
            return merge_check(how, ids, git, p, look, out, err);
    }
    return 0;
}

/* Every proof of a bundle. */
static int proofs_report(const struct amp_bundle *b, const struct amp_proof_who *who,
                         const struct relied *relied, struct amp_error *err)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const struct amp_proof *p = &b->proofs[i];
        struct amp_verified v = {.who = who[i]};
        snprintf(v.commit, sizeof v.commit, "%s", p->approved);
        snprintf(v.tree, sizeof v.tree, "%s", p->tree);
        snprintf(v.task, sizeof v.task, "%s", p->task);
        snprintf(v.subtask, sizeof v.subtask, "%s", p->subtask);
        who_print(p->approved, p->task, p->subtask, &who[i]);
        if (json && verdict_print(&v, true, relied, err) < 0)
            return -1;
    }
    return 1;
}

static int bundle_report(const struct task_bundle *how, const struct amp_bundle *b,
                         struct amp_identities *ids, const struct amp_proof_who *who,
                         struct amp_git *git, const char *commit, const struct relied *relied,
                         struct amp_verified *out, struct amp_error *err)
{
    struct amp_git_look look;
    uint32_t at;
    if (!commit)
        return proofs_report(b, who, relied, err);
    if (amp_git_look(git, how->repo, commit, &look, err) < 0)
        return -1;
    int rc = proof_find(how, b, ids, git, &look, &at, out, err);
    if (rc < 0)
        return -1;
    snprintf(out->commit, sizeof out->commit, "%s", look.commit);
    snprintf(out->tree, sizeof out->tree, "%s", look.tree);
    if (rc) {
        const struct amp_proof *p = &b->proofs[at];
        snprintf(out->approved, sizeof out->approved, "%s", p->approved);
        snprintf(out->task, sizeof out->task, "%s", p->task);
        snprintf(out->subtask, sizeof out->subtask, "%s", p->subtask);
        out->who = who[at];
        who_print(look.commit, p->task, p->subtask, &who[at]);
    } else if (!quiet && !json) {
        amp_warn("%.12s is not approved: %s", look.commit, out->why);
    }
    return json && verdict_print(out, rc, relied, err) < 0 ? -1 : rc;
}

int task_bundle_verify(struct amp_git *git, const struct task_bundle *how, const char *commit,
                       struct amp_verified *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_BUNDLE b = {0};
    struct amp_identities *ids = NULL;
    char why[AMP_PROOF_WHY];
    struct relied relied = {0};
    memset(out, 0, sizeof *out);
    amp_buf_init(&text, AMP_BUNDLE_MAX);
    if (text_read(how, git, commit, &text, err) < 0 ||
        amp_bundle_read(amp_buf_span(&text), &b, err) < 0 ||
        trust_open(how, &b, &ids, &relied.on, err) < 0)
        return -1;
    AMP_FREE struct amp_proof_who *who = calloc(b.n, sizeof *who);
    int rc = who ? amp_bundle_check(ids, &b, who, why, err) : amp_fail_memory(err);
    relied.coordinator = b.key;
    if (rc == 0)
        snprintf(out->why, sizeof out->why, "%s", why);
    if (rc == 0 && !quiet && !json)
        amp_warn("%s is not approved: %s", commit ? commit : how->file, why);
    if (rc == 0 && json && verdict_print(out, false, &relied, err) < 0)
        rc = -1;
    if (rc > 0)
        rc = bundle_report(how, &b, ids, who, git, commit, &relied, out, err);
    if (rc > 0 && !quiet && !json && relied.on)
        amp_note("relied on the keys of %s, and on the coordinator %s", relied.on, b.key);
    else if (rc > 0 && !quiet && !relied.on)
        amp_warn("used only the keys in the bundle, which its maker chose (coordinator %s): this "
                 "does not show that the work was approved",
                 b.key);
    amp_identities_close(ids);
    return rc;
}

/* ---- by the state directory ---- */

static int state_verify(struct amp_store *store, struct amp_git *git, const char *commit,
                        struct amp_error *err)
{
    const struct amp_identity_tool who = {
        .state = amp_tool_state, .config = amp_tool_config, .quiet = quiet};
    struct amp_task_policy policy;
    struct amp_identities *ids = NULL;
    struct amp_verified v;

    if (task_policy(&policy, err) < 0)
        return -1;
    struct amp_verify what = {
        .repo = repo, .commit = commit, .no_coordinator = no_coordinator, .policy = &policy};
    int rc = amp_identity_cli_open(&amp_tool_identity, &who, &ids, err);
    if (rc == 0) {
        what.ids = ids;
        rc = amp_commit_verify(store, git, &what, &v, err);
    }
    amp_identities_close(ids);
    if (rc >= 0 && json && verdict_print(&v, rc > 0, NULL, err) < 0)
        return -1;
    if (rc > 0)
        who_print(v.commit, v.task, v.verdict, &v.who);
    else if (rc == 0 && !quiet && !json)
        amp_warn("%.12s is not approved: %s", v.commit, v.why);
    return rc;
}

static int verify_check(struct amp_command *c, struct amp_error *err)
{
    bool by_bundle = bundle || by_note;

    (void)err;
    if (c->argc > 1 || (c->argc == 0 && !bundle))
        amp_die_usage("verify takes one COMMIT; with --bundle it may be left out");
    if (quiet && json)
        amp_die_usage("--quiet and --json exclude each other");
    if (bundle && by_note)
        amp_die_usage("--bundle and --note exclude each other");
    if (self_signed && (!by_bundle || amp_tool_identity.allowed_signers))
        amp_die_usage(by_bundle ? "--self-signed and --allowed-signers exclude each other"
                                : "--self-signed needs --bundle or --note");
    /* A bundle is checked without the state directory; everybody may do that. */
    if (by_bundle)
        c->opens = AMP_OPENS_NOTHING;
    else
        c->act = "verify with a state directory";
    return 0;
}

static int task_verify(struct amp_command *c, struct amp_error *err)
{
    const char *commit = c->argc ? c->argv[0] : NULL;
    const struct task_bundle how = {repo, bundle, by_note, self_signed};
    struct amp_git *git;
    struct amp_verified v;

    if (amp_git_open(NULL, &git, err) < 0)
        return -1;
    int rc = bundle || by_note ? task_bundle_verify(git, &how, commit, &v, err)
                               : state_verify(c->store, git, commit, err);
    amp_git_close(git);
    return rc < 0 ? -1 : rc ? AMP_OK : AMP_NO;
}

const struct amp_verb verify_verbs[] = {
    {"verify", "[COMMIT]", "check that a commit was approved", task_verify_opts, task_verify,
     .check = verify_check, .opens = AMP_OPENS_DAMAGED, .finds_state = true, .group = "Approvals",
     .who = AMP_WHO_PERSON},
    {0},
};
