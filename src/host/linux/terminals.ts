// Which system calls give a process streams of its own? Pipes, a socket pair, a pseudo-terminal; loaded when first needed.
import { closeSync } from 'node:fs'
import { getSystemErrorName } from 'node:util'
import koffi from 'koffi'
import { HostError } from '../host-error.ts'
import type { TerminalSize } from '../../streams/terminal-sizes.ts'

const O_RDWR = 2
const O_NOCTTY = 0o400
const O_CLOEXEC = 0o2000000
const AF_UNIX = 1
const SOCK_STREAM = 1
const TIOCSWINSZ = 0x5414
/** Opens the other end without a path: nobody can put another device in its place. */
const TIOCGPTPEER = 0x5441

const libc = koffi.load('libc.so.6')
const natives = {
  pipe2: libc.func('pipe2', 'int', ['void*', 'int']),
  socketpair: libc.func('socketpair', 'int', ['int', 'int', 'int', 'void*']),
  posixOpenpt: libc.func('posix_openpt', 'int', ['int']),
  unlockpt: libc.func('unlockpt', 'int', ['int']),
  ioctlNumber: libc.func('ioctl', 'int', ['int', 'unsigned long', 'long']),
  ioctlBuffer: libc.func('ioctl', 'int', ['int', 'unsigned long', 'void*']),
}

export function makePipe(): { readonly read: number; readonly write: number } {
  const [read, write] = pairOf('pipe2', (buffer) => natives.pipe2(buffer, O_CLOEXEC) as number)
  return { read, write }
}

export function makeSocketPair(): readonly [number, number] {
  const type = SOCK_STREAM | O_CLOEXEC
  return pairOf('socketpair', (buffer) => natives.socketpair(AF_UNIX, type, 0, buffer) as number)
}

export function openTerminal(): { readonly master: number; readonly slave: number } {
  const flags = O_RDWR | O_NOCTTY | O_CLOEXEC
  const master = check(natives.posixOpenpt(flags) as number, 'posix_openpt')
  try {
    check(natives.unlockpt(master) as number, 'unlockpt')
    return { master, slave: check(natives.ioctlNumber(master, TIOCGPTPEER, flags) as number, 'TIOCGPTPEER') }
  } catch (error) {
    closeSync(master)
    throw error
  }
}

export function resizeTerminal(master: number, { width, height }: TerminalSize): void {
  const size = Buffer.alloc(8)
  size.writeUInt16LE(height, 0)
  size.writeUInt16LE(width, 2)
  check(natives.ioctlBuffer(master, TIOCSWINSZ, size) as number, 'TIOCSWINSZ')
}

function pairOf(name: string, call: (buffer: Buffer) => number): readonly [number, number] {
  const buffer = Buffer.alloc(8)
  check(call(buffer), name)
  return [buffer.readInt32LE(0), buffer.readInt32LE(4)]
}

function check(result: number, call: string): number {
  if (result >= 0) return result
  const code = getSystemErrorName(-koffi.errno())
  throw new HostError(code, `${call}: ${code}`)
}
