/*
 * The codes of these tools, by the class of failure that they name (protocol/codes/classes.h), also
 * those that AOP alone has. Code writes a code as its word, without quotes: a word that is in no
 * list does not compile.
 *
 *     return amp_fail(err, AMP_TEMPFAIL, lock_timeout, "another process has %s", path);
 *     if (amp_code_is(err->code, lock_timeout))
 */
#ifndef AMP_BASE_CODES_H
#define AMP_BASE_CODES_H

#include <string.h>

#include <amp/base/buf.h>
#include <amp/base/error.h>

/* The text of the code `name`, a constant. */
#define AMP_CODE(name)      (&#name[0 * AMP_E_##name])
#define AMP_CODE_SPAN(name) ((struct amp_span){#name, sizeof #name - 1 + 0 * AMP_E_##name})

/* Tells whether a text is the code `name`. */
#define amp_code_is(text, name) (strcmp((text), AMP_CODE(name)) == 0)

/* amp_fail_text for the code `name`. */
#define amp_fail(err, status, name, ...) amp_fail_text((err), (status), AMP_CODE(name), __VA_ARGS__)

/* clang-format off */
#define AMP_CODES_INTERNAL(X) \
    X(bad_access) X(bad_access_rule) X(bad_config) X(bad_conversion) X(bad_guard_policy) \
    X(bad_key) X(bad_line) X(bad_option) X(bad_policy) X(bad_record) X(bad_revocation) \
    X(bad_schema) X(branch_checked_out) X(branch_moved) X(cert_authority) X(channel_failed) \
    X(config_invalid) X(crypto_failed) X(E_ROLLBACK_FAILED) X(editor_failed) X(file_changing) \
    X(filesystem_error) X(folder_differs) X(folder_permissions) X(foreign_hooks_path) \
    X(git_config) X(git_error) X(git_failed) X(guard_failed) X(helper_failed) X(helper_missing) \
    X(helper_protocol) X(hitl_prompt) X(hook_conflict) X(id_space_full) X(include_limit) \
    X(index_failed) X(inotify) X(install_failed) X(internal) X(internal_error) X(invalid_answer) \
    X(invalid_output) X(key_made) X(key_not_ed25519) X(key_permissions) X(key_worker_failed) \
    X(keygen_failed) X(log) X(log_damaged) X(log_failed) X(log_format) X(log_key_invalid) \
    X(log_no_key) X(log_repaired) X(log_tampered) X(machine_unsound) X(memfd) X(memfd_create) \
    X(nested_turn) X(network_file_system) X(no_allowed_signers) X(no_curl) X(no_letter) \
    X(no_memory) X(no_random) X(no_terminal) X(not_durable) X(not_executable) X(not_undone) \
    X(outcome_missing) X(partial_delivery) X(path_not_utf8) X(poll_failed) X(predicate_error) \
    X(quarantine_unknown) X(repo_unsupported) X(sequence_exhausted) X(server_name_missing) \
    X(signing_failed) X(snapshot_damaged) X(state_failed) X(state_gone) X(state_missing) \
    X(state_network_fs) X(sync_in_turn) X(undecided) X(worktree_path) X(worktree_sparse) \
    X(worktree_unfinished)
#define AMP_CODES_WORK(X) \
    X(agent_refused) X(attempt_kept) X(check_failed) X(ci_failed) X(declined) X(execution_error) \
    X(failed) X(handoff_rejected) X(merge_conflict) X(not_done) X(post_create_failed) X(quarantine_limit) \
    X(quarantine_refused) X(retries_exhausted) X(retry_budget_exceeded) X(tree_limit) \
    X(unproven_claim)
#define AMP_CODES_CRASH(X) \
    X(claim_lost) X(command_failed) X(E_PROCESS_CRASH) X(git_crashed) X(helper_died) \
    X(http_failed) X(no_worker) X(worker_lost)
#define AMP_CODES_ANSWER(X) \
    X(bad_answer) X(contract_violation) X(E_MALFORMED_RESPONSE) X(E_PARSE_FAILURE) \
    X(invalid_run_result) X(no_terminal_outcome) X(no_verdict)
