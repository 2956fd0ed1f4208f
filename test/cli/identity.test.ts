// Is every wrong pairing of program, data directory, node root and store refused, with nothing touched? The program as a
// user starts it, with a pod whose volumes hold data. Real mounts: needs root.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { removeEverything } from '../../src/cli/demo/proof.ts'
import { fileIn, hawser, isRoot, spawnHawser, startServer } from '../kit/command-line.ts'
import type { Server } from '../kit/command-line.ts'
import { mountsBelow, until } from '../kit/machine.ts'
import { launcher, startServer as startProcess } from '../kit/server-process.ts'

const needs = { skip: !isRoot && 'needs root' }
let place = ''
before(() => void (place = mkdtempSync(join(tmpdir(), 'hawser-identity-'))))
after(async () => void (await removeEverything(place)))

const mounts = [
  { name: 'd', mountPath: '/d' },
  { name: 'm', mountPath: '/m' },
]
const pod = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'kept' },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'c',
        image: 'none',
        command: ['sh', '-c', 'echo data > /d/file; echo data > /m/file; exec sleep 600'],
        volumeMounts: mounts,
      },
    ],
    volumes: [
      { name: 'd', emptyDir: {} },
      { name: 'm', emptyDir: { medium: 'Memory' } },
    ],
  },
})

/** What a wrong start must leave as it is. */
function pictureOf(data: string) {
  return {
    mounts: mountsBelow(data).toSorted(),
    files: globSync(join(data, 'node/pods/*/volumes/*/*/file')).map((path) => [path, readFileSync(path, 'utf8')]),
    pods: readdirSync(join(data, 'node/pods')),
    containers: globSync(join(data, 'containers/**/pid')).map((path) => readFileSync(path, 'utf8')),
    identity: readFileSync(join(data, 'node/node-identity.json'), 'utf8'),
  }
}

type Start = readonly [command: readonly string[], refusal: RegExp]

function refused(data: string, starts: Record<string, Start>): void {
  const picture = pictureOf(data)
  assert.equal(picture.files.length, 2)
  for (const [what, [command, refusal]] of Object.entries(starts)) {
    const { code, err } = spawnHawser(command)
    assert.equal(code, 2, `${what}: ${err}`)
    assert.match(err, refusal, what)
    assert.match(err, /\n {2}try: /, what)
    assert.deepEqual(pictureOf(data), picture, what)
  }
}

async function startWithPod(): Promise<Server> {
  const server = await startServer('--node-name', 'n1')
  await server.hawser('apply', '-f', fileIn(place, 'pod.json', pod))
  await until(
    'the pod writes into its volumes',
    () => globSync(join(server.directory, 'node/pods/*/volumes/*/*/file')).length === 2,
    60_000,
  )
  return server
}

/** The pod is deleted by a server that it belongs to, and leaves nothing. */
async function endPod(data: string): Promise<void> {
  await using again = await startProcess(['--node-name', 'n1'], { dataDirectory: data })
  const env = { KUBECONFIG: again.kubeconfig, HAWSER_DATA_DIR: data }
  // The server may have been killed before the pod's status was written: its agent writes it again.
  await until('the pod runs', async () => (await hawser(['get', 'pod/kept'], env)).out.includes('Running'), 60_000)
  assert.equal(globSync(join(data, 'node/pods/*/volumes/*/*/file')).length, 2)
  await hawser(['delete', 'pod/kept', '--yes'], env)
  await until('the pod is gone', () => readdirSync(join(data, 'node/pods')).length === 0, 60_000)
}

const up = (data: string, ...more: string[]) => ['up', '--listen', '127.0.0.1:0', '--data-dir', data, ...more]

