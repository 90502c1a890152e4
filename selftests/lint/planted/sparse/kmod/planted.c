// SPDX-License-Identifier: GPL-2.0-only
/* Mistakes that sparse must find. */
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

static DEFINE_SPINLOCK(planted_lock);

/* planted: dereference of noderef expression */
int planted_user(const int __user *pointer);
int planted_user(const int __user *pointer)
{
	return *pointer;
}

/* planted: restricted __le32 degrades to integer */
u32 planted_endian(__le32 value);
u32 planted_endian(__le32 value)
{
	return value + 1;
}

/* planted: context imbalance in 'planted_locked' */
void planted_locked(int take);
void planted_locked(int take)
{
	if (take)
		spin_lock(&planted_lock);
}

/* planted: was not declared. Should it be static? */
int planted_global;

MODULE_LICENSE("GPL");
