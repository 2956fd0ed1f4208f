// How does a server do under the neutral load generators in load/? Each round is a new server on an empty store, asked three
// seconds after it is ready. One JSON line per round, then one with the median, the least and the most of every figure;
// load/numbers.md has those of real Kubernetes.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

interface Load {
  readonly script: string
  readonly flags: readonly string[]
  argv(url: string, token: string): readonly string[]
}

const node = 'bench'
const objects = (work: string, count: number): Load => ({
  script: 'kubeload.mjs',
  flags: ['--bare'],
  argv: (url, token) => [work, String(count), url, token],
})
export const loads = {
  bind: objects('bind', 3000),
  attach: objects('attach', 1000),
  crud: objects('crud', 2000),
  /** Needs root: three memory volumes per pod, eight pods one after the other, then fifty at once. */
  pods: {
    script: 'podmount.mjs',
    flags: ['--node-name', node],
    argv: (url, token) => [url, token, node, '3', '8', '50'],
  },
} satisfies Record<string, Load>

type Figures = Readonly<Record<string, unknown>>

export async function runLoad(name: keyof typeof loads, rounds: number): Promise<void> {
  const measured: Figures[] = []
  for (let round = 1; round <= rounds; round++) {
    const figures = await measure(loads[name])
    process.stdout.write(`${JSON.stringify({ bench: name, round, ...figures })}\n`)
    measured.push(figures)
  }
  process.stdout.write(`${JSON.stringify({ bench: name, rounds, ...summary(measured) })}\n`)
}

async function measure({ script, flags, argv }: Load): Promise<Figures> {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-bench.'))
  const options = ['up', '--data-dir', directory, '--listen', '127.0.0.1:0', ...flags]
  const server = spawn(join(import.meta.dirname, '../../bin/hawser'), options, {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const gone = once(server, 'exit')
  let said = ''
  server.stderr.on('data', (chunk: Buffer) => void (said += chunk.toString()))
  try {
    const { url, token } = await ready(join(directory, 'kubeconfig'), server)
    await sleep(3_000)
    const args = [join(import.meta.dirname, 'load', script), ...argv(url, token)]
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 300_000 })
    if (status !== 0) throw new Error(`${script} failed: ${stderr}`)
    return JSON.parse(stdout) as Figures
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

async function ready(kubeconfig: string, server: { readonly exitCode: number | null }) {
  for (let tries = 0; tries < 600 && server.exitCode === null; tries++) {
    await sleep(50)
    const text = existsSync(kubeconfig) ? readFileSync(kubeconfig, 'utf8') : ''
    const url = /server: (\S+)/.exec(text)?.[1]
    const token = /token: (\S+)/.exec(text)?.[1]
    if (url === undefined || token === undefined) continue
    const { status } = spawnSync('curl', ['--silent', '--insecure', '--fail', `${url}/readyz`], { stdio: 'ignore' })
    if (status === 0) return { url, token }
  }
  throw new Error('the server did not become ready')
}

function summary(measured: readonly Figures[]): Record<string, string> {
  const names = Object.keys(measured[0] ?? {}).filter((name) => typeof measured[0]?.[name] === 'number')
  const line = (name: string) => {
    const values = measured.map((figures) => Number(figures[name])).sort((left, right) => left - right)
    return `${values[Math.floor((values.length - 1) / 2)]} [${values[0]} – ${values.at(-1)}]`
  }
  return Object.fromEntries(names.map((name) => [name, line(name)]))
}
