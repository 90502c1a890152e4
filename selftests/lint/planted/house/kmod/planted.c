int planted;




/* planted: planted.c:1: names no licence */
/* planted: planted.c:1: does not say what it is for */
#if LINUX_VERSION_CODE > 1 /* planted: a version number lies */
#endif
/* TODO planted: TODO */
