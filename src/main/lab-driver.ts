// Which driver does the lab test, and who runs it? The built-in one or the user's command as a child process, or one that
// listens already. Without root there are no mounts: the built-in driver gives way to the model driver in memory.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../clock/clock.ts'
import { createSystemClock } from '../clock/system-clock.ts'
import { openChannel } from '../csi/channel.ts'
import { statusText } from '../csi/codes.ts'
import { createIdentityCalls } from '../csi/identity.ts'
import { createDirectoryDriver } from '../csi/model/directory-driver.ts'
import { modelDriverName } from '../csi/model/driver.ts'
import { createWire, directTransport } from '../csi/service.ts'
import { createLinuxHost } from '../host/linux/linux-host.ts'
import { createModelHost } from '../host/model/model-host.ts'
import { UsageError } from '../installation/config.ts'
import type { LabDeps } from '../lab/run.ts'

export type DriverChoice =
  | { readonly kind: 'built-in'; readonly mode: 'local' | 'shared' }
  | { readonly kind: 'model' }
  | { readonly kind: 'socket'; readonly path: string }
  /** `{socket}` in its words, and CSI_ENDPOINT in its environment, say where it shall listen. */
  | { readonly kind: 'command'; readonly words: readonly string[] }

export interface LabDriver extends LabDeps, AsyncDisposable {}

export interface LabPlace {
  /** For paths of the lab; absent: a temporary one that goes with it. */
  readonly directory?: string
}

const nodeId = 'lab-node'

/** Published packages hold JavaScript. */
const builtInProgram = fileURLToPath(
  new URL(import.meta.url.endsWith('.ts') ? '../drivers/local/main.ts' : '../drivers/local/main.js', import.meta.url),
)

