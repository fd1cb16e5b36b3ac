/* Answers about the tool's knowledge: the codes and the schemas. */
#include <string.h>

#include "cli/cli.h"
#include "validate.h"

struct meaning {
    const char *code, *severity, *text;
};

static const struct meaning meanings[] = {
    /* any protocol */
    {"invalid_json", "error", "The line is not JSON (RFC 8259)."},
    {"invalid_utf8", "error", "The line is not UTF-8, or a string holds half a character."},
    {"line_too_long", "error", "The line passes --max-line."},
    {"too_deep", "error", "The nesting passes --max-depth."},
    {"too_many_tokens", "error", "The line holds more than 1,000,000 values and keys."},
    {"duplicate_key", "error", "An object names a member twice, so readers would disagree."},
    {"unknown_protocol", "error", "The line belongs to none of the five protocols."},
    {"undecided", "error", "The state could not be asked about this line in time; send it again."},
    /* AMP/1.0 */
    {"missing_field", "error",
     "A field that the message must have is absent, or a list that must "
     "say something is empty."},
    {"unknown_field", "error", "The message has a field that the protocol does not know."},
    {"bad_type", "error", "A field has another JSON type than the protocol says."},
    {"bad_enum", "error", "A field holds none of its allowed words."},
    {"bad_value", "error", "A field's value is out of range or has not the right form."},
    {"bad_msg_id", "error",
     "msg_id is not {type}-{task_id}-{number}, or does not agree with type "
     "and task_id."},
    {"bad_task_id", "error", "task_id is not T-YYYY-NNN."},
    {"bad_timestamp", "error", "A time is not RFC 3339 with an offset or Z."},
    {"version_incompatible", "error",
     "protocol_version is not AMP/1.0. Nothing else was looked "
     "at."},
    {"branch_violation", "error", "The dispatch names a protected branch."},
    {"empty_acceptance_criteria", "error",
     "The dispatch has no acceptance criteria; the "
     "coordinator has to complete it."},
    {"repo_not_git", "error", "repo does not exist or holds no git repository (--check-repo)."},
    {"ci_failed", "error", "A check failed, so there must be no review but a new dispatch."},
    {"fix_out_of_range", "error",
     "A direct fix is of another kind than typo, lint, whitespace or "
     "import_order, or has five lines or more."},
    {"must_suspend", "error", "auto_suspended is false in an escalation that is not info."},
    {"duplicate_msg_id", "error", "The state knows this id with other bytes (--state)."},
    {"unknown_ref", "error",
     "A message or subtask that is referred to is not in the state "
     "(--state)."},
    {"suspended", "error", "The task is suspended and this would be new work for it (--state)."},
    {"lock_note_missing", "warning",
     "After two rejections in a row coordinator_notes does not say "
     "\"Lock is approaching\"."},
    {"ack_timeout_ignored", "warning", "ack_timeout_sec is given although requires_ack is false."},
    {"inconsistent_verdict", "warning",
     "The decision does not follow from criteria, issues and "
     "fixes."},
    /* the others, as far as they are checked */
    {"validation_error", "error", "SW4RM: the envelope is not as the protocol says."},
    {"unsupported_message_type", "error", "SW4RM: message_type is none of the eleven."},
    {"E_SCHEMA_VALIDATION", "error",
     "AOP: the header or a demanded part is not as the contract "
     "says."},
    {"invalid_envelope", "error", "AOF: the envelope is not as the protocol says."},
    {"unknown_kind", "error", "Runtime Protocol: kind is none of the ten."},
    {"corr_id_required", "error", "Runtime Protocol: this kind of event needs corrId."},
};

static int print(const char *text)
{
    struct amp_error err;
    return amp_out(amp_span_str(text), &err) < 0 ? amp_complain(&err) : AMP_OK;
}

int info_explain(const char *code)
{
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        const struct meaning *m = &meanings[i];
        bool all = strcmp(code, "all") == 0;
        if (!all && strcmp(m->code, code) != 0)
            continue;
        char line[400];
        snprintf(line, sizeof line, "%s\t%s\t%s\n", m->code, m->severity, m->text);
        int status = print(line);
        if (!all || status)
            return status;
    }
    if (strcmp(code, "all") == 0)
        return AMP_OK;
    amp_warn("no such code: %s; 'amp-validate --explain all' lists them", code);
    return AMP_USAGE;
}

int info_list(void)
{
    for (size_t i = 0; i < amp_schema_files_count; i++) {
        char line[200];
        snprintf(line, sizeof line, "%.*s\n",
                 (int)(strlen(amp_schema_files[i].path) - strlen(".json")),
                 amp_schema_files[i].path);
        int status = print(line);
        if (status)
            return status;
    }
    return AMP_OK;
}

int info_schema(const char *name)
{
    size_t n = strlen(name);
    bool found = false;
    for (size_t i = 0; i < amp_schema_files_count; i++) {
        const char *path = amp_schema_files[i].path;
        struct amp_error err;
        if (strncmp(path, name, n) != 0 || (strcmp(path + n, ".json") != 0 && path[n] != '/'))
            continue;
        found = true;
        if (amp_out(amp_schema_files[i].text, &err) < 0)
            return amp_complain(&err);
    }
    if (found)
        return AMP_OK;
    amp_warn("no such schema: %s; 'amp-validate --list' lists them", name);
    return AMP_USAGE;
}
