// Does the whole agent keep its promises on a real machine? Real mounts, real processes, kill -9 at random moments.
// Root only; everything lies below one directory under /tmp and is gone at the end.
import assert from 'node:assert/strict'
import childProcess, { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pod } from '../../src/api/types.ts'
import { createHttpClient } from '../../src/client/http.ts'
import type { HttpClient } from '../../src/client/http.ts'
import { startServer } from '../support/server-process.ts'
import type { ServerProcess } from '../support/server-process.ts'

const skip = process.getuid?.() === 0 ? false : 'needs root'
const base = skip ? '' : realpathSync(mkdtempSync('/tmp/hawser-agent-'))
const root = join(base, 'node')
let server: ServerProcess
let client: HttpClient
let agent: ChildProcess

async function startAgent(): Promise<void> {
  const file = join(import.meta.dirname, 'agent-process.ts')
  agent = spawn(process.execPath, [file, server.url, server.token, base, root, 'n1'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  for await (const chunk of agent.stdout!) if (String(chunk).includes('agent ready')) break
  agent.stdout!.resume()
}
async function endAgent(signal: NodeJS.Signals): Promise<void> {
  if (agent.exitCode !== null || agent.signalCode !== null) return
  const ended = once(agent, 'exit')
  agent.kill(signal)
  await ended
}

before(async () => {
  if (skip) return
  server = await startServer(['--bare', '--store', 'memory'])
  client = createHttpClient({ url: server.url, token: server.token, insecureSkipTlsVerify: true })
  await startAgent()
})
after(async () => {
  if (skip) return
  await endAgent('SIGTERM')
  client[Symbol.dispose]()
  await server[Symbol.asyncDispose]()
  for (const at of mountsBelow(base).reverse()) spawn('umount', ['-l', at])
  await sleep(200)
  rmSync(base, { recursive: true, force: true })
})

const mountsBelow = (path: string) =>
  readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((at) => at.startsWith(`${path}/`))
const podMounts = () => mountsBelow(join(root, 'pods'))
const podDirectories = () => readdirSync(join(root, 'pods'))

function pod(name: string, more: Partial<NonNullable<Pod['spec']>> = {}): Pod {
  const volumes = [
    { name: 'a', emptyDir: { medium: 'Memory' as const, sizeLimit: '1Mi' } },
    { name: 'b', emptyDir: { medium: 'Memory' as const, sizeLimit: '1Mi' } },
    { name: 'c', emptyDir: {} },
    { name: 'd', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
    { name: 'e', hostPath: { path: '/etc' } },
  ]
  const volumeMounts = volumes.map((volume) => ({ name: volume.name, mountPath: `/volumes/${volume.name}` }))
  return {
    metadata: { name, namespace: 'default' },
    spec: {
      nodeName: 'n1',
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      containers: [{ name: 'c', image: 'i', command: ['sleep', '3600'], volumeMounts }],
      volumes,
      ...more,
    },
  }
}
async function until<T>(
  what: string,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
  seconds = 60,
): Promise<T> {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await sleep(50)) {
    const answer = await ask()
    if (answer !== undefined && answer !== false) return answer
  }
  throw new Error(`not within ${seconds} s: ${what}`)
}
const phaseOf = async (name: string) => (await client.get('Pod', { namespace: 'default', name })).status?.phase
const remove = (name: string) => client.remove('Pod', { namespace: 'default', name }).catch(() => undefined)
const allGone = () =>
  until(
    'every pod, mount and directory gone',
    async () =>
      (await client.list('Pod', {})).items.length === 0 && podMounts().length === 0 && podDirectories().length === 0,
  )

test('kill -9 and restart: the container runs on, its volumes and their contents stay', { skip }, async () => {
  const made = await client.create('Pod', pod('p'))
  const uid = made.metadata.uid!
  await until('pod runs', async () => (await phaseOf('p')) === 'Running')
  const directory = join(base, 'containers/n1', uid, 'c/0')
  const pid = readFileSync(join(directory, 'pid'), 'utf8')
  writeFileSync(join(root, `pods/${uid}/volumes/kubernetes.io~empty-dir/a/data`), 'precious')
  const mounts = podMounts()
  assert.equal(mounts.length, 3)

  await endAgent('SIGKILL')
  await startAgent()
  await sleep(1_000)
  assert.deepEqual(podMounts(), mounts)
  assert.equal(readFileSync(join(directory, 'pid'), 'utf8'), pid)
  assert.ok(existsSync(`/proc/${pid.split(' ')[0]}`))
  assert.equal(readFileSync(`/proc/${pid.split(' ')[0]}/root/volumes/a/data`, 'utf8'), 'precious')
  assert.equal(await phaseOf('p'), 'Running')
  await remove('p')
  await allGone()
  assert.equal(existsSync(`/proc/${pid.split(' ')[0]}`), false)
})

test(
  'kill -9 at random moments while pods come and go: all run in the end, and nothing is left when they are gone',
  { skip },
  async () => {
    const seed = Date.now() % 1_000
    for (let round = 0; round < 4; round++) {
      const names = Array.from({ length: 4 }, (_, index) => `r${round}-${index}`)
      await Promise.all(names.map((name) => client.create('Pod', pod(name))))
      await sleep((seed + round * 37) % 150)
      await endAgent('SIGKILL')
      await startAgent()
      await until(`pods of round ${round} run (seed ${seed})`, async () =>
        (await Promise.all(names.map(phaseOf))).every((phase) => phase === 'Running'),
      )
      assert.equal(podMounts().length, 12)
      await Promise.all(names.map(remove))
      await sleep((seed + round * 53) % 150)
      await endAgent('SIGKILL')
      await startAgent()
      await allGone()
    }
  },
)

test('an exit code given while the agent was away is not lost', { skip }, async () => {
  const made = await client.create(
    'Pod',
    pod('short', { containers: [{ name: 'c', image: 'i', command: ['sh', '-c', 'sleep 1; exit 7'] }], volumes: [] }),
  )
  await until('container started', () => existsSync(join(base, 'containers/n1', made.metadata.uid!, 'c/0/pid')))
  await endAgent('SIGKILL')
  await sleep(1_500)
  await startAgent()
  await until('pod failed', async () => (await phaseOf('short')) === 'Failed')
  const status = (await client.get('Pod', { namespace: 'default', name: 'short' })).status?.containerStatuses?.[0]
  assert.equal(status?.state?.terminated?.exitCode, 7)
  await remove('short')
  await allGone()
})

test(
  'planted mounts survive: an emptyDir with somebody else’s mount in it is not deleted through it',
  { skip },
  async () => {
    const made = await client.create('Pod', pod('planted'))
    await until('pod runs', async () => (await phaseOf('planted')) === 'Running')
    const outside = join(base, 'outside')
    const inside = join(root, `pods/${made.metadata.uid}/volumes/kubernetes.io~empty-dir/c/inner`)
    spawnSync('mkdir', '-p', outside, inside)
    writeFileSync(join(outside, 'keep'), 'me')
    spawnSync('mount', '--bind', outside, inside)
    await remove('planted')
    await sleep(3_000)
    assert.equal(readFileSync(join(outside, 'keep'), 'utf8'), 'me')
    spawnSync('umount', inside)
    await allGone()
    assert.equal(readFileSync(join(outside, 'keep'), 'utf8'), 'me')
  },
)

function spawnSync(program: string, ...args: string[]): void {
  const result = childProcess.spawnSync(program, args)
  assert.equal(result.status, 0, `${program}: ${String(result.stderr)}`)
}