export async function openLabDriver(choice: DriverChoice, at: LabPlace, signal: AbortSignal): Promise<LabDriver> {
  const clock = createSystemClock()
  if (choice.kind === 'model') return openModelDriver(clock, signal)
  await using stack = new AsyncDisposableStack()
  const work = realpathSync(mkdtempSync(join(tmpdir(), 'hawser-lab-')))
  stack.defer(() => rmSync(work, { recursive: true, force: true }))
  const place = stack.adopt(placeFor(at.directory ?? join(work, 'paths')), disposePlace)
  const socket = choice.kind === 'socket' ? choice.path : join(work, 'csi.sock')
  const started = startDriver(choice, { clock, socket, work, stack })
  const channel = stack.use(openChannel(socket))
  // A socket of somebody else's is asked once, by the lab itself.
  if (choice.kind !== 'socket') await untilAnswered(clock, channel.transport, started, signal)
  const owned = stack.move()
  return {
    clock,
    transport: channel.transport,
    place,
    ...(started.kill && { kill: started.kill }),
    ...(started.restart && {
      async restart(stop: AbortSignal) {
        await started.restart?.()
        await untilAnswered(clock, channel.transport, started, stop)
      },
    }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

async function openModelDriver(clock: Clock, signal: AbortSignal): Promise<LabDriver> {
  const host = createModelHost({ clock })
  const dataDirectory = '/data'
  await host.files.mkdirAll(dataDirectory, 0o700, signal)
  const { handlers } = createDirectoryDriver({ host, clock, dataDirectory, name: modelDriverName, nodeId })
  const place = { host, directory: '/lab' }
  return { clock, transport: directTransport(handlers), place, [Symbol.asyncDispose]: async () => {} }
}

type Place = LabDeps['place'] & { readonly close?: () => Promise<void> }

/** Mounts are seen, and undone, only by root. */
function placeFor(directory: string): Place {
  if (process.getuid?.() !== 0) return { why: 'mounting needs root' }
  const host = createLinuxHost()
  return { host, directory, ...growth(), close: async () => host[Symbol.asyncDispose]() }
}

/** Growing a mounted ext4 filesystem is a right of its own, which containers often lack. */
function growth(): { readonly growthLack?: string } {
  const [, capabilities = '0'] = /^CapEff:\s*([0-9a-f]+)/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? []
  const isAllowed = ((BigInt(`0x${capabilities}`) >> 24n) & 1n) === 1n
  return isAllowed ? {} : { growthLack: 'growing a mounted filesystem needs the capability CAP_SYS_RESOURCE' }
}

const disposePlace = (place: Place) => place.close?.()

interface StartDeps {
  readonly clock: Clock
  readonly socket: string
  readonly work: string
  readonly stack: AsyncDisposableStack
}

/** A driver that is being run, by us or by somebody else. */
interface Started {
  restart?(): Promise<void>
  /** As a crash: at once, and what it was doing stays half done. */
  kill?(): Promise<void>
  /** Why it will never answer; undefined while it may. */
  ended(): string | undefined
}

function startDriver(choice: Exclude<DriverChoice, { kind: 'model' }>, deps: StartDeps): Started {
  switch (choice.kind) {
    case 'socket':
      return { ended: () => undefined }
    case 'built-in': {
      const options = ['--data', join(deps.work, 'data'), '--node', nodeId, '--mode', choice.mode]
      return startCommand([process.execPath, builtInProgram, '--socket', '{socket}', ...options], deps)
    }
    case 'command':
      return startCommand(choice.words, deps)
    default:
      return choice satisfies never
  }
}

const stopMs = 5_000
const keptOutput = 4_000

function startCommand(words: readonly string[], deps: StartDeps): Started {
  const { clock, socket, stack } = deps
  const [program = '', ...args] = words.map((word) => word.replaceAll('{socket}', socket))
  let child: ChildProcess | undefined
  let output = ''
  let failure: string | undefined
  const start = () => {
    rmSync(socket, { force: true })
    failure = undefined
    const mine = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, CSI_ENDPOINT: `unix://${socket}` },
      // A group of its own, so that what it starts ends with it.
      detached: true,
    })
    const keep = (piece: Buffer) => void (output = `${output}${piece.toString()}`.slice(-keptOutput))
    mine.stdout?.on('data', keep)
    mine.stderr?.on('data', keep)
    mine.once('error', (error) => void (failure = error.message))
    mine.once('exit', (code, by) => void (failure ??= `it ended with ${by ?? `exit code ${code}`}`))
    child = mine
  }
  const stop = async (name: NodeJS.Signals) => {
    const mine = child
    if (mine?.pid === undefined || mine.exitCode !== null || mine.signalCode !== null) return
    const ended = once(mine, 'exit')
    endGroup(mine.pid, name)
    const timer = clock.at(clock.now() + stopMs, () => endGroup(mine.pid, 'SIGKILL'))
    await ended
    timer[Symbol.dispose]()
  }
  stack.defer(() => stop('SIGTERM'))
  start()
  return {
    ended: () => (failure === undefined ? undefined : `${failure}${output === '' ? '' : `\n${output.trimEnd()}`}`),
    async restart() {
      await stop('SIGTERM')
      start()
    },
    kill: () => stop('SIGKILL'),
  }
}

function endGroup(pid: number | undefined, name: NodeJS.Signals): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, name)
  } catch {
    // It has ended by itself meanwhile.
  }
}

const startMs = 30_000

/** Until the driver tells its name; a driver of ours that has ended, or says nothing for too long, is a mistake of the user. */
async function untilAnswered(
  clock: Clock,
  transport: LabDeps['transport'],
  started: Started,
  signal: AbortSignal,
): Promise<void> {
  const identity = createIdentityCalls({ wire: createWire(transport), clock, timeoutMs: 5_000 })
  const begun = clock.steady()
  for (;;) {
    try {
      await identity.info(signal)
      return
    } catch (error) {
      const ended = started.ended()
      if (ended !== undefined) throw new UsageError(`the driver does not run: ${ended}`)
      if (clock.steady() - begun > startMs)
        throw new UsageError(`the driver does not answer after ${startMs / 1_000} s: ${statusText(error)}`)
      await clock.sleep(100, signal)
    }
  }
}
