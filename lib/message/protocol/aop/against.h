/*
 * A RESPONSE against its TASK: what a check of the RESPONSE alone cannot see. Both lines are valid
 * by their schemas and rules. Paths are those of the messages and are compared without a look at
 * the file system.
 *
 * | what                                                            | code                  |
 * |-----------------------------------------------------------------|-----------------------|
 * | session_id and task_id are the TASK's                           | E_MALFORMED_RESPONSE  |
 * | strict: agent.name is the target's agent_name                   | E_MALFORMED_RESPONSE  |
 * | provider and model are the target's or an alternative's         | E_MALFORMED_RESPONSE  |
 * | checkpoint_results: checkpoints of the TASK, each at most once; |                       |
 * |   those of a TASK without phases are the executor's own         | E_MALFORMED_RESPONSE  |
 * | COMPLETED: no result is PENDING                                 | E_MALFORMED_RESPONSE  |
 * | SUCCESS: no result is FAIL, unless the checkpoint's             |                       |
 * |   recovery_strategy is CONTINUE or absent                       | E_MALFORMED_RESPONSE  |
 * | the guard rails require_final_signal and require_minimal_report | E_MALFORMED_RESPONSE  |
 * | artifacts that changed are within the write access, and none is |                       |
 * |   an input with read_only that no expected output names         | E_PERMISSION_DENIED   |
 * | strict, COMPLETED: duration_seconds is at most the time limit,  |                       |
 * |   once per model that may have run, if the limit ends the work  | E_TIMEOUT             |
 * | the cost is within the budgets                                  | E_COST_LIMIT_EXCEEDED |
 *
 * E_MALFORMED_RESPONSE does not end the TASK (`ends`): the agent may answer again. A RESPONSE that
 * is not COMPLETED and reports a denied access or a spent budget itself, by that code or
 * E_ALL_MODELS_EXHAUSTED as its error_details.error_code, is not at fault for it.
 */
#ifndef AMP_MESSAGE_PROTOCOL_AOP_AGAINST_H
#define AMP_MESSAGE_PROTOCOL_AOP_AGAINST_H

#include "message/protocol/work.h"

/* 1: the RESPONSE has a fault, the first of the table; 0: none; -1: out of memory. strict: the
 * executor composed the RESPONSE itself. The ledger is not strict: it knows who holds the work, and
 * has a clock of its own for the time limit. */
int amp_aop_against(const struct amp_view *task, const struct amp_view *response, bool strict,
                    struct amp_result_fault *fault, struct amp_error *err);

#endif