test('while a server runs, nobody else gets its directory, its root or its containers', needs, async () => {
  await using stack = new AsyncDisposableStack()
  const server = stack.use(await startWithPod())
  const { directory: data, kubeconfig } = server
  const agent = (...more: string[]) => ['agent', '--kubeconfig', kubeconfig, ...more]
  const other = join(place, 'other')
  const root = join(data, 'node')
  refused(data, {
    'an agent on the same directory': [agent('--data-dir', data, '--node-name', 'n1'), /is in use by process \d+/],
    'an agent of another name': [agent('--data-dir', data, '--node-name', 'n2'), /is in use by process \d+/],
    'an agent of another directory': [
      agent('--data-dir', other, '--root-dir', root, '--node-name', 'n1'),
      /is in use by process \d+/,
    ],
    'an agent of the same node on directories of its own': [
      agent('--data-dir', join(place, 'twin'), '--node-name', 'n1'),
      /node n1 is run by another agent, with .*\/node on /,
    ],
    'an agent with the same containers': [
      agent('--data-dir', data, '--root-dir', join(other, 'root'), '--node-name', 'n1'),
      /is in use by process \d+/,
    ],
    'a server on the same directory': [up(data, '--node-name', 'n1'), /data directory .* is in use by process \d+/],
    'a server without a node': [up(data, '--bare'), /data directory .* is in use by process \d+/],
    'a node whose root lies inside this one': [
      agent('--data-dir', other, '--root-dir', join(root, 'pods/inner'), '--node-name', 'n2'),
      /lies inside .*\/node, the root of a node/,
    ],
    'a node whose root is this data directory': [
      agent('--data-dir', other, '--root-dir', data, '--node-name', 'n2'),
      /is the data directory of a server/,
    ],
    'a data directory inside this root': [
      up(join(root, 'plugins/inner'), '--bare'),
      /lies inside .*\/node, the root of/,
    ],
    'a server whose node has the same root': [
      up(join(place, 'third'), '--root-dir', root, '--node-name', 'n1'),
      /is in use by process \d+/,
    ],
  })
  await server.hawser('delete', 'pod/kept', '--yes')
  await until('the pod is gone', () => readdirSync(join(data, 'node/pods')).length === 0, 60_000)
})

test('after a kill -9, an emptied or missing store is not a new cluster', needs, async () => {
  await using server = await startWithPod()
  const data = server.directory
  await server.stop('SIGKILL')
  const store = join(data, 'store.db')
  const names = readdirSync(data).filter((name) => name.startsWith('store.db'))
  for (const name of names) copyFileSync(join(data, name), join(place, name))
  const logBytes = statSync(`${store}-wal`).size
  truncateSync(store, 0)
  refused(data, { 'an emptied store': [up(data, '--node-name', 'n1'), /store in .* is empty or missing, but .*pods/] })
  assert.equal(statSync(`${store}-wal`).size, logBytes, 'the write-ahead log is kept')
  assert.match((await hawser(['doctor', '--data-dir', data])).out, /problem +store: .* is empty or missing/)
  for (const name of names) rmSync(join(data, name))
  refused(data, {
    'a missing store': [up(data, '--node-name', 'n1'), /store in .* is empty or missing, but .*pods/],
    'a missing store, accepted': [up(data, '--node-name', 'n1', '--accept-store'), /is empty or missing/],
  })
  for (const name of names) copyFileSync(join(place, name), join(data, name))
  await endPod(data)
})