#define AMP_CODES_DEPENDENCY(X) \
    X(dependency_missing) X(E_DEPENDENCY_FAILED) X(E_FILE_NOT_FOUND) X(missing_commit) \
    X(no_branch) X(no_worktree) X(predecessor_failed) X(repo_bare) X(repo_not_git) X(snapshot_path) X(unknown_revision) \
    X(worktree_not_found) X(worktree_unknown)
#define AMP_CODES_VALIDATION(X) \
    X(accept_required) X(ack_timeout_ignored) X(already_decided) X(ambiguous) X(ambiguous_job) \
    X(ambiguous_question) X(ambiguous_task) X(attempt_not_incremented) X(bad_agent) \
    X(bad_arguments) X(bad_backoff) X(bad_base) X(bad_branch) X(bad_bundle) X(bad_change) \
    X(bad_choice) X(bad_command) X(bad_enum) X(bad_file) X(bad_flag) X(bad_form) X(bad_format) \
    X(bad_front_matter) X(bad_headers) X(bad_hello) X(bad_helper_arguments) X(bad_host) X(bad_id) \
    X(bad_inbound) X(bad_kind) X(bad_lane) X(bad_log_line) X(bad_msg_id) X(bad_name) X(bad_number) \
    X(bad_path) X(bad_pattern) X(bad_port) X(bad_position) X(bad_predicate) X(bad_prefix) \
    X(bad_principal) X(bad_priority) X(bad_protocol) X(bad_question) X(bad_recipient) \
    X(bad_request) X(bad_reservations) X(bad_route) X(bad_scope) X(bad_spec) X(bad_status) \
    X(bad_suspended) X(bad_takes) X(bad_task) X(bad_task_id) X(bad_template) X(bad_time) \
    X(bad_timestamp) X(bad_tree) X(bad_type) X(bad_url) X(bad_usage) X(bad_value) X(batch_corrupt) \
    X(call_malformed) X(cannot_convert) X(capability_unknown) X(case_collision) X(changed) \
    X(chunk_corrupt) X(command_refused) X(context_changed) X(corr_id_required) \
    X(diagnostics_required) X(digest_differs) X(digest_mismatch) X(duplicate_event) \
    X(duplicate_key) X(duplicate_vote) X(E_SCHEMA_VALIDATION) X(empty_acceptance_criteria) \
    X(eta_in_past) X(eta_range) X(eta_required) X(filter_unsupported) X(fix_out_of_range) \
    X(foreign_outbox) X(http_refused) X(id_mismatch) X(illegal_transition) X(inconsistent_verdict) \
    X(inferred_failure_class) X(invalid_acceptance_criteria) X(invalid_envelope) X(invalid_json) \
    X(invalid_project_id) X(invalid_schema) X(invalid_utf8) X(json) X(kept_in_extension) \
    X(landing_changed) X(length_required) X(lock_note_missing) X(loop_ended) X(misplaced_verb) \
    X(missing_argument) X(missing_field) X(missing_route_fields) X(missing_verb) X(more_findings) \
    X(must_suspend) X(nested_repository) X(no_answer) X(no_context) X(no_data_dir) X(no_key) \
    X(no_keys) X(no_names) X(no_note) X(no_payload) X(no_request) X(no_routes) X(no_schema) \
    X(no_snapshot) X(no_state) X(no_task) X(not_a_directory) X(not_a_fifo) X(not_a_file) \
    X(not_a_record) X(not_a_socket) X(not_a_submission) X(not_accepted) X(not_carried) X(not_due) \
    X(not_found) X(not_pending) X(not_proxied) X(not_registered) X(not_tls) X(nothing_to_undo) \
    X(out_of_range) X(pattern_limit) X(refused_before) X(repeated_option) X(result_required) \
    X(schema_limit) X(schema_too_deep) X(schema_violation) X(scope_required) X(seq_not_monotonic) \
    X(session_open) X(special_file) X(stale_dispatch) X(still_running) X(symbolic_link) \
    X(target_behind) X(target_moved) X(task_not_ended) X(taskId_mismatch) X(terminal) X(too_deep) \
    X(too_many_options) X(too_many_tokens) X(two_folders) X(type_required) X(unexpected_argument) \
    X(unexpected_operand) X(unknown_account) X(unknown_field) X(unknown_grant) X(unknown_job) \
    X(follow_cycle) X(too_many_jobs) \
    X(unknown_kind) X(unknown_option) X(unknown_protocol) X(unknown_question) X(unknown_ref) \
    X(unknown_resource) X(unknown_subject) X(unknown_task) X(unknown_verb) X(unresolved_ref) \
    X(unsupported_message_type) X(unsupported_protocol) X(unsupported_reply) X(unsupported_stage) \
    X(usage) X(validation_error) X(version_incompatible) X(why_required) X(worktree_dirty)
