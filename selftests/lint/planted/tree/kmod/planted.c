int planted;




/* planted: planted.c:1: names no licence */
#if LINUX_VERSION_CODE > 1 /* planted: a version number lies */
#endif
/* TODO planted: TODO */
