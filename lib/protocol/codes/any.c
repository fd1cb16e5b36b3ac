/* The codes of any protocol: see meaning.h. */
#include <stddef.h>

#include "protocol/codes/meanings.h"

const struct amp_meaning amp_meanings_any[] = {
    {"invalid_json", AMP_SEV_ERROR, "The line is not JSON.", "RFC 8259",
     "Look at the byte that the finding names; messages go one a line, so a message must hold no "
     "line end of its own."},
    {"invalid_utf8", AMP_SEV_ERROR,
     "The line is not UTF-8, or a string holds half a character or bytes in a longer form than "
     "needed.",
     "RFC 8259 §8.1, RFC 3629 §3",
     "Write the text as UTF-8; where it is another encoding's, convert it first (iconv)."},
    {"line_too_long", AMP_SEV_ERROR, "The line passes --max-line.", "a limit of this tool",
     "Send large contents by reference, or allow more with --max-line."},
    {"too_deep", AMP_SEV_ERROR, "The nesting passes --max-depth.", "a limit of this tool",
     "Nest less deeply, or allow more with --max-depth."},
    {"too_many_tokens", AMP_SEV_ERROR, "The line holds more than 1,000,000 values and keys.",
     "a limit of this tool", "Split the message."},
    {"duplicate_key", AMP_SEV_ERROR, "An object names a member twice, so readers would disagree.",
     "RFC 8259 §4", "Leave one of the two members out."},
    {"unknown_protocol", AMP_SEV_ERROR, "The line belongs to none of the five protocols.",
     "a rule of this tool",
     "Give it the members by which its protocol is recognised, or name the protocol with -p; "
     "messages inside other text are found by --extract."},
    {"more_findings", AMP_SEV_ERROR,
     "More is wrong with the line than is told; a warning, where the rest are warnings.",
     "a limit of this tool", "Mend what is told and look again."},
    {"undecided", AMP_SEV_ERROR, "The state could not be asked about this line in time (--state).",
     "a limit of this tool", "Send the same line again later."},
    {"bad_id", AMP_SEV_ERROR,
     "The id of the message or of its task is longer than the 1,000 bytes by which a state "
     "directory keeps something (--state; not of amp-validate).",
     "a limit of these tools", "Give it a shorter id."},
    {"schema_violation", AMP_SEV_ERROR,
     "The text does not fit the schema that was given with --schema; the rule is the keyword.",
     "JSON Schema", "Mend the value at the field, or the schema at schema_pointer."},
    {"pattern_limit", AMP_SEV_ERROR,
     "A pattern of the schema needs more steps on this text than the limit allows; whether it "
     "matches is not known.",
     "a limit of this tool", "Write the pattern without repetitions inside repetitions."},
    {"schema_limit", AMP_SEV_ERROR,
     "The schema needs more steps on this text than the limit allows; whether it fits is not "
     "known.",
     "a limit of this tool", "Let allOf, anyOf and references not double the work at each level."},
    {"schema_too_deep", AMP_SEV_ERROR,
     "The schema applies itself on this text more often in a row than the limit allows.",
     "a limit of this tool", "Nest the text less deeply, or let the schema refer to itself less."},
    {"cannot_convert", AMP_SEV_ERROR,
     "With --to: the other protocol has nothing that says this, or demands what the message does "
     "not say.",
     "docs/conversion.md",
     "Give what is missing with --fill, or leave the message in its protocol."},
    {"kept_in_extension", AMP_SEV_WARNING,
     "With --to: the other protocol has no place for the field, or says it in another form; the "
     "original is kept under x_amp_origin and comes back on the way back.",
     "docs/conversion.md", "Nothing: nothing is lost."},
    {"not_carried", AMP_SEV_WARNING,
     "With --to: the other protocol has no place for the field and none for an extension; it is "
     "lost. With --strict an error.",
     "docs/conversion.md", "Keep the message itself as well."},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};
