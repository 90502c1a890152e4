// SPDX-License-Identifier: GPL-2.0-only
/* Mistakes that the kernel's coccinelle scripts must find. */

/* planted: [ifnullfree] */
void planted_free(void *pointer)
{
	if (pointer)
		kfree(pointer);
}

/* planted: [double_lock] */
int planted_double(struct planted *planted)
{
	mutex_lock(&planted->lock);
	mutex_lock(&planted->lock);
	mutex_unlock(&planted->lock);
	return 0;
}

/* planted: [mini_lock] */
int planted_return(struct planted *planted)
{
	mutex_lock(&planted->lock);
	if (planted->gone)
		return -ENODEV;
	mutex_unlock(&planted->lock);
	return 0;
}

/* planted: [kfree] */
int planted_use(struct planted *planted)
{
	kfree(planted);
	return planted->gone;
}

/* planted: [unsigned_lesser_than_zero] */
int planted_unsigned(void)
{
	unsigned int count;

	count = planted_count();
	if (count < 0)
		return -EINVAL;
	return 0;
}
