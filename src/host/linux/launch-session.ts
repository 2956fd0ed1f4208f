// How does the launch server start a process whose streams the agent holds? With pipes, or with a terminal of its own. Our ends of
// them are handed to the agent as they are, so that no data passes through here; only a terminal must be relayed.
import { closeSync, fchownSync, readdirSync, readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { ReadStream } from 'node:tty'
import type { TerminalSize } from '../../streams/terminal-sizes.ts'
import type { SessionRequest, SessionStream } from './launch-messages.ts'
import type { StartProcess } from './start-process.ts'
import { makePipe, makeSocketPair, openTerminal, resizeTerminal } from './terminals.ts'

export interface Session {
  resize(size: TerminalSize): void
  /** Kills the process and everything of its session. */
  kill(): void
}

interface Listener {
  onStream(name: SessionStream, socket: Socket): void
  /** Called once, when the process has gone. */
  onExit(exitCode: number): void
}

/** fchown: leave the group as it is; rights for the owner suffice. */
const sameGroup = -1

export function startSession(start: StartProcess, request: SessionRequest, listener: Listener): Promise<Session> {
  return request.tty ? withTerminal(start, request, listener) : withPipes(start, request, listener)
}

async function withPipes(start: StartProcess, request: SessionRequest, listener: Listener): Promise<Session> {
  const { stdin, owner = 0 } = request
  const [input, output, errors] = [stdin ? makePipe() : undefined, makePipe(), makePipe()]
  const given = [...(input ? [input.read] : []), output.write, errors.write]
  const kept = [...(input ? [input.write] : []), output.read, errors.read]
  try {
    for (const fd of given) fchownSync(fd, owner, sameGroup)
    const stdio = [input?.read, output.write, errors.write] as const
    const exited = Promise.withResolvers<number>()
    const pid = await start(request, stdio, exited.resolve)
    // Sockets that are only handed on must not read: what they read would be lost.
    const asSocket = (fd: number) => new Socket({ fd, readable: false, writable: false })
    if (input) listener.onStream('stdin', asSocket(input.write))
    listener.onStream('stdout', asSocket(output.read))
    listener.onStream('stderr', asSocket(errors.read))
    // Whoever hears of the end has all streams.
    void exited.promise.then((exitCode) => listener.onExit(exitCode))
    return { resize() {}, kill: () => killSession(pid) }
  } catch (error) {
    kept.forEach(closeSync)
    throw error
  } finally {
    given.forEach(closeSync)
  }
}

async function withTerminal(start: StartProcess, request: SessionRequest, listener: Listener): Promise<Session> {
  const { owner = 0, size } = request
  const { master, slave } = openTerminal()
  let open = true
  // `setsid` makes it lead a session, and the terminal its own. It waits in case that it has to fork for that.
  const inSession = { ...request, argv: ['setsid', '--ctty', '--wait', ...request.argv] }
  const exited = Promise.withResolvers<number>()
  let pid: number
  try {
    fchownSync(slave, owner, sameGroup)
    if (size) resizeTerminal(master, size)
    pid = await start(inSession, [slave, slave, slave], exited.resolve)
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
  // Linux reports EIO when nobody holds the other end any more.
  terminal.on('error', close).once('end', close)
  relay.on('error', close).once('close', close)
  listener.onStream('terminal', new Socket({ fd: theirs, readable: false, writable: false }))
  void exited.promise.then((exitCode) => listener.onExit(exitCode))
  return {
    resize: (size) => {
      if (open) resizeTerminal(master, size)
    },
    kill: () => killSession(pid),
  }
}

/** A process that forks while we read /proc is found in the next round. */
const killRounds = 5

/** By session, not by group: a shell gives each of its jobs a group of its own. */
function killSession(leader: number): void {
  for (let rounds = 0; rounds < killRounds; rounds++) {
    const members = membersOf(leader)
    if (members.length === 0) return
    for (const pid of members) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // it has gone by itself
      }
    }
  }
}

/** The leader's session, and the one that its child began (the command whose terminal it is). */
function membersOf(leader: number): readonly number[] {
  const all = readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const text = readFileSync(`/proc/${name}/stat`, 'utf8')
      const [, parent, , session] = text.slice(text.lastIndexOf(')') + 2).split(' ')
      return [{ pid: Number(name), parent: Number(parent), session: Number(session) }]
    } catch {
      return [] // gone while we looked
    }
  })
  const begun = all.filter(({ pid, parent, session }) => parent === leader && session === pid).map(({ pid }) => pid)
  return all.filter(({ session }) => session === leader || begun.includes(session)).map(({ pid }) => pid)
}
