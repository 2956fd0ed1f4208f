// A control plane and a node agent in processes of their own, for tests that kill, stop and measure the agent. Needs root.
// Everything lies below one directory of TMPDIR; disposing ends containers, takes mounts and loop devices away.
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import type { Pod } from '../../src/api/generated/types.ts'
import { createHttpClient } from '../../src/client/http.ts'
import type { HttpClient } from '../../src/client/http.ts'
import { loopsBelow, mountsBelow, needsRoot, until as untilSoon } from './machine.ts'
import { podRequest, shortLived } from './objects.ts'
import { startServer } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

export interface AgentFixture extends AsyncDisposable {
  readonly base: string
  /** The node's root directory. */
  readonly root: string
  readonly server: ServerProcess
  readonly client: HttpClient
  readonly agent: ChildProcess
  /** Resolves when the agent is ready; false when it ended before that. */
  startAgent(env?: NodeJS.ProcessEnv): Promise<boolean>
  endAgent(signal: NodeJS.Signals): Promise<void>
  /** Resolves when the agent has gone by itself. */
  agentGone(): Promise<void>
  podMounts(): string[]
  podDirectories(): string[]
  phaseOf(name: string): Promise<string | undefined>
  remove(name: string): Promise<unknown>
  /** Every pod, mount and directory is gone. */
  allGone(): Promise<void>
}

export async function openAgentFixture(
  options: { readonly env?: NodeJS.ProcessEnv; readonly runtime?: 'process' | 'none' } = {},
): Promise<AgentFixture> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'hawser-agent-')))
  const root = join(base, 'node')
  const server = await startServer(['--bare', '--store', 'memory'])
  const client = createHttpClient({ url: server.url, token: server.token, insecureSkipTlsVerify: true })
  let agent: ChildProcess | undefined
  const podMounts = () => mountsBelow(join(root, 'pods'))
  const podDirectories = () => readdirSync(join(root, 'pods'))
  const agentGone = async () => {
    if (agent && agent.exitCode === null && agent.signalCode === null) await once(agent, 'exit')
  }
  const bench: AgentFixture = {
    base,
    root,
    server,
    client,
    get agent() {
      return agent!
    },
    async startAgent(env = {}) {
      const file = join(import.meta.dirname, 'agent-process.ts')
      const words = [file, server.url, server.token, base, root, 'n1', options.runtime ?? 'process']
      agent = spawn(process.execPath, words, {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, ...options.env, ...env },
      })
      let ready = false
      for await (const chunk of agent.stdout!) {
        ready = String(chunk).includes('agent ready')
        if (ready) break
      }
      agent.stdout!.resume()
      return ready
    },
    async endAgent(signal) {
      agent?.kill(signal)
      await agentGone()
    },
    agentGone,
    podMounts,
    podDirectories,
    phaseOf: async (name) => (await client.get('Pod', { namespace: 'default', name })).status?.phase,
    remove: (name) => client.remove('Pod', { namespace: 'default', name }).catch(() => undefined),
    allGone: () =>
      until(
        () => `every pod, mount and directory gone: ${podMounts().join()} ${podDirectories().join()}`,
        async () =>
          (await client.list('Pod', {})).items.length === 0 &&
          podMounts().length === 0 &&
          podDirectories().length === 0,
      ).then(() => undefined),
    async [Symbol.asyncDispose]() {
      agent?.kill('SIGKILL')
      await agentGone()
      client[Symbol.dispose]()
      await server[Symbol.asyncDispose]()
      killContainers(base)
      // A raw volume is held by a loop device over the device's own mount: that one goes first, by its name of now.
      for (const device of loopsBelow(root)) spawnSync('losetup', ['-d', device])
      for (const at of mountsBelow(base).reverse()) spawnSync('umount', ['-l', at])
      for (const device of loopsBelow(base)) spawnSync('losetup', ['-d', device])
      rmSync(base, { recursive: true, force: true })
    },
  }
  return bench
}

/** One bench with a running agent for all tests of a file. */
export function sharedAgentFixture(): () => AgentFixture {
  let bench: AgentFixture | undefined
  before(async () => {
    if (needsRoot) return
    bench = await openAgentFixture()
    await bench.startAgent()
  })
  after(async () => {
    await bench?.endAgent('SIGTERM')
    await bench?.[Symbol.asyncDispose]()
  })
  return () => bench!
}

/** Containers start and stop as real processes: they get longer than what is only asked of the API. */
export const until: typeof untilSoon = (what, ask, timeoutMs = 60_000) => untilSoon(what, ask, timeoutMs)

export function podOn(name: string, more: Partial<NonNullable<Pod['spec']>>): Pod {
  const containers = [{ name: 'c', image: 'i', command: ['sleep', '3600'] }]
  return podRequest(name, { nodeName: 'n1', ...shortLived, containers, ...more })
}

/** A pod with so many volumes in memory. */
export function memoryPod(name: string, volumes: number): Pod {
  const names = Array.from({ length: volumes }, (_, index) => `m${index}`)
  return podOn(name, {
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'c',
        image: 'i',
        command: ['sleep', '3600'],
        volumeMounts: names.map((each) => ({ name: each, mountPath: `/volumes/${each}` })),
      },
    ],
    volumes: names.map((each) => ({ name: each, emptyDir: { medium: 'Memory' as const, sizeLimit: '1Mi' } })),
  })
}

/** An image as a loop device, with a volume and a bound claim of this name over it. Answers the device. */
export async function createDisk(
  { base, client }: AgentFixture,
  name: string,
  mode: 'Filesystem' | 'Block',
): Promise<string> {
  const image = join(base, `${name}.img`)
  writeFileSync(image, '')
  truncateSync(image, 16 << 20)
  const device = spawnSync('losetup', ['-f', '--show', image], { encoding: 'utf8' }).stdout.trim()
  const common = { accessModes: ['ReadWriteOnce' as const], volumeMode: mode, storageClassName: '' }
  const hostname = { key: 'kubernetes.io/hostname', operator: 'In' as const, values: ['n1'] }
  await client.create('PersistentVolume', {
    metadata: { name },
    spec: {
      ...common,
      capacity: { storage: '16Mi' },
      persistentVolumeReclaimPolicy: 'Retain',
      local: { path: device, ...(mode === 'Filesystem' ? { fsType: 'ext4' } : {}) },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [hostname] }] } },
    },
  })
  await client.create('PersistentVolumeClaim', {
    metadata: { name, namespace: 'default' },
    spec: { ...common, volumeName: name, resources: { requests: { storage: '16Mi' } } },
  })
  await until('the claim is bound', async () => {
    const claim = await client.get('PersistentVolumeClaim', { namespace: 'default', name })
    return claim.status?.phase === 'Bound'
  })
  return device
}

/** Containers of a test that failed half-way: the supervisor's group and what its pid file names. */
function killContainers(base: string): void {
  const directory = join(base, 'containers')
  if (!existsSync(directory)) return
  for (const file of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('/pid')) continue
    const [pid] = readFileSync(join(directory, file), 'utf8').split(' ')
    try {
      if (readFileSync(`/proc/${pid}/environ`, 'utf8') !== '') process.kill(-Number(pid), 'SIGKILL')
    } catch {
      // It has gone already.
    }
  }
}
