#ifndef HEDDLE_PROCESSES_H
#define HEDDLE_PROCESSES_H

#include <ruby.h>

void Init_heddle_processes(VALUE heddle);

#endif
