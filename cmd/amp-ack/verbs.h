/* What main.c puts together: each verb's option table and function, in the file of its name. */
#ifndef AMP_ACK_VERBS_H
#define AMP_ACK_VERBS_H

#include "cli/rows.h"
#include "metrics/metrics.h"

/* Options that several verbs have; the tool's table names them. */
extern const char *ack_state, *ack_as, *ack_config;
extern int64_t ack_lock_timeout_ms;
/* --metrics of the verbs that count. */
extern struct amp_metrics_options ack_metrics;
/* The last values; rc is passed on, or becomes -1 where they could not be written. */
int ack_metrics_end(struct amp_metrics *m, int rc, struct amp_error *err);

extern const struct amp_opt track_opts[], send_opts[], sweep_opts[], watch_opts[], dead_list_opts[],
    dead_show_opts[], dead_requeue_opts[], dead_purge_opts[], status_opts[], log_opts[],
    show_opts[], token_opts[], repair_opts[];
extern const struct amp_opt cursors_list_opts[], cursors_edit_opts[];
int ack_cursors_list(int argc, char **argv);
int ack_cursors_show(int argc, char **argv);
int ack_cursors_move(int argc, char **argv);
int ack_cursors_retire(int argc, char **argv);
int ack_track(int argc, char **argv);
int ack_send(int argc, char **argv);
int ack_sweep(int argc, char **argv);
int ack_watch(int argc, char **argv);
int ack_dead_list(int argc, char **argv);
int ack_dead_show(int argc, char **argv);
int ack_dead_requeue(int argc, char **argv);
extern const struct amp_opt doctor_opts[];
int ack_doctor(int argc, char **argv);
extern const struct amp_opt dead_export_opts[];
int ack_dead_export(int argc, char **argv);
int ack_dead_purge(int argc, char **argv);
int ack_status(int argc, char **argv);
int ack_log(int argc, char **argv);
int ack_show(int argc, char **argv);
int ack_token(int argc, char **argv);
int ack_repair(int argc, char **argv);

#endif
