// SPDX-License-Identifier: GPL-2.0-only
/*
 * Accounts: what the mediated queue pairs of one user have and use together, on
 * a controller, and the slow reads that a polling thread makes for them.
 * mediated.h has structures and locks.
 */
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "mediated.h"
#include "qp.h"

/* A read of memory of a device that takes longer counts. */
#define NVMEP_SLOW_READ_NS	(20 * NSEC_PER_USEC)

static unsigned int mediated_read_ms = 100;
module_param(mediated_read_ms, uint, 0644);
MODULE_PARM_DESC(mediated_read_ms,
		 "milliseconds of a second of a polling thread for slow reads of device memory of one user's mediated queue pairs; three times as many for those of all users");

static unsigned int mediated_mapped = 256;
module_param(mediated_mapped, uint, 0644);
MODULE_PARM_DESC(mediated_mapped,
		 "GiB of buffers of one user's mediated queue pairs on a controller");

/* --- users of a thread ---------------------------------------------------- */

/**
 * nvmep_readers_init() - begin without slow reads
 * @readers: new
 */
void nvmep_readers_init(struct nvmep_readers *readers)
{
	spin_lock_init(&readers->lock);
	INIT_LIST_HEAD(&readers->list);
}

/* Frees those that matter no more. */
static void nvmep_readers_expire(struct nvmep_readers *readers, u64 now)
{
	struct nvmep_reader *reader, *next;

	lockdep_assert_held(&readers->lock);

	list_for_each_entry_safe(reader, next, &readers->list, node) {
		if (reader->accounts || nvmep_reads_matter(&reader->reads, now))
			continue;
		list_del(&reader->node);
		kfree(reader);
	}
}

/**
 * nvmep_readers_free() - free the slow reads of a thread
 * @readers: without accounts
 */
void nvmep_readers_free(struct nvmep_readers *readers)
{
	spin_lock(&readers->lock);
	nvmep_readers_expire(readers, U64_MAX);
	spin_unlock(&readers->lock);
}

static struct nvmep_reader *nvmep_reader_find(struct nvmep_readers *readers,
					      kuid_t uid)
{
	struct nvmep_reader *reader;

	lockdep_assert_held(&readers->lock);

	list_for_each_entry(reader, &readers->list, node)
		if (uid_eq(reader->uid, uid))
			return reader;
	return NULL;
}

static struct nvmep_reader *nvmep_reader_get(struct nvmep_readers *readers,
					     kuid_t uid)
{
	struct nvmep_reader *fresh, *reader;

	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return NULL;
	fresh->uid = uid;
	spin_lock(&readers->lock);
	reader = nvmep_reader_find(readers, uid);
	if (!reader) {
		reader = fresh;
		fresh = NULL;
		list_add_tail(&reader->node, &readers->list);
	}
	reader->accounts++;
	spin_unlock(&readers->lock);
	kfree(fresh);
	return reader;
}

static void nvmep_reader_put(struct nvmep_readers *readers,
			     struct nvmep_reader *reader)
{
	spin_lock(&readers->lock);
	reader->accounts--;
	nvmep_readers_expire(readers, ktime_get_ns());
	spin_unlock(&readers->lock);
}

static u64 nvmep_reader_slow_until(struct nvmep_readers *readers,
				   const struct nvmep_reader *reader)
{
	u64 until;

	spin_lock(&readers->lock);
	until = reader->reads.slow_until;
	spin_unlock(&readers->lock);
	return until;
}

/* --- accounts ------------------------------------------------------------- */

static struct nvmep_account *
nvmep_account_find(const struct nvmep_mediator *mediator, kuid_t uid)
{
	struct nvmep_account *account;

	lockdep_assert_held(&mediator->lock);

	list_for_each_entry(account, &mediator->accounts, node)
		if (uid_eq(account->uid, uid))
			return account;
	return NULL;
}

static struct nvmep_account *
nvmep_account_alloc(struct nvmep_mediator *mediator, kuid_t uid)
{
	struct nvmep_account *account;

	account = kzalloc(sizeof(*account), GFP_KERNEL_ACCOUNT);
	if (!account)
		return NULL;
	account->uid = uid;
	account->verify_after = jiffies;
	account->reader = nvmep_reader_get(mediator->readers, uid);
	if (!account->reader) {
		kfree(account);
		return NULL;
	}
	return account;
}

static void nvmep_account_free(struct nvmep_mediator *mediator,
			       struct nvmep_account *account)
{
	nvmep_reader_put(mediator->readers, account->reader);
	kfree(account);
}

