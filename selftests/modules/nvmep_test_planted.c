// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvmep_test_planted: triggers bugs on request, so that a test can check that
 * the debug kernels' checkers report them. For tests only.
 *
 * The name of a bug is written to the debugfs file nvmep_test_planted. Each is
 * triggered once and has no effect beyond the report; a leak stays until
 * "leak-undone" is written, so that it is not taken for a real one.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>

#define PLANTED_BYTES	64
#define PLANTED_LEAKS	512
#define PLANTED_RACE_MS	3000

static DEFINE_MUTEX(planted_first);
static DEFINE_MUTEX(planted_second);
static DEFINE_SPINLOCK(planted_spinlock);

/* Hidden from compilers and static checkers: the bug must reach the kernel. */
static void *planted_memory(void)
{
	static const u8 zeroes[PLANTED_BYTES];
	void *memory = kmemdup(zeroes, sizeof(zeroes), GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(memory);
	return memory;
}

static int planted_use_after_free(void)
{
	u32 *word = planted_memory();

	if (!word)
		return -ENOMEM;
	kvfree(word);
	OPTIMIZER_HIDE_VAR(word);
	return READ_ONCE(*word) & 1;
}

static int planted_lock_order(void)
{
	mutex_lock(&planted_first);
	mutex_lock(&planted_second);
	mutex_unlock(&planted_second);
	mutex_unlock(&planted_first);

	mutex_lock(&planted_second);
	mutex_lock(&planted_first);
	mutex_unlock(&planted_first);
	mutex_unlock(&planted_second);
	return 0;
}

static int planted_sleep(void)
{
	spin_lock(&planted_spinlock);
	might_sleep();
	spin_unlock(&planted_spinlock);
	return 0;
}

static int planted_refcount(void)
{
	refcount_t count = REFCOUNT_INIT(1);

	refcount_dec(&count);
	return 0;
}

static int planted_shift(void)
{
	int bits = 33;

	OPTIMIZER_HIDE_VAR(bits);
	return (1 << bits) & 1;
}

static void planted_timer_function(struct timer_list *timer)
{
}

static int planted_timer(void)
{
	struct timer_list *timer = planted_memory();

	if (!timer)
		return -ENOMEM;
	timer_setup(timer, planted_timer_function, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	/* Object debugging reports it and stops the timer. */
	kvfree(timer);
	return 0;
}

static int planted_dma_size(void)
{
	struct pci_dev *pdev = pci_get_class(PCI_CLASS_STORAGE_EXPRESS, NULL);
	void *memory = planted_memory();
	dma_addr_t address;
	int ret = -ENODEV;

	if (!pdev || !memory)
		goto out;
	ret = -EIO;
	address = dma_map_single(&pdev->dev, memory, PLANTED_BYTES, DMA_TO_DEVICE);
	if (dma_mapping_error(&pdev->dev, address))
		goto out;
	dma_unmap_single(&pdev->dev, address, PLANTED_BYTES / 2, DMA_TO_DEVICE);
	ret = 0;
out:
	pci_dev_put(pdev);
	kvfree(memory);
	return ret;
}

/*
 * Addresses with all bits inverted, which kmemleak's scan does not take for
 * pointers.
 */
static unsigned long planted_leaks[PLANTED_LEAKS];

static int planted_leak_undone(void)
{
	unsigned int i;

	for (i = 0; i < PLANTED_LEAKS; i++) {
		if (planted_leaks[i])
			kvfree((void *)~planted_leaks[i]);
		planted_leaks[i] = 0;
	}
	return 0;
}

static int planted_leak(void)
{
	unsigned int i;
	void *memory;

	planted_leak_undone();
	/*
	 * Many, because pointers to the latest objects stay in the allocator's
	 * own caches.
	 */
	for (i = 0; i < PLANTED_LEAKS; i++) {
		memory = planted_memory();
		if (!memory)
			return -ENOMEM;
		planted_leaks[i] = ~(unsigned long)memory;
	}
	return 0;
}

static unsigned int planted_counter;

static int planted_count(void *unused)
{
	while (!kthread_should_stop()) {
		planted_counter++;
		cond_resched();
	}
	return 0;
}

static int planted_race(void)
{
	struct task_struct *one, *two;

	one = kthread_run(planted_count, NULL, "planted-1");
	if (IS_ERR(one))
		return PTR_ERR(one);
	two = kthread_run(planted_count, NULL, "planted-2");
	msleep(PLANTED_RACE_MS);
	kthread_stop(one);
	if (IS_ERR(two))
		return PTR_ERR(two);
	kthread_stop(two);
	return 0;
}

static const struct planted {
	const char *name;
	int (*make)(void);
} planted_mistakes[] = {
	{ "use-after-free", planted_use_after_free },
	{ "lock-order", planted_lock_order },
	{ "sleep", planted_sleep },
	{ "refcount", planted_refcount },
	{ "shift", planted_shift },
	{ "timer", planted_timer },
	{ "dma-size", planted_dma_size },
	{ "leak", planted_leak },
	{ "leak-undone", planted_leak_undone },
	{ "race", planted_race },
};

static ssize_t planted_write(struct file *file, const char __user *user,
			     size_t length, loff_t *offset)
{
	char name[32] = "";
	unsigned int i;
	int ret;

	if (length >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, user, length))
		return -EFAULT;
	for (i = 0; i < ARRAY_SIZE(planted_mistakes); i++) {
		if (strcmp(name, planted_mistakes[i].name))
			continue;
		ret = planted_mistakes[i].make();
		return ret < 0 ? ret : length;
	}
	return -EINVAL;
}

static const struct file_operations planted_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = planted_write,
};

static struct dentry *planted_file;

static int __init planted_init(void)
{
	planted_file = debugfs_create_file("nvmep_test_planted", 0200, NULL, NULL,
					   &planted_fops);
	return PTR_ERR_OR_ZERO(planted_file);
}

static void __exit planted_exit(void)
{
	debugfs_remove(planted_file);
	planted_leak_undone();
}

module_init(planted_init);
module_exit(planted_exit);
MODULE_DESCRIPTION("Triggers bugs that a debug kernel has to report, for tests");
MODULE_LICENSE("GPL");