test('the store, the node and the cluster must be those the directory was used with', needs, async () => {
  await using stack = new AsyncDisposableStack()
  const stranger = stack.use(await startServer('--bare'))
  const early = stack.use(await startServer('--node-name', 'n1'))
  const { directory: data } = early
  const store = join(data, 'store.db')
  await early.stop()
  copyFileSync(store, join(place, 'old.db'))
  {
    await using running = await startProcess(['--node-name', 'n1'], { dataDirectory: data })
    const env = { KUBECONFIG: running.kubeconfig, HAWSER_DATA_DIR: data }
    await hawser(['apply', '-f', fileIn(place, 'pod.json', pod)], env)
    const files = () => globSync(join(data, 'node/pods/*/volumes/*/*/file')).length
    await until('the pod writes into its volumes', () => files() === 2, 60_000)
  }
  const root = join(data, 'node')
  const strangers = ['agent', '--kubeconfig', stranger.kubeconfig, '--root-dir', root]
  refused(data, {
    'another node': [up(data, '--node-name', 'n2'), /holds 1 pods and \d+ mounts of node n1, not of node n2/],
    'a server of another cluster': [
      up(join(place, 'fourth'), '--root-dir', root, '--node-name', 'n1'),
      /of cluster \S+, but the server is of cluster/,
    ],
    'a store in memory': [up(data, '--store', 'memory', '--node-name', 'n1'), /but the server is of cluster/],
    'an agent of another cluster': [
      [...strangers, '--data-dir', join(place, 'fifth'), '--node-name', 'n1'],
      /but the server is of cluster/,
    ],
    'an agent of another cluster and name': [
      [...strangers, '--data-dir', join(place, 'fifth'), '--node-name', 'n2'],
      /of node n1, not of node n2/,
    ],
  })
  assert.ok(!(await stranger.hawser('get', 'nodes')).out.includes('n1'), 'the other cluster hears nothing of the node')
  await stranger.stop()
  // A start writes the server's new address, also when its node is refused.
  copyFileSync(store, join(place, 'good.db'))
  const swap = (what: string, change: () => void, refusal: RegExp, ...flags: string[]) => {
    change()
    refused(data, { [what]: [up(data, '--node-name', 'n1', ...flags), refusal] })
    copyFileSync(join(place, 'good.db'), store)
  }
  const half = Math.floor(statSync(store).size / 2 / 8192) * 8192
  swap('a store cut in half', () => truncateSync(store, half), /store\.db/)
  swap('a foreign file', () => writeFileSync(store, 'hello'.repeat(5000)), /store\.db/)
  const foreign = () => copyFileSync(join(stranger.directory, 'store.db'), store)
  swap('the store of another cluster', foreign, /is of cluster \S+, but this directory belongs to cluster/)
  swap('the same, accepted', foreign, /this directory belongs to cluster/, '--accept-store')
  const older = () => copyFileSync(join(place, 'old.db'), store)
  swap('an older store', older, /is older than the one last used here .*1 pods on this machine .* would be deleted/)
  const record = join(data, 'identity.json')
  const kept = readFileSync(record, 'utf8')
  swap('a newer record', () => writeFileSync(record, '{"format":99}'), /written by a newer Hawser \(format 99\)/)
  swap('a damaged record', () => writeFileSync(record, kept.slice(0, 9)), /identity\.json cannot be read/)
  writeFileSync(record, kept)
  await endPod(data)
})

test('an older store is taken when it is accepted, and a directory of an older Hawser is adopted', needs, async () => {
  await using server = await startServer('--bare')
  const data = server.directory
  const store = join(data, 'store.db')
  await server.stop()
  copyFileSync(store, join(place, 'before.db'))
  const records = () => JSON.parse(readFileSync(join(data, 'identity.json'), 'utf8')) as { seen: { epoch: number } }
  {
    await using running = await startProcess(['--bare'], { dataDirectory: data })
    const env = { KUBECONFIG: running.kubeconfig, HAWSER_DATA_DIR: data }
    assert.equal((await hawser(['volume', 'create', 'v', '--size', '1Mi', '--no-wait'], env)).code, 0)
  }
  copyFileSync(join(place, 'before.db'), store)
  assert.match(spawnHawser(up(data, '--bare')).err, /is older than the one last used here/)
  const { epoch } = records().seen
  {
    await using _accepted = await startProcess(['--bare', '--accept-store'], { dataDirectory: data })
  }
  assert.ok(records().seen.epoch > epoch)
  rmSync(join(data, 'identity.json'))
  {
    await using _adopted = await startProcess(['--bare'], { dataDirectory: data })
  }
  assert.ok(existsSync(join(data, 'identity.json')))
})

test('a server does not run the node that an agent runs elsewhere, though its lease is over', needs, async () => {
  const server = await startProcess(['--bare'])
  await using stack = new AsyncDisposableStack()
  stack.defer(async () => void (await removeEverything(server.dataDirectory)))
  const root = join(place, 'away-root')
  const flags = ['--data-dir', join(place, 'away'), '--root-dir', root, '--node-name', 'n1', '--runtime', 'none']
  const stdio = ['ignore', 'pipe', 'ignore'] as const
  const agent = spawn(launcher, ['agent', '--kubeconfig', server.kubeconfig, ...flags], { stdio: [...stdio] })
  const gone = once(agent, 'exit')
  stack.defer(async () => {
    agent.kill()
    await gone
  })
  // A server that goes while the agent still starts ends that start.
  for await (const line of agent.stdout!) if (String(line).includes('node n1 is up')) break
  await server.stop()
  const { code, err } = spawnHawser(up(server.dataDirectory, '--node-name', 'n1'))
  assert.match(err, new RegExp(`node n1 is run by another agent, with ${root} on .*process ${agent.pid} holds ${root}`))
  assert.match(err, /--node-name NAME/)
  assert.notEqual(code, 0)
})