/* Frees those that are not used. */
static void nvmep_accounts_expire(struct nvmep_mediator *mediator)
{
	struct nvmep_account *account, *next;

	lockdep_assert_held(&mediator->lock);

	list_for_each_entry_safe(account, next, &mediator->accounts, node) {
		if (account->tenants || account->mapped || account->verifying)
			continue;
		list_del(&account->node);
		nvmep_account_free(mediator, account);
	}
}

/**
 * nvmep_account_get() - give a tenant the account of its user
 * @mediator: the mediator
 * @tenant: new
 *
 * Return: 0 or -ENOMEM.
 */
int nvmep_account_get(struct nvmep_mediator *mediator,
		      struct nvmep_tenant *tenant)
{
	struct nvmep_account *fresh, *account;

	fresh = nvmep_account_alloc(mediator, tenant->qp->uid);
	if (!fresh)
		return -ENOMEM;
	spin_lock(&mediator->lock);
	nvmep_accounts_expire(mediator);
	account = nvmep_account_find(mediator, fresh->uid);
	if (!account) {
		account = fresh;
		fresh = NULL;
		list_add_tail(&account->node, &mediator->accounts);
	}
	account->tenants++;
	tenant->account = account;
	tenant->slow_until = nvmep_reader_slow_until(mediator->readers,
						     account->reader);
	spin_unlock(&mediator->lock);
	if (fresh)
		nvmep_account_free(mediator, fresh);
	return 0;
}

/**
 * nvmep_account_put() - undo nvmep_account_get()
 * @tenant: the tenant, which may have buffers
 */
void nvmep_account_put(struct nvmep_tenant *tenant)
{
	spin_lock(&tenant->mediator->lock);
	tenant->account->tenants--;
	spin_unlock(&tenant->mediator->lock);
}

/**
 * nvmep_accounts_free() - free the accounts of a mediator
 * @mediator: without tenants and their buffers
 */
void nvmep_accounts_free(struct nvmep_mediator *mediator)
{
	spin_lock(&mediator->lock);
	nvmep_accounts_expire(mediator);
	spin_unlock(&mediator->lock);
}

/**
 * nvmep_account_map() - count a buffer of a tenant
 * @tenant: has not left the mediator
 * @bytes: of the buffer, not 0
 *
 * Mappings take addresses of the IOMMU, which the CPU's I/O needs as well.
 *
 * Return: whether the limit of the user allows it.
 */
bool nvmep_account_map(struct nvmep_tenant *tenant, u64 bytes)
{
	u64 limit = (u64)READ_ONCE(mediated_mapped) << 30;
	struct nvmep_account *account = tenant->account;
	bool allowed;

	spin_lock(&tenant->mediator->lock);
	allowed = bytes <= limit && account->mapped <= limit - bytes;
	if (allowed)
		account->mapped += bytes;
	spin_unlock(&tenant->mediator->lock);
	return allowed;
}

/**
 * nvmep_account_unmap() - undo nvmep_account_map()
 * @tenant: the tenant, which may have left the mediator
 * @bytes: of the buffer
 */
void nvmep_account_unmap(struct nvmep_tenant *tenant, u64 bytes)
{
	spin_lock(&tenant->mediator->lock);
	tenant->account->mapped -= bytes;
	spin_unlock(&tenant->mediator->lock);
}

/**
 * nvmep_account_may_read() - may a tenant read memory of a device?
 * @tenant: the tenant; mediator->lock is held
 * @now: nanoseconds
 *
 * Return: whether it may.
 */
bool nvmep_account_may_read(struct nvmep_tenant *tenant, u64 now)
{
	struct nvmep_readers *readers = tenant->mediator->readers;
	bool allowed;

	lockdep_assert_held(&tenant->mediator->lock);

	spin_lock(&readers->lock);
	allowed = nvmep_reads_allowed(&tenant->account->reader->reads,
				      readers->until, tenant->slow_until,
				      READ_ONCE(mediated_read_ms), now);
	spin_unlock(&readers->lock);
	return allowed;
}

/**
 * nvmep_account_read() - count a read of memory of a device
 * @tenant: the tenant; mediator->lock is held
 * @began: nanoseconds
 * @took: nanoseconds
 *
 * Return: whether it was slow.
 */
bool nvmep_account_read(struct nvmep_tenant *tenant, u64 began, u64 took)
{
	struct nvmep_readers *readers = tenant->mediator->readers;

	lockdep_assert_held(&tenant->mediator->lock);

	if (took <= NVMEP_SLOW_READ_NS)
		return false;
	spin_lock(&readers->lock);
	tenant->slow_until = nvmep_reads_add(&tenant->account->reader->reads,
					     &readers->until,
					     tenant->slow_until,
					     READ_ONCE(mediated_read_ms),
					     began, took);
	spin_unlock(&readers->lock);
	return true;
}
