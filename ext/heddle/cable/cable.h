#pragma once

/* Registers the forms in which clients of Action Cable get the messages of topics. */
void Init_heddle_cable(void);
