// How are block and loop devices handled inside a worker thread? By ioctl; no losetup, no blockdev.
// A loop device also serves as a lock: while it holds a device open, the kernel cannot give that name to another disk.

import * as fs from 'node:fs'
import type { LoopRequest } from '../host.ts'
import { HostError, hasCode } from '../host-error.ts'
import * as libc from './libc.ts'

const BLKROGET = 0x125e
const BLKFLSBUF = 0x1261
const BLKGETSIZE64 = 0x80081272
const LOOP_CLR_FD = 0x4c01
const LOOP_SET_CAPACITY = 0x4c07
const LOOP_CONFIGURE = 0x4c0a
const LOOP_CTL_GET_FREE = 0x4c82
const LO_FLAGS_READ_ONLY = 1
const LO_FLAGS_AUTOCLEAR = 4
const LO_FLAGS_DIRECT_IO = 16

export const deviceCalls = {
  deviceSize(device: string): bigint {
    return withOpen(device, libc.O_RDONLY | libc.O_NONBLOCK, (descriptor) => {
      const buffer = Buffer.alloc(8)
      libc.ioctlBuffer(descriptor, BLKGETSIZE64, buffer)
      return buffer.readBigUInt64LE()
    })
  },

  deviceReadOnly(device: string): boolean {
    return withOpen(device, libc.O_RDONLY | libc.O_NONBLOCK, (descriptor) => {
      const buffer = Buffer.alloc(4)
      libc.ioctlBuffer(descriptor, BLKROGET, buffer)
      return buffer.readInt32LE() !== 0
    })
  },

  deviceInUse(device: string): boolean {
    if (!fs.statSync(device).isBlockDevice()) return false
    try {
      return withOpen(device, libc.O_RDONLY | libc.O_EXCL | libc.O_NONBLOCK, () => false)
    } catch (error) {
      if (!hasCode(error, 'EBUSY')) throw error
      return true
    }
  },

  flushDevice(device: string): void {
    withOpen(device, libc.O_RDONLY | libc.O_NONBLOCK, (descriptor) => libc.ioctlNumber(descriptor, BLKFLSBUF, 0))
  },

  /** Reads both ends: a device that cannot be read, or holds anything, must never be taken for a blank one (WART-12). */
  endsAreZero(device: string, sizeBytes: bigint): boolean {
    const length = Number(sizeBytes < 1_048_576n ? sizeBytes : 1_048_576n)
    const descriptor = fs.openSync(device, 'r')
    try {
      return [0n, sizeBytes - BigInt(length)].every((position) => {
        const end = Buffer.alloc(length, 0xff) // what is not read does not count as zero
        fs.readSync(descriptor, end, 0, length, position)
        return end.every((byte) => byte === 0)
      })
    } finally {
      fs.closeSync(descriptor)
    }
  },

  attachLoop(request: LoopRequest): string {
    const backing = libc.open(request.file, request.readOnly ? libc.O_RDONLY : libc.O_RDWR)
    try {
      return configureFreeLoop(backing, request)
    } finally {
      libc.close(backing)
    }
  },

  /** ENXIO: not bound to anything; a device node that is gone is free as well. */
  detachLoop(device: string): void {
    try {
      withOpen(device, libc.O_RDONLY, (descriptor) => libc.ioctlNumber(descriptor, LOOP_CLR_FD, 0))
    } catch (error) {
      if (!hasCode(error, 'ENXIO', 'ENOENT', 'ENODEV')) throw error
    }
  },

  refreshLoop(device: string): void {
    withOpen(device, libc.O_RDWR, (descriptor) => libc.ioctlNumber(descriptor, LOOP_SET_CAPACITY, 0))
  },

  loopsOf(file: string): string[] {
    const names = new Set([file, resolved(file)])
    return fs
      .readdirSync('/sys/block')
      .filter((name) => /^loop\d+$/.test(name))
      .filter((name) => names.has(backingFile(name)))
      .map((name) => `/dev/${name}`)
  },
}

/** Between GET_FREE and CONFIGURE another process may take the device: EBUSY, ask again. */
function configureFreeLoop(backing: number, request: LoopRequest): string {
  const control = libc.open('/dev/loop-control', libc.O_RDWR)
  try {
    for (let attempt = 0; attempt < 64; attempt += 1) {
      const device = `/dev/loop${libc.ioctlNumber(control, LOOP_CTL_GET_FREE, 0)}`
      try {
        const mode = request.readOnly ? libc.O_RDONLY : libc.O_RDWR
        withOpen(device, mode, (loop) => libc.ioctlBuffer(loop, LOOP_CONFIGURE, loopConfiguration(backing, request)))
        return device
      } catch (error) {
        if (!hasCode(error, 'EBUSY')) throw error
      }
    }
  } finally {
    libc.close(control)
  }
  throw new HostError('EBUSY', `no loop device could be had for ${request.file}`, { path: request.file })
}

function loopConfiguration(backing: number, request: LoopRequest): Buffer {
  const configuration = Buffer.alloc(304)
  configuration.writeUInt32LE(backing, 0)
  let flags = request.readOnly ? LO_FLAGS_READ_ONLY : 0
  if (request.autoClear === true) flags |= LO_FLAGS_AUTOCLEAR
  if (request.directIo === true) flags |= LO_FLAGS_DIRECT_IO
  configuration.writeUInt32LE(flags, 8 + 52)
  // The name is for people (losetup shows it); 63 bytes and an ending zero fit.
  Buffer.from(request.file)
    .subarray(0, 63)
    .copy(configuration, 8 + 56)
  return configuration
}

function backingFile(name: string): string {
  try {
    return fs
      .readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8')
      .trimEnd()
      .replace(/ \(deleted\)$/, '')
  } catch {
    return ''
  }
}

function resolved(file: string): string {
  try {
    return fs.realpathSync.native(file)
  } catch {
    return file
  }
}

function withOpen<T>(path: string, flags: number, use: (descriptor: number) => T): T {
  const descriptor = libc.open(path, flags)
  try {
    return use(descriptor)
  } finally {
    libc.close(descriptor)
  }
}
