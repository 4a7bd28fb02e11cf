// Tries to read a file of the host while it is compiled.
#include "/etc/passwd"
