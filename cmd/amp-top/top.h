/* The parts of amp-top: options and wiring (main.c), the loop (loop.c), what a person does (act.c),
 * plain lines (plain.c). */
#ifndef TOP_H
#define TOP_H

#include "model/read.h"
#include "screen/screen.h"
#include "shared/identity.h"
#include "view/ui.h"

extern const char *top_state, *top_config;
extern struct amp_identity_cli top_identity;

/* Prints the lists once, as text or as NDJSON. pane: only this list; TOP_PANE_COUNT: all. */
int top_plain_print(const struct top_model *m, bool ndjson, enum top_pane pane,
                    struct amp_error *err);

/* The program on the terminal, until the person quits. read_only: why nothing can be changed, or
 * NULL. */
int top_loop(struct amp_store *s, enum top_pane first, bool color, const char *read_only,
             struct amp_error *err);

/* ---- actions ---- */

/* Whether this process may change anything: 0, or -1 with the refusal, as the tools make it: an
 * agent, or a person who is not an operator. */
int top_act_allowed(const char *act, struct amp_error *err);
/* Answers a question through the function of hitl-prompt. line: "rollback COMMIT NOTE…"; seen: the
 * text that the person saw. said gets the result. */
int top_act_answer(struct amp_store *s, const char *question, const char *line,
                   const struct top_text *seen, char *said, size_t size, struct amp_error *err);
/* Suspends or resumes a task or an agent with hitl-prompt, whose processes it ends; name NULL:
 * everything. said gets what hitl-prompt reports. -1: it failed. */
int top_act_pause(bool resume, bool task, const char *name, const char *reason, char *said,
                  size_t size, struct amp_error *err);

#endif
