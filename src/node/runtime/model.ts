// How do containers behave in the simulator? As a script says: each runs for a while on the virtual clock and ends with a
// code. Its records live in a `ModelMachine`, so that they outlive the agent as real processes do.
import type { PodUid } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Listeners } from '../../loop/listeners.ts'
import { createListeners } from '../../loop/listeners.ts'
import type { CommandStreams } from '../../streams/remote-command.ts'
import type { ImageEntrypoint } from './entrypoints.ts'
import { commandLineOf } from './entrypoints.ts'
import type {
  ContainerExit,
  ContainerRecord,
  ContainerRequest,
  InteractiveRequest,
  Runtime,
  StopRequest,
} from './port.ts'

/** What a container will do: run for so long, then end so. Without `endsAfterMs` it runs until stopped. */
export interface ContainerScript {
  readonly endsAfterMs?: number
  readonly exitCode?: number
  /** How long it takes to obey a stop; more than the grace means it is killed. */
  readonly stopsAfterMs?: number
  /** The start fails with this text. */
  readonly startError?: string
  /** A stop fails with this text, and it runs on. */
  readonly stopError?: string | undefined
  /** What a command inside it ends with; 0 unless told. */
  exec?(argv: readonly string[]): number
}

/** The machine's processes; keep it across restarts of the agent. */
export interface ModelMachine {
  readonly containers: Map<string, ContainerRecord>
  /** The start before the latest, per container. */
  readonly earlier: Map<string, ContainerRecord>
  readonly requests: Map<string, ContainerRequest>
  /** Called with every change of a container, also of those that an earlier agent process started. */
  listeners: Listeners<[ContainerRecord]>
}

export function createModelMachine(): ModelMachine {
  return { containers: new Map(), earlier: new Map(), requests: new Map(), listeners: createListeners() }
}

export interface ModelRuntimeDeps {
  readonly clock: Clock
  readonly machine: ModelMachine
  script?(request: ContainerRequest): ContainerScript
  /** Given: images are names only, as for real processes. Otherwise every image has a program. */
  readonly entrypoints?: readonly ImageEntrypoint[] | undefined
}

export function createModelRuntime(deps: ModelRuntimeDeps): Runtime {
  const model: Model = { script: () => ({}), ...deps }
  const { machine, script, entrypoints } = model
  return {
    version: 'hawser-model://1',
    ...(entrypoints ? { commandLine: (container) => commandLineOf(entrypoints, container) } : {}),
    restore() {
      for (const [key, record] of machine.containers) {
        const request = machine.requests.get(key)
        if (request && !record.exit) scheduleEnd(model, request, record.startedAt)
      }
      return Promise.resolve([...machine.earlier.values(), ...machine.containers.values()])
    },
    async start(request) {
      return startContainer(model, request)
    },
    stop: (request, signal) => stopContainer(model, request, signal),
    async exec(target) {
      const exitCode = script(runningRequest(model, target)).exec?.(target.argv) ?? 0
      return { exitCode, output: exitCode === 0 ? '' : `ended with ${exitCode}` }
    },
    runInteractive: (request, streams, signal) => runInteractive(model, request, streams, signal),
    async writeStdin({ pod, name }, input) {
      if (machine.requests.get(keyFor(pod, name))?.stdin !== true) throw new Error(`container ${name} reads no input`)
      for await (const bytes of input) void bytes
    },
    removePod(pod) {
      for (const [key, record] of machine.containers) {
        if (record.pod !== pod) continue
        machine.containers.delete(key)
        machine.earlier.delete(key)
        machine.requests.delete(key)
      }
      return Promise.resolve()
    },
    subscribe: (listener) => machine.listeners.listen(listener),
  }
}

type Model = Required<Omit<ModelRuntimeDeps, 'entrypoints'>> & Pick<ModelRuntimeDeps, 'entrypoints'>
type Target = Pick<ContainerRequest, 'pod' | 'name'>

const keyFor = (pod: PodUid, name: string) => `${pod}/${name}`

function startContainer(model: Model, request: ContainerRequest): ContainerRecord {
  const { clock, machine, script } = model
  const { startError } = script(request)
  if (startError !== undefined) throw new Error(startError)
  const { pod, name, attempt, namespace, podName, graceMs } = request
  const key = keyFor(pod, name)
  const id = `model://${key}/${attempt}`
  const record = { pod, name, attempt, id, startedAt: clock.now(), owner: `${namespace}/${podName}`, graceMs }
  const before = machine.containers.get(key)
  if (before) machine.earlier.set(key, before)
  machine.containers.set(key, record)
  machine.requests.set(key, request)
  machine.listeners.tell(record)
  scheduleEnd(model, request, record.startedAt)
  return record
}

async function stopContainer(model: Model, { pod, name, graceMs }: StopRequest, signal: AbortSignal): Promise<void> {
  const { clock, machine, script } = model
  const key = keyFor(pod, name)
  const [record, request] = [machine.containers.get(key), machine.requests.get(key)]
  if (!record || record.exit || !request) return
  const { stopsAfterMs = 0, stopError } = script(request)
  if (stopError !== undefined) throw new Error(stopError)
  const killed = stopsAfterMs > graceMs
  const waitMs = Math.min(stopsAfterMs, graceMs)
  if (waitMs > 0) await clock.sleep(waitMs, signal)
  end(machine, key, record.attempt, exitOf(killed ? 137 : 0, clock.now()))
}

/** Every command first copies its input to its output, like `cat`, and then ends with the script's exit code. */
async function runInteractive(
  model: Model,
  request: InteractiveRequest,
  { stdin, stdout }: CommandStreams,
  signal: AbortSignal,
): Promise<number> {
  const container = runningRequest(model, request)
  const gone = Promise.withResolvers<never>()
  gone.promise.catch(() => {})
  signal.addEventListener('abort', () => gone.reject(signal.reason), { once: true })
  signal.throwIfAborted()
  const echo = async () => {
    for await (const bytes of stdin ?? []) await stdout(bytes)
  }
  await Promise.race([echo(), gone.promise])
  return model.script(container).exec?.(request.argv) ?? 0
}

/** What the container was started with; throws when it does not run. */
function runningRequest({ machine }: Model, { pod, name }: Target): ContainerRequest {
  const key = keyFor(pod, name)
  const [record, request] = [machine.containers.get(key), machine.requests.get(key)]
  if (!record || record.exit || !request) throw new Error(`container ${name} does not run`)
  return request
}

function scheduleEnd({ clock, machine, script }: Model, request: ContainerRequest, startedAt: number): void {
  const { endsAfterMs, exitCode = 0 } = script(request)
  if (endsAfterMs === undefined) return
  const key = keyFor(request.pod, request.name)
  clock.at(startedAt + endsAfterMs, () => end(machine, key, request.attempt, exitOf(exitCode, clock.now())))
}

function end(machine: ModelMachine, key: string, attempt: number, exit: ContainerExit): void {
  const record = machine.containers.get(key)
  if (!record || record.exit || record.attempt !== attempt) return
  const ended = { ...record, exit }
  machine.containers.set(key, ended)
  machine.listeners.tell(ended)
}

function exitOf(code: number, at: number): ContainerExit {
  return { code, at, reason: code === 0 ? 'Completed' : 'Error' }
}
