/*
 * A message in chunks. SW4RM §5.4 has no table: a receiver validates each chunk, processes the
 * message only after complete reassembly, and fails the transfer if it is partial or corrupt.
 */
#include "message/delivery/transfer/transfer_fsm.h"
#include "base/codes.h"

#define S(x)   AMP_TRANSFER_##x
#define E(x)   AMP_TRANSFER_EV_##x
#define EFF(x) AMP_TRANSFER_DO_##x
#define FAILS  (EFF(DROP) | EFF(TELL))

/* clang-format off */
#define ROW(f, e, t, fa, eff, c) {S(f), E(e), S(t), false, (fa), 0, (eff), (c)}
#define EXTRA(f, e, t, fa, eff, c) {S(f), E(e), S(t), true, (fa), 0, (eff), (c)}

static const struct amp_fsm_row rows[] = {
    ROW(RECEIVING, PIECE, RECEIVING, AMP_TRANSFER_IF_SAME, 0, NULL),
    ROW(RECEIVING, PIECE, RECEIVING, 0, EFF(KEEP), NULL),
    ROW(RECEIVING, LAST, ASSEMBLED, 0, EFF(KEEP) | EFF(HAND_OVER), NULL),
    ROW(RECEIVING, CORRUPT, FAILED, 0, FAILS, AMP_CODE(chunk_corrupt)),
    ROW(RECEIVING, REFUSE, FAILED, 0, EFF(TELL), NULL),
    ROW(RECEIVING, TIMEOUT, FAILED, 0, FAILS, AMP_CODE(partial_delivery)),

    ROW(ASSEMBLED, PIECE, ASSEMBLED, 0, 0, NULL),
    ROW(ASSEMBLED, RESUME, ASSEMBLED, 0, EFF(KEEP) | EFF(HAND_OVER), NULL),
    ROW(ASSEMBLED, TAKEN, COMPLETE, 0, EFF(DROP), NULL),
    ROW(ASSEMBLED, TIMEOUT, FAILED, 0, FAILS, AMP_CODE(partial_delivery)),

    /* Chunks that arrive late. */
    EXTRA(COMPLETE, PIECE, COMPLETE, 0, 0, NULL),
    EXTRA(FAILED, PIECE, FAILED, 0, 0, NULL),
};
/* clang-format on */

const struct amp_fsm amp_transfer_fsm = {
    .name = "transfer",
    .source = "SW4RM §5.4",
    .doc = "a message that arrives in chunks",
    AMP_FSM_LISTS(AMP_TRANSFER),
    .initial = AMP_TRANSFER_RECEIVING,
    .terminal = 1u << AMP_TRANSFER_COMPLETE | 1u << AMP_TRANSFER_FAILED,
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
};
