// How is a process started whose streams somebody else holds? With pipes, or with a terminal of its own. Our ends of them are
// handed to the agent as they are, so that what is said never passes through here; only a terminal must be relayed.
import { spawn } from 'node:child_process'
import type { StdioOptions } from 'node:child_process'
import { closeSync, fchownSync, readdirSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { constants } from 'node:os'
import { ReadStream } from 'node:tty'
import type { TerminalSize } from '../../streams/terminal-sizes.ts'
import type { TalkRequest, TalkStream } from './launch-server.ts'
import { makePipe, makeSocketPair, openTerminal, resizeTerminal } from './terminals.ts'

export interface Talk {
  resize(size: TerminalSize): void
  /** Kills the process and everything of its session. */
  kill(): void
}

interface Listener {
  tell(name: TalkStream, socket: Socket): void
  /** Called once, when the process has gone. */
  end(exitCode: number): void
}

/** Rights for the owner suffice. */
const ownGroup = -1

export function startTalk(request: TalkRequest, listener: Listener): Talk {
  return request.tty ? withTerminal(request, listener) : withPipes(request, listener)
}

function withPipes({ argv, env, stdin, owner = 0 }: TalkRequest, listener: Listener): Talk {
  const [input, output, errors] = [stdin ? makePipe() : undefined, makePipe(), makePipe()]
  const given = [...(input ? [input.read] : []), output.write, errors.write]
  const kept = [...(input ? [input.write] : []), output.read, errors.read]
  try {
    for (const fd of given) fchownSync(fd, owner, ownGroup)
    const stdio = [input?.read ?? 'ignore', output.write, errors.write] as StdioOptions
    const pid = start(argv, env, stdio, true, listener)
    // Sockets that are only handed on must not read: what they took would be lost.
    const asSocket = (fd: number) => new Socket({ fd, readable: false, writable: false })
    if (input) listener.tell('stdin', asSocket(input.write))
    listener.tell('stdout', asSocket(output.read))
    listener.tell('stderr', asSocket(errors.read))
    return { resize() {}, kill: () => killSession(pid) }
  } catch (error) {
    kept.forEach(closeSync)
    throw error
  } finally {
    given.forEach(closeSync)
  }
}

function withTerminal({ argv, env, owner = 0, size }: TalkRequest, listener: Listener): Talk {
  const { master, slave } = openTerminal()
  let open = true
  // `setsid --ctty` makes the terminal its own; without a session of its own (it must lead one) it would fork first.
  const whole = ['setsid', '--ctty', ...argv] as const
  let pid: number
  try {
    fchownSync(slave, owner, ownGroup)
    if (size) resizeTerminal(master, size)
    pid = start(whole, env, [slave, slave, slave], false, listener)
  } catch (error) {
    closeSync(master)
    throw error
  } finally {
    closeSync(slave)
  }
  const [ours, theirs] = makeSocketPair()
  const [terminal, relay] = [new ReadStream(master), new Socket({ fd: ours })]
  terminal.pipe(relay)
  relay.pipe(terminal, { end: false })
  const close = () => {
    open = false
    relay.end()
    terminal.destroy()
  }
  // EIO is how Linux says that nobody holds the other end any more.
  terminal.on('error', close).once('end', close)
  relay.on('error', close).once('close', close)
  listener.tell('terminal', new Socket({ fd: theirs, readable: false, writable: false }))
  return {
    resize: (size) => {
      if (open) resizeTerminal(master, size)
    },
    kill: () => killSession(pid),
  }
}

function start(
  argv: readonly [string, ...string[]],
  env: Readonly<Record<string, string>>,
  stdio: StdioOptions,
  ownSession: boolean,
  listener: Listener,
): number {
  const [program, ...args] = argv
  const child = spawn(program, args, { detached: ownSession, env: { ...env }, cwd: '/', stdio })
  // Reported by `pid` below, which is there at once or never.
  child.once('error', () => {})
  if (child.pid === undefined) throw new Error(`${program} cannot be started`)
  child.once('exit', (code, signal) => listener.end(code ?? 128 + (signal ? constants.signals[signal] : 9)))
  return child.pid
}

/** A shell gives each of its jobs a group of its own; what they share is the session. */
function killSession(leader: number): void {
  for (const pid of [leader, ...membersOf(leader)]) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // it has gone by itself
    }
  }
}

function membersOf(session: number): readonly number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'utf8')
      const [, , , found] = text.slice(text.lastIndexOf(')') + 2).split(' ')
      return Number(found) === session ? [Number(name)] : []
    } catch {
      return [] // gone while we looked
    }
  })
}
