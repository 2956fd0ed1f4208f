// How much processor time does a warm server use per piece of work? Each round starts a server on an empty store, runs the
// load once to warm it up, then runs it again and divides the user and system time of the server process by the work
// done. Processor time is steady on a shared machine; the wall-clock figures of the load generator follow it.
// One JSON line per round, then one with the median, the least and the most. load/numbers.md has figures of Kubernetes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

interface Load {
  readonly flags: readonly string[]
  /** What one unit of work is, and how many of them one run does. */
  readonly work: string
  readonly count: number
  /** The generator and its arguments; without one the load is to do nothing for `count` seconds. */
  argv?(url: string, token: string): readonly string[]
}

const node = 'bench'
const kubeload = (scenario: string, objects: number) => ({
  flags: ['--bare'],
  argv: (url: string, token: string) => ['kubeload.mjs', scenario, String(objects), url, token],
})
export const loads: Readonly<Record<string, Load>> = {
  /** Creates, gets and patches volumes; five lists beside them count as none. */
  crud: { work: 'API request', count: 6000, ...kubeload('crud', 2000) },
  bind: { work: 'claim made and bound', count: 3000, ...kubeload('bind', 3000) },
  attach: { work: 'volume attached', count: 1000, ...kubeload('attach', 1000) },
  /** Needs root: a server with a node and nothing to do. */
  idle: { work: 'idle second', count: 30, flags: ['--node-name', node] },
  /** Needs root: three memory volumes per pod, eight pods one after the other, then fifty at once. */
  pods: {
    work: 'pod started and deleted',
    count: 58,
    flags: ['--node-name', node],
    argv: (url, token) => ['podmount.mjs', url, token, node, '3', '8', '50'],
  },
}

type Figures = Readonly<Record<string, unknown>>

export async function runLoad(name: string, load: Load, rounds: number): Promise<void> {
  const measured: Figures[] = []
  for (let round = 1; round <= rounds; round++) {
    const figures = await measure(load)
    print({ bench: name, round, ...figures })
    measured.push(figures)
  }
  print({ bench: name, rounds, per: load.work, ...summary(measured) })
}

function print(line: Figures): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

async function measure(load: Load): Promise<Figures> {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-bench.'))
  const options = ['up', '--data-dir', directory, '--listen', '127.0.0.1:0', ...load.flags]
  const server = spawn(join(import.meta.dirname, '../../bin/hawser'), options, {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const gone = once(server, 'exit')
  let said = ''
  server.stderr.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  try {
    const { url, token } = await ready(join(directory, 'kubeconfig'), server)
    await run(load, url, token)
    await sleep(restMs)
    const before = processorMs(server.pid!)
    const figures = await run(load, url, token)
    // Events and history are written behind the work; they belong to it.
    if (load.argv !== undefined) await sleep(restMs)
    const cpuMs = processorMs(server.pid!) - before
    return { cpuMsPerWork: Number((cpuMs / load.count).toFixed(3)), residentMB: residentMB(server.pid!), ...figures }
  } catch (error) {
    process.stderr.write(said)
    throw error
  } finally {
    await sleep(1_000) // what was deleted last is still being cleaned up
    server.kill('SIGTERM')
    await gone
    // Deletion never crosses a mount: what a failed round left mounted stays for whoever looks for its reason.
    if (!readFileSync('/proc/self/mountinfo', 'utf8').includes(directory)) rmSync(directory, { recursive: true })
    else process.stderr.write(`something is still mounted below ${directory}; it was left alone\n`)
  }
}

/** Long enough for what is written behind the work. */
const restMs = 3_000
const longestLoadMs = 300_000

async function run(load: Load, url: string, token: string): Promise<Figures> {
  if (load.argv === undefined) {
    await sleep(load.count * 1_000)
    return {}
  }
  const [script = '', ...args] = load.argv(url, token)
  const generator = spawn(process.execPath, [join(import.meta.dirname, 'load', script), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: longestLoadMs,
  })
  let printed = ''
  generator.stdout.on('data', (chunk: Buffer) => void (printed += chunk.toString()))
  const [status] = (await once(generator, 'close')) as [number | null]
  if (status !== 0) throw new Error(`${script} failed`)
  return JSON.parse(printed) as Figures
}

async function ready(kubeconfig: string, server: { readonly exitCode: number | null }) {
  for (let tries = 0; tries < 600 && server.exitCode === null; tries++) {
    await sleep(50)
    const text = existsSync(kubeconfig) ? readFileSync(kubeconfig, 'utf8') : ''
    const url = /server: (\S+)/.exec(text)?.[1]
    const token = /token: (\S+)/.exec(text)?.[1]
    // Written when the server listens.
    if (url !== undefined && token !== undefined) return { url, token }
  }
  throw new Error('the server did not become ready')
}

/** User and system time of all threads of this process, without its children. The kernel counts in hundredths of a second. */
function processorMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the program's name in parentheses and may hold spaces.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10
}

function residentMB(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Math.round(Number(kilobytes) / 1024)
}

function summary(measured: readonly Figures[]): Record<string, string> {
  const names = Object.keys(measured[0] ?? {}).filter((name) => typeof measured[0]?.[name] === 'number')
  const line = (name: string) => {
    const values = measured.map((figures) => Number(figures[name])).sort((left, right) => left - right)
    return `${values[Math.floor((values.length - 1) / 2)]} [${values[0]} – ${values.at(-1)}]`
  }
  return Object.fromEntries(names.map((name) => [name, line(name)]))
}
