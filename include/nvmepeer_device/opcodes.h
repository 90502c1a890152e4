/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * nvmepeer_device/opcodes.h: opcodes of I/O commands (NVM and ZNS command
 * sets).
 */
#ifndef NVMEPEER_DEVICE_OPCODES_H
#define NVMEPEER_DEVICE_OPCODES_H

/** enum nvmepeer_opcode - opcodes of I/O commands */
enum nvmepeer_opcode {
	NVMEPEER_OP_FLUSH = 0x00,
	NVMEPEER_OP_WRITE = 0x01,
	NVMEPEER_OP_READ = 0x02,
	NVMEPEER_OP_COMPARE = 0x05,
	NVMEPEER_OP_WRITE_ZEROES = 0x08,
	NVMEPEER_OP_DATASET_MANAGEMENT = 0x09,
	NVMEPEER_OP_ZONE_APPEND = 0x7d,
};

#endif /* NVMEPEER_DEVICE_OPCODES_H */
