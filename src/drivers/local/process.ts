// Who keeps the driver running? It is a child process: started again when it ends, stopped with its owner.
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { backoff } from '../../clock/backoff.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Log } from '../../telemetry/log.ts'
import type { LocalDriverOptions } from './serve.ts'

export interface LocalDriverProcess extends AsyncDisposable {
  readonly socket: string
  /** The process now running; undefined between an end and the next start. */
  readonly pid: number | undefined
}

const restartBackoff = { firstMs: 100, capMs: 2_000 }
const stopMs = 5_000

/** Resolves when the driver's first process listens. */
export async function spawnLocalDriver(
  deps: { readonly clock: Clock; readonly log: Log },
  options: LocalDriverOptions,
): Promise<LocalDriverProcess> {
  const { clock, log } = deps
  const stopping = new AbortController()
  let child: ChildProcess | undefined
  const started = Promise.withResolvers<void>()
  const run = async () => {
    for (let failures = 0; !stopping.signal.aborted;) {
      const startedAt = clock.now()
      child = startProcess(options, log, () => started.resolve())
      const [code] = (await once(child, 'exit')) as [number | null]
      child = undefined
      if (stopping.signal.aborted) return
      failures = clock.now() - startedAt > 10_000 ? 1 : failures + 1
      if (failures > 8) started.reject(new Error(`the local driver does not start (exit status ${code})`))
      log.warn('local driver ended, starting again', { code, failures })
      await clock.sleep(backoff(failures, restartBackoff), stopping.signal).catch(() => {})
    }
  }
  const running = run()
  await started.promise
  return {
    socket: options.socket,
    get pid() {
      return child?.pid
    },
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error('stopping'))
      const last = child
      last?.kill('SIGTERM')
      const timer = clock.at(clock.now() + stopMs, () => last?.kill('SIGKILL'))
      await running
      timer[Symbol.dispose]()
    },
  }
}

function startProcess(options: LocalDriverOptions, log: Log, onListening: () => void): ChildProcess {
  const { socket, dataDirectory, nodeId, mode, name, capacityBytes, maxVolumesPerNode, overcommit } = options
  const argv = [
    // Published packages hold JavaScript.
    fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './main.ts' : './main.js', import.meta.url)),
    ...['--socket', socket, '--data', dataDirectory, '--node', nodeId, '--mode', mode],
    ...(name === undefined ? [] : ['--name', name]),
    ...(capacityBytes === undefined ? [] : ['--capacity', String(capacityBytes)]),
    ...(overcommit === undefined ? [] : ['--overcommit', String(overcommit)]),
    ...(maxVolumesPerNode === undefined ? [] : ['--max-volumes', String(maxVolumesPerNode)]),
  ]
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  child.stdout?.on('data', (text: Buffer) => {
    if (text.toString().includes('serving on')) onListening()
  })
  child.stderr?.on('data', (text: Buffer) => log.warn('local driver says', { text: text.toString().trim() }))
  return child
}
