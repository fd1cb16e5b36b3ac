/* The list of the machines that the rooms define. */
#include <amp/machines.h>

const struct amp_fsm *const amp_machines[] = {
#define X(name) &amp_##name##_fsm,
    AMP_MACHINE_LIST(X)
#undef X
        NULL};

const struct amp_fsm *amp_machine_find(struct amp_span name)
{
    for (size_t i = 0; amp_machines[i]; i++)
        if (amp_span_is(name, amp_machines[i]->name))
            return amp_machines[i];
    return NULL;
}