#define AMP_CODES_PERMISSION(X) \
    X(access_denied) X(address_refused) X(answer_expired) X(answer_replayed) X(approval_required) \
    X(bad_sender) X(bad_signature) X(bad_signature_time) X(bad_token) X(bad_token_part) X(blocked) \
    X(branch_not_bound) X(branch_not_of_role) X(branch_violation) X(confined) \
    X(confinement_unavailable) X(E_PERMISSION_DENIED) X(guard_bypass) X(hitl_unavailable) \
    X(host_mismatch) X(host_refused) X(identity_off) X(kept_back) X(key_expired) X(key_not_found) \
    X(key_revoked) X(linked_hooks) X(not_assignee) X(not_authorized) X(not_beneath) \
    X(not_claimant) X(not_confined) X(not_operator) X(not_proven) X(path_escape) X(path_forbidden) \
    X(path_reserved) X(pause_limit) X(permission_denied) X(read_only) X(refused) X(rejected) \
    X(repo_not_owned) X(role_mismatch) X(server_name_hidden) X(server_name_mismatch) \
    X(state_not_ours) X(state_permissions) X(suspended) X(token_expired) X(token_key_mismatch) \
    X(token_malformed) X(token_mismatch) X(token_missing) X(token_nonce_mismatch) \
    X(token_not_allowed) X(token_not_yet_valid) X(token_replayed) X(token_unknown) \
    X(token_untrusted) X(token_unverifiable) X(token_wrong_audience) X(token_wrong_subject) \
    X(trailer_missing) X(trust_permissions) X(unauthorized_agent) X(unknown_key) X(unreadable) \
    X(unsigned) X(worktree_not_bound) X(worktree_outside)
#define AMP_CODES_SIZE(X) \
    X(agent_too_long) X(commit_too_large) X(E_CONTEXT_OVERFLOW) X(file_too_large) \
    X(frame_too_large) X(header_too_large) X(hello_too_large) X(line_too_long) X(name_too_long) \
    X(oversize_payload) X(path_too_long) X(payload_too_large) X(producer_full) X(too_long) \
    X(too_many) X(too_many_agents) X(too_many_calls) X(too_many_commands) X(too_many_connections) \
    X(too_many_descriptors) X(too_many_hosts) X(too_many_inputs) X(too_many_lines) \
    X(too_many_listeners) X(too_many_paths) X(too_many_proofs) X(too_many_rows) X(too_many_tasks) \
    X(too_many_types)
#define AMP_CODES_ROUTE(X) \
    X(capability_unavailable) X(E_AGENT_NOT_FOUND) X(invalid_target) X(invalid_targets) \
    X(no_route) X(parent_not_found)
#define AMP_CODES_UNAVAILABLE(X) \
    X(again_later) X(agent_busy) X(agent_shutdown) X(agent_unavailable) X(breaker_open) X(busy) \
    X(closed_pipe) X(command_not_found) X(connect_failed) X(E_ALL_MODELS_EXHAUSTED) \
    X(E_MODEL_UNAVAILABLE) X(git_locked) X(git_unavailable) X(helper_unavailable) X(inbox_busy) \
    X(lock_timeout) X(name_unknown) X(no_command) X(no_reader) X(owner_unavailable) \
    X(resolver_busy) X(route_failed) X(scope_taken) X(session_busy) X(spool_busy) X(type_full) \
    X(follows) X(unknown_pool) X(worktree_locked) X(worktrees_busy)
#define AMP_CODES_LIMIT(X) \
    X(rate_limited) X(usage_limit)
