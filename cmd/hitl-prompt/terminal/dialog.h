/*
 * The dialog with a person about one question: shows it with its evidence, reads the answer, shows
 * more on request (the keys d l t s p ?), asks for confirmation of grave answers, opens an editor
 * on a payload. The caller carries the answer out and tells the dialog how that went.
 */
#ifndef HITL_DIALOG_H
#define HITL_DIALOG_H

#include "../evidence/evidence.h"
#include "editor.h"
#include "people/answer/decide.h"
#include "terminal.h"

enum { DIALOG_PAGES = 4 }; /* d l t s */
enum dialog_at { DIALOG_IDLE, DIALOG_ASKS, DIALOG_CONFIRMS, DIALOG_EDITS, DIALOG_EDITS_AGAIN };

struct dialog {
    struct terminal tty;
    struct amp_decider *d;
    enum dialog_at at;
    const struct amp_question *q; /* the caller's; NULL with DIALOG_IDLE */
    struct amp_evidence ev;
    char view;       /* the key of the page that is shown; 0: none */
    int shown_width; /* of the question on the screen */
    /* The digest of what was shown: the question, and the pages that were opened. */
    char shown[EVIDENCE_DIGEST_MAX];
    char shown_question[EVIDENCE_DIGEST_MAX], shown_page[DIALOG_PAGES][EVIDENCE_DIGEST_MAX];
    char line[LINE_BYTES + 1]; /* the texts of the answer */
    struct amp_operator_answer answer;
    struct editor editor;
    struct amp_buf payload, patch;
};
void dialog_init(struct dialog *g, bool plain);
void dialog_release(struct dialog *g);

/* Shows the question and asks. q must live until dialog_close. */
int dialog_ask(struct dialog *g, struct amp_decider *d, const struct amp_question *q,
               struct amp_error *err);

enum dialog_said {
    DIALOG_FAILED = -1,
    DIALOG_WAITS,
    DIALOG_ANSWERED, /* g->answer, until the next call; its patch and payload, too */
    DIALOG_PASSED,   /* an empty line: undecided */
    DIALOG_ENDED,    /* ^D: undecided, and so are all questions after it */
    DIALOG_GONE,     /* the terminal has hung up */
};
/* Handles what the person typed. */
enum dialog_said dialog_step(struct dialog *g, struct amp_error *err);
/* Fills the descriptors to poll (at most 3); returns their number. */
unsigned dialog_watch(const struct dialog *g, struct pollfd *fds);
/* The answer was refused, for `why`: asks again. */
void dialog_again(struct dialog *g, const char *why);
/* Ends the dialog; says `why` if it is not NULL. */
void dialog_close(struct dialog *g, const char *why);

#endif
