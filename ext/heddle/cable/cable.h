#ifndef HEDDLE_CABLE_H
#define HEDDLE_CABLE_H

/* Registers the forms in which clients of Action Cable get the messages of topics. */
void Init_heddle_cable(void);

#endif
