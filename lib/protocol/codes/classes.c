/* The codes of each class, also those that AOP alone has. */
#include "protocol/codes/classes.h"

#include <string.h>
#include <strings.h>

static const char *const lists[AMP_CODE_CLASSES] = {
    [AMP_CODE_FOREIGN] = "",
    [AMP_CODE_INTERNAL] =
        "bad_access bad_access_rule bad_config bad_guard_policy bad_key bad_policy bad_record "
        "bad_revocation branch_checked_out branch_moved channel_failed config_invalid "
        "crypto_failed E_ROLLBACK_FAILED editor_failed file_changing filesystem_error "
        "folder_differs folder_permissions foreign_hooks_path git_error guard_failed "
        "helper_failed helper_missing helper_protocol hitl_prompt hook_conflict id_space_full "
        "include_limit index_failed inotify install_failed internal internal_error "
        "invalid_answer invalid_output key_made key_permissions key_worker_failed keygen_failed "
        "log log_damaged log_failed log_format log_key_invalid log_no_key log_repaired "
        "log_tampered machine_unsound memfd memfd_create nested_turn network_file_system "
        "no_allowed_signers no_curl no_letter no_memory no_random no_terminal not_durable "
        "not_executable not_undone outcome_missing partial_delivery path_not_utf8 poll_failed "
        "predicate_error quarantine_unknown repo_unsupported sequence_exhausted "
        "server_name_missing signing_failed snapshot_damaged state_failed state_gone "
        "state_missing state_network_fs sync_in_turn undecided worktree_path worktree_sparse "
        "worktree_unfinished worktree_unlocked",
    [AMP_CODE_WORK] =
        "agent_refused attempt_kept ci_failed declined execution_error failed handoff_rejected "
        "not_done post_create_failed quarantine_limit quarantine_refused retries_exhausted "
        "retry_budget_exceeded tree_limit unproven_claim",
    [AMP_CODE_CRASH] =
        "claim_lost command_failed E_PROCESS_CRASH git_crashed helper_died http_failed "
        "no_worker worker_lost",
    [AMP_CODE_ANSWER] =
        "bad_answer contract_violation E_MALFORMED_RESPONSE E_PARSE_FAILURE invalid_run_result "
        "no_terminal_outcome no_verdict",
    [AMP_CODE_DEPENDENCY] =
        "dependency_missing E_DEPENDENCY_FAILED E_FILE_NOT_FOUND missing_commit no_branch "
        "no_worktree repo_bare repo_not_git snapshot_path unknown_revision worktree_not_found "
        "worktree_unknown",
    [AMP_CODE_VALIDATION] =
        "accept_required ack_timeout_ignored already_decided ambiguous ambiguous_job "
        "ambiguous_question ambiguous_task attempt_not_incremented bad_agent bad_arguments "
        "bad_backoff bad_base bad_branch bad_bundle bad_change bad_choice bad_command bad_enum "
        "bad_file bad_flag bad_form bad_format bad_front_matter bad_headers "
        "bad_helper_arguments bad_host bad_id bad_inbound bad_kind bad_lane bad_log_line "
        "bad_msg_id bad_name bad_number bad_path bad_pattern bad_port bad_position "
        "bad_predicate bad_prefix bad_principal bad_priority bad_protocol bad_question "
        "bad_recipient bad_request bad_reservations bad_route bad_scope bad_spec bad_status "
        "bad_suspended bad_takes bad_task bad_task_id bad_template bad_time bad_timestamp "
        "bad_tree bad_type bad_url bad_usage bad_value batch_corrupt call_malformed "
        "cannot_convert capability_unknown case_collision changed chunk_corrupt command_refused "
        "context_changed corr_id_required diagnostics_required digest_differs digest_mismatch "
        "duplicate_event duplicate_key duplicate_vote E_SCHEMA_VALIDATION "
        "empty_acceptance_criteria eta_in_past eta_range eta_required filter_unsupported "
        "fix_out_of_range foreign_outbox id_mismatch illegal_transition inconsistent_verdict "
        "inferred_failure_class invalid_acceptance_criteria invalid_envelope invalid_json "
        "invalid_project_id invalid_schema invalid_utf8 json kept_in_extension landing_changed "
        "length_required lock_note_missing loop_ended misplaced_verb missing_argument "
        "missing_field missing_route_fields missing_verb more_findings must_suspend "
        "nested_repository no_answer no_context no_data_dir no_key no_keys no_names no_note "
        "no_payload no_request no_routes no_schema no_snapshot no_state no_task not_a_directory "
        "not_a_fifo not_a_file not_a_record not_a_socket not_a_submission not_accepted "
        "not_carried not_due not_found not_pending not_proxied not_registered nothing_to_undo "
        "out_of_range pattern_limit protocol.message.unknown refused_before repeated_option "
        "result_required schema_limit schema_too_deep schema_violation scope_required "
        "seq_not_monotonic session_open special_file stale_dispatch still_running symbolic_link "
        "target_behind target_moved task_not_ended taskId_mismatch terminal too_deep "
        "too_many_options too_many_tokens two_folders type_required unexpected_argument "
        "unexpected_operand unknown_account unknown_field unknown_grant unknown_job "
        "unknown_kind unknown_option unknown_protocol unknown_question unknown_ref "
        "unknown_resource unknown_subject unknown_task unknown_verb unresolved_ref "
        "unsupported_message_type unsupported_protocol unsupported_reply unsupported_stage "
        "usage validation_error version_incompatible why_required worktree_dirty",
    [AMP_CODE_PERMISSION] =
        "access_denied address_refused answer_expired answer_replayed approval_required "
        "bad_sender bad_signature bad_signature_time bad_token bad_token_part blocked "
        "branch_not_bound branch_not_of_role branch_violation confined confinement_unavailable "
        "E_PERMISSION_DENIED guard_bypass hitl_unavailable host_mismatch host_refused "
        "identity_off kept_back key_expired key_not_found key_revoked linked_hooks not_assignee "
        "not_authorized not_beneath not_claimant not_confined not_operator not_proven "
        "path_escape path_forbidden path_reserved pause_limit permission_denied read_only "
        "refused rejected repo_not_owned role_mismatch server_name_hidden server_name_mismatch "
        "state_not_ours state_permissions suspended token_expired token_malformed "
        "token_mismatch token_missing token_not_allowed token_replayed token_unknown "
        "token_untrusted token_unverifiable token_wrong_audience trailer_missing "
        "trust_permissions unauthorized_agent unknown_key unreadable unsigned "
        "worktree_not_bound worktree_outside",
    [AMP_CODE_SIZE] =
        "agent_too_long E_CONTEXT_OVERFLOW file_too_large frame_too_large header_too_large "
        "hello_too_large line_too_long name_too_long oversize_payload path_too_long "
        "payload_too_large producer_full too_long too_many too_many_agents too_many_calls "
        "too_many_commands too_many_connections too_many_descriptors too_many_hosts "
        "too_many_inputs too_many_lines too_many_listeners too_many_paths too_many_proofs "
        "too_many_rows too_many_tasks too_many_types",
    [AMP_CODE_ROUTE] =
        "capability_unavailable E_AGENT_NOT_FOUND invalid_target invalid_targets no_route "
        "parent_not_found",
    [AMP_CODE_UNAVAILABLE] =
        "again_later agent_busy agent_shutdown agent_unavailable breaker_open busy closed_pipe "
        "command_not_found connect_failed E_ALL_MODELS_EXHAUSTED E_MODEL_UNAVAILABLE git_locked "
        "git_unavailable helper_unavailable inbox_busy lock_timeout name_unknown no_command "
        "no_reader owner_unavailable resolver_busy route_failed scope_taken session_busy "
        "spool_busy type_full unknown_pool worktree_locked worktrees_busy",
    [AMP_CODE_LIMIT] = "rate_limited usage_limit",
    [AMP_CODE_FULL] =
        "activity_buffer_full activity_buffer_high backpressure buffer_full control_full "
        "history_full log_full too_frequent",
    [AMP_CODE_EXPIRED] = "cursor_expired deadline_passed expired handoff_expired late ttl_expired",
    [AMP_CODE_TIMEOUT] =
        "ack_timeout command_timeout connect_timeout E_HEARTBEAT_FAILURE E_TIMEOUT git_timeout "
        "header_timeout heartbeat_timeout hello_timeout helper_timeout notify_timeout "
        "output_timeout request_timeout response_timeout timeout tool_timeout wait_timeout",
    [AMP_CODE_DUPLICATE] =
        "already_accepted already_completed already_requeued already_signed duplicate_detected "
        "duplicate_job duplicate_msg_id duplicate_request exists key_exists name_taken "
        "worktree_exists",
    [AMP_CODE_PROGRESS] =
        "already_claimed already_in_progress cursor_fenced cursor_leased handed_over loop_runs",
    [AMP_CODE_CANCELLED] =
        "cancelled cursor_retired ended interrupted superseded task_ended withdrawn",
    [AMP_CODE_PREEMPTED] = "forced_preemption",
    [AMP_CODE_BUDGET] = "budget_exceeded E_COST_LIMIT_EXCEEDED",
    [AMP_CODE_DEPTH] = "E_MAX_DEPTH_EXCEEDED nested_delegation",
};

enum amp_code_class amp_code_class(const char *code)
{
    size_t n = strlen(code);
    for (int i = 0; i < AMP_CODE_CLASSES; i++)
        for (const char *p = lists[i]; *p; p += strspn(p, " ")) {
            size_t len = strcspn(p, " ");
            if (len == n && strncasecmp(p, code, n) == 0)
                return (enum amp_code_class)i;
            p += len;
        }
    return AMP_CODE_FOREIGN;
}
