#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Connect the terminal to a serial port of a guest.

usage: console.py SOCKET PID

Ends with the connection, with process PID, or, with status 1, at ^]. The end of input that is not a
terminal becomes an end of file for the guest's shell.
"""
import os
import select
import socket
import sys
import termios
import time
import tty

LEAVE = b"\x1d"
END_OF_FILE = b"\x04"


def connect(path, pid):
	"""Wait for the socket; None if process PID ends before it exists."""
	while os.path.exists(f"/proc/{pid}"):
		port = socket.socket(socket.AF_UNIX)
		try:
			port.connect(path)
			return port
		except OSError:
			port.close()
			time.sleep(0.2)
	return None


def relay(port):
	"""Copy in both directions; the status of the program."""
	inputs = [port, 0]
	while True:
		ready, _, _ = select.select(inputs, [], [])
		if port in ready:
			data = port.recv(4096)
			if not data:
				return 0
			os.write(1, data)
		if 0 in ready:
			data = os.read(0, 256)
			if LEAVE in data:
				return 1
			if not data:
				inputs.remove(0)
			port.sendall(data or END_OF_FILE)


def main():
	port = connect(sys.argv[1], int(sys.argv[2]))
	if not port:
		return 1
	# Until the shell has opened its port, what is typed would be lost, and ^C ends the run.
	greeting = port.recv(4096)
	before = termios.tcgetattr(0) if os.isatty(0) else None
	if before:
		tty.setraw(0)
	try:
		os.write(1, greeting)
		return relay(port) if greeting else 0
	finally:
		if before:
			termios.tcsetattr(0, termios.TCSADRAIN, before)


sys.exit(main())
