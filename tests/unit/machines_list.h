/* Every machine of the project. tests/bats/machines.bats fails when one in lib is missing here. */
#ifndef TESTS_MACHINES_LIST_H
#define TESTS_MACHINES_LIST_H

#define MACHINES(X)                                                                                \
    X(agent)                                                                                       \
    X(binding)                                                                                     \
    X(cursor)                                                                                      \
    X(delivery)                                                                                    \
    X(escalation)                                                                                  \
    X(inbox)                                                                                       \
    X(job)                                                                                         \
    X(qa)                                                                                          \
    X(reach)                                                                                       \
    X(task)

#endif
