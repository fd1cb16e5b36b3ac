/* The meanings of the codes of all protocols, and the table of each protocol. */
#include "message/protocol/codes/meanings.h"

static const struct amp_meaning any_protocol[] = {
    {"invalid_json", AMP_SEV_ERROR, "The line is not JSON.", "RFC 8259",
     "Check the byte that the finding names. A message is one line, so it must not contain a line "
     "feed."},
    {"invalid_utf8", AMP_SEV_ERROR,
     "The line is not valid UTF-8: a character is incomplete, overlong or a lone surrogate.",
     "RFC 8259 §8.1, RFC 3629 §3", "Write the text as UTF-8, or convert it first (iconv)."},
    {"line_too_long", AMP_SEV_ERROR, "The line is longer than --max-line.", "a limit of this tool",
     "Send large contents by reference, or raise --max-line."},
    {"too_deep", AMP_SEV_ERROR, "The values are nested deeper than --max-depth.",
     "a limit of this tool", "Nest less deeply, or raise --max-depth."},
    {"too_many_tokens", AMP_SEV_ERROR, "The line has more than 1,000,000 keys and values.",
     "a limit of this tool", "Split the message."},
    {"duplicate_key", AMP_SEV_ERROR, "An object has two members of the same name.", "RFC 8259 §4",
     "Remove one of the two members."},
    {"unknown_protocol", AMP_SEV_ERROR, "The line is not a message of any of the five protocols.",
     "a rule of this tool",
     "Add the members that identify its protocol, or name the protocol with -p. Messages inside "
     "other text are found with --extract."},
    {"bad_signature", AMP_SEV_ERROR,
     "A signed line is malformed: its sig lacks a member or has a malformed one, or it has other "
     "members. From a tool that verifies signatures: the signature is not valid for its key.",
     "amp-protocols(7)",
     "Sign the message with amp-sign. The members beside msg are sig and, for messages without "
     "recipients of their own, to."},
    {"more_findings", AMP_SEV_ERROR,
     "The line has more findings than are reported. A warning if the others are warnings.",
     "a limit of this tool", "Fix the reported findings and check again."},
    {"undecided", AMP_SEV_ERROR,
     "The state directory did not answer about this line in time (--state).",
     "a limit of this tool", "Send the same line again later."},
    {"bad_id", AMP_SEV_ERROR,
     "The id of the message or of its task is longer than 1,000 bytes, the limit of a state "
     "directory (not given by amp-validate).",
     "a limit of these tools", "Use a shorter id."},
    {"schema_violation", AMP_SEV_ERROR,
     "The text does not match the schema given with --schema. The rule is the schema's keyword.",
     "JSON Schema", "Fix the value of the field, or the schema at schema_pointer."},
    {"pattern_limit", AMP_SEV_ERROR,
     "A pattern of the schema needs more steps on this text than the limit allows. It is not known "
     "whether it matches.",
     "a limit of this tool", "Avoid nested repetitions in the pattern."},
    {"schema_limit", AMP_SEV_ERROR,
     "The schema needs more steps on this text than the limit allows. It is not known whether the "
     "text matches.",
     "a limit of this tool",
     "Avoid allOf, anyOf and references that double the work at each level."},
    {"schema_too_deep", AMP_SEV_ERROR,
     "The schema recurses on this text deeper than the limit allows.", "a limit of this tool",
     "Nest the text less deeply, or reduce the recursion of the schema."},
    {"cannot_convert", AMP_SEV_ERROR,
     "With --to: the other protocol has no such message, or requires a field that the message "
     "lacks.",
     "amp-convert(7)",
     "Supply the missing field with --fill, or keep the message in its protocol."},
    {"kept_in_extension", AMP_SEV_WARNING,
     "With --to: the other protocol has no such field, or another form of it. The original is kept "
     "under x_amp_origin and is restored when the message is converted back.",
     "amp-convert(7)", "No action is needed; nothing is lost."},
    {"not_carried", AMP_SEV_WARNING,
     "With --to: the other protocol has no such field and no extensions, so the field is lost. An "
     "error with --strict.",
     "amp-convert(7)", "Keep the original message as well."},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};

const struct amp_meaning *amp_meanings(enum amp_protocol p)
{
    static const struct amp_meaning *const tables[AMP_PROTO_COUNT] = {[AMP_PROTO_NONE] =
                                                                          any_protocol,
#define X(id, name, title) [AMP_PROTO_##id] = amp_meanings_##name,
                                                                      AMP_PROTOCOL_LIST(X)
#undef X
    };
    return (unsigned)p < AMP_PROTO_COUNT ? tables[p] : any_protocol;
}
