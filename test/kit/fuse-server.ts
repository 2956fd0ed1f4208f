// A FUSE filesystem with one empty directory in it, served by a process of its own: node fuse-server.ts MOUNT_POINT.
// SIGSTOP makes it a server that no longer answers; SIGKILL ends it, and with it every call that waits for it. Needs root.
import { openSync, readSync, writeSync } from 'node:fs'
import * as libc from '../../src/host/linux/libc.ts'

const [target = ''] = process.argv.slice(2)
const device = openSync('/dev/fuse', 'r+')
libc.mount('hawser-test', target, 'fuse', 0, `fd=${device},rootmode=40000,user_id=0,group_id=0,allow_other`)
console.log('served')

const opcodes = { getattr: 3, setattr: 4, lookup: 1, forget: 2, open: 14, statfs: 17, init: 26, opendir: 27 } as const
const [readdir, releasedir, interrupt, batchForget] = [28, 29, 36, 42]
const noEntry = -2
const notSupported = -38
const request = Buffer.alloc(1 << 18)

for (;;) {
  let size: number
  try {
    size = readSync(device, request)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENODEV') process.exit(0) // unmounted
    continue
  }
  if (size < 40) continue
  const opcode = request.readUInt32LE(4)
  if (opcode === opcodes.forget || opcode === batchForget || opcode === interrupt) continue
  reply(request.readBigUInt64LE(8), answerTo(opcode))
}

function reply(unique: bigint, answer: Buffer | number): void {
  const body = typeof answer === 'number' ? Buffer.alloc(0) : answer
  const header = Buffer.alloc(16)
  header.writeUInt32LE(16 + body.length, 0)
  header.writeInt32LE(typeof answer === 'number' ? answer : 0, 4)
  header.writeBigUInt64LE(unique, 8)
  try {
    writeSync(device, Buffer.concat([header, body]))
  } catch {
    // Whoever asked has given up.
  }
}

/** A body, or an error number. */
function answerTo(opcode: number): Buffer | number {
  if (opcode === opcodes.init) {
    const body = Buffer.alloc(64)
    body.writeUInt32LE(7, 0)
    body.writeUInt32LE(31, 4)
    body.writeUInt32LE(65_536, 20)
    return body
  }
  // Nothing is cached (valid for no time at all), so that every question needs the server.
  if (opcode === opcodes.getattr || opcode === opcodes.setattr) {
    const body = Buffer.alloc(104)
    body.writeBigUInt64LE(1n, 16)
    body.writeUInt32LE(0o40755, 16 + 60)
    body.writeUInt32LE(2, 16 + 64)
    return body
  }
  if (opcode === opcodes.lookup) return noEntry
  if (opcode === opcodes.open || opcode === opcodes.opendir) return Buffer.alloc(16)
  if (opcode === opcodes.statfs) return Buffer.alloc(80)
  if (opcode === readdir || opcode === releasedir) return Buffer.alloc(0)
  return notSupported
}