#define AMP_CODES_FULL(X) \
    X(activity_buffer_full) X(activity_buffer_high) X(backpressure) X(buffer_full) X(control_full) \
    X(history_full) X(log_full) X(too_frequent)
#define AMP_CODES_EXPIRED(X) \
    X(cursor_expired) X(deadline_passed) X(expired) X(handoff_expired) X(late) X(ttl_expired)
#define AMP_CODES_TIMEOUT(X) \
    X(ack_timeout) X(command_timeout) X(connect_timeout) X(E_HEARTBEAT_FAILURE) X(E_TIMEOUT) \
    X(git_timeout) X(header_timeout) X(heartbeat_timeout) X(hello_timeout) X(helper_timeout) \
    X(notify_timeout) X(output_timeout) X(request_timeout) X(response_timeout) X(timeout) \
    X(tool_timeout) X(wait_timeout)
#define AMP_CODES_DUPLICATE(X) \
    X(already_accepted) X(already_completed) X(already_requeued) X(already_signed) \
    X(duplicate_detected) X(duplicate_job) X(duplicate_msg_id) X(duplicate_request) X(exists) \
    X(key_exists) X(name_taken) X(worktree_exists)
#define AMP_CODES_PROGRESS(X) \
    X(already_claimed) X(already_in_progress) X(cursor_fenced) X(cursor_leased) X(handed_over) \
    X(loop_runs)
#define AMP_CODES_CANCELLED(X) \
    X(cancelled) X(cursor_retired) X(ended) X(interrupted) X(superseded) X(task_ended) \
    X(withdrawn)
#define AMP_CODES_PREEMPTED(X) \
    X(forced_preemption)
#define AMP_CODES_BUDGET(X) \
    X(budget_exceeded) X(E_COST_LIMIT_EXCEEDED)
#define AMP_CODES_DEPTH(X) \
    X(E_MAX_DEPTH_EXCEEDED) X(nested_delegation)
/* Without a class: each protocol has its own rule for these, or they are in no message. */
#define AMP_CODES_OTHER(X) \
    X(access_allowed) X(agent_shutdown_timeout) X(change_refused) X(chunk_mismatch) X(closed) \
    X(control_limit) X(E_PAYLOAD_SIZE_WARNING) X(E_UNKNOWN) X(guard_differs) X(guard_missing) \
    X(guard_unknown) X(hello_incomplete) X(hook_missing) X(hook_not_executable) X(hook_replaced) \
    X(human_review) X(idle_timeout) X(interpreter_missing) X(key_revocation) X(key_rotated) \
    X(key_trusted) X(key_untrusted) X(machinery) X(override_open) X(parent_mismatch) \
    X(policy_missing) X(pool_failed) X(preempting) X(push_allowed) X(relative_hooks_path) \
    X(replaced) X(request_incomplete) X(reset) X(resource_timeout) X(session_order) X(stopped) \
    X(task_busy) X(task_failed) X(task_moved) X(task_not_found) X(terminated) X(timed_out) \
    X(unknown_vocabulary) X(worker_ended) X(workflow_cycle_detected)

enum amp_code {
#define X(name) AMP_E_##name,
    AMP_CODES_INTERNAL(X)
    AMP_CODES_WORK(X)
    AMP_CODES_CRASH(X)
    AMP_CODES_ANSWER(X)
    AMP_CODES_DEPENDENCY(X)
    AMP_CODES_VALIDATION(X)
    AMP_CODES_PERMISSION(X)
    AMP_CODES_SIZE(X)
    AMP_CODES_ROUTE(X)
    AMP_CODES_UNAVAILABLE(X)
    AMP_CODES_LIMIT(X)
    AMP_CODES_FULL(X)
    AMP_CODES_EXPIRED(X)
    AMP_CODES_TIMEOUT(X)
    AMP_CODES_DUPLICATE(X)
    AMP_CODES_PROGRESS(X)
    AMP_CODES_CANCELLED(X)
    AMP_CODES_PREEMPTED(X)
    AMP_CODES_BUDGET(X)
    AMP_CODES_DEPTH(X)
    AMP_CODES_OTHER(X)
#undef X
};
/* clang-format on */

#endif
