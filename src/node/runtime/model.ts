// How do containers behave in the simulator? As a script says: each runs for a while on the virtual clock and ends with a
// code. Its records live in a `ModelMachine`, so that they outlive the agent as real processes do.
import type { PodUid } from '../../api/names.ts'
import type { Clock } from '../../clock/clock.ts'
import type { ContainerExit, ContainerRecord, ContainerRequest, Runtime } from './port.ts'

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
  /** Whoever watches the machine's processes hears of their ends, whichever life of the agent asked for them. */
  readonly listeners: Set<(record: ContainerRecord) => void>
}

export function createModelMachine(): ModelMachine {
  return { containers: new Map(), earlier: new Map(), requests: new Map(), listeners: new Set() }
}

export interface ModelRuntimeDeps {
  readonly clock: Clock
  readonly machine: ModelMachine
  script?(request: ContainerRequest): ContainerScript
}

export function createModelRuntime({ clock, machine, script = () => ({}) }: ModelRuntimeDeps): Runtime {
  const { listeners } = machine
  const keyFor = (pod: PodUid, name: string) => `${pod}/${name}`
  const end = (key: string, attempt: number, exit: ContainerExit) => {
    const record = machine.containers.get(key)
    if (!record || record.exit || record.attempt !== attempt) return
    const ended = { ...record, exit }
    machine.containers.set(key, ended)
    for (const listener of [...listeners]) listener(ended)
  }
  const scheduleEnd = (key: string, request: ContainerRequest, startedAt: number) => {
    const { endsAfterMs, exitCode = 0 } = script(request)
    if (endsAfterMs === undefined) return
    clock.at(startedAt + endsAfterMs, () => end(key, request.attempt, exitOf(exitCode, clock.now())))
  }
  return {
    version: 'hawser-model://1',
    restore() {
      for (const [key, record] of machine.containers) {
        const request = machine.requests.get(key)
        if (request && !record.exit) scheduleEnd(key, request, record.startedAt)
      }
      return Promise.resolve([...machine.earlier.values(), ...machine.containers.values()])
    },
    start(request) {
      const { startError } = script(request)
      if (startError !== undefined) return Promise.reject(new Error(startError))
      const { pod, name, attempt, namespace, podName, graceMs } = request
      const key = keyFor(pod, name)
      const id = `model://${key}/${attempt}`
      const record = { pod, name, attempt, id, startedAt: clock.now(), owner: `${namespace}/${podName}`, graceMs }
      const before = machine.containers.get(key)
      if (before) machine.earlier.set(key, before)
      machine.containers.set(key, record)
      machine.requests.set(key, request)
      for (const listener of [...listeners]) listener(record)
      scheduleEnd(key, request, record.startedAt)
      return Promise.resolve(record)
    },
    async stop({ pod, name, graceMs }, signal) {
      const key = keyFor(pod, name)
      const [record, request] = [machine.containers.get(key), machine.requests.get(key)]
      if (!record || record.exit || !request) return
      const { stopsAfterMs = 0, stopError } = script(request)
      if (stopError !== undefined) throw new Error(stopError)
      const killed = stopsAfterMs > graceMs
      const waitMs = Math.min(stopsAfterMs, graceMs)
      if (waitMs > 0) await clock.sleep(waitMs, signal)
      end(key, record.attempt, exitOf(killed ? 137 : 0, clock.now()))
    },
    exec({ pod, name, argv }) {
      const key = keyFor(pod, name)
      const [record, request] = [machine.containers.get(key), machine.requests.get(key)]
      if (!record || record.exit || !request) return Promise.reject(new Error(`container ${name} does not run`))
      const exitCode = script(request).exec?.(argv) ?? 0
      return Promise.resolve({ exitCode, output: exitCode === 0 ? '' : `ended with ${exitCode}` })
    },
    /** Says what it hears, then ends as the script says: a `cat`, whatever it is called. */
    async converse({ pod, name, argv }, { stdin, stdout }, signal) {
      const { record, request } = {
        record: machine.containers.get(keyFor(pod, name)),
        request: machine.requests.get(keyFor(pod, name)),
      }
      if (!record || record.exit || !request) throw new Error(`container ${name} does not run`)
      const gone = Promise.withResolvers<never>()
      gone.promise.catch(() => {})
      signal.addEventListener('abort', () => gone.reject(signal.reason), { once: true })
      signal.throwIfAborted()
      const echo = async () => {
        for await (const bytes of stdin ?? []) await stdout(bytes)
      }
      await Promise.race([echo(), gone.promise])
      return script(request).exec?.(argv) ?? 0
    },
    async speak({ pod, name }, input) {
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
    subscribe(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
  }
}

function exitOf(code: number, at: number): ContainerExit {
  return { code, at, reason: code === 0 ? 'Completed' : 'Error' }
}
