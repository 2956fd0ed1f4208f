// Does a node find its drivers as a kubelet does? Real registration sockets in a real directory: nested, hidden, refused,
// replaced, gone; and what the cluster then knows of the node.
import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { DescMethod } from '@bufbuild/protobuf'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { openChannel } from '../../src/csi/channel.ts'
import { CsiError } from '../../src/csi/codes.ts'
import { createDrivers } from '../../src/csi/drivers.ts'
import { createModelStorage } from '../../src/csi/model/driver.ts'
import {
  PluginInfoSchema,
  Registration,
  RegistrationStatusResponseSchema,
  RegistrationStatusSchema,
} from '../../src/csi/generated/registration_pb.ts'
import { createHandshake } from '../../src/csi/registration/handshake.ts'
import { createNodeInfoPublisher } from '../../src/csi/registration/node-info.ts'
import { watchSockets } from '../../src/csi/registration/sockets.ts'
import { serveOnSocket } from '../../src/csi/serve.ts'
import type { ServedSocket } from '../../src/csi/serve.ts'
import { csiServices, handleUnary } from '../../src/csi/service.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { until } from '../kit/machine.ts'
import { createCsiWorld } from '../kit/csi-cluster.ts'

const clock = createSystemClock()
const signal = new AbortController().signal

interface Plugin {
  readonly name: string
  readonly versions?: readonly string[]
  readonly type?: string
  readonly topologyKey?: string
  readonly maxVolumes?: bigint
  /** What the registrar answers as the driver's endpoint; absent: where the driver is. */
  readonly endpoint?: string
  /** The registrar fails when it is told of the success. */
  readonly deaf?: boolean
  readonly nodeInfo?: { readonly kind: 'fails' | 'nameless' }
  /** What the driver says of its node instead. */
  readonly says?: {
    readonly nodeId?: string
    readonly accessibleTopology?: { readonly segments: Record<string, string> }
  }
}

async function createBench() {
  const stack = new AsyncDisposableStack()
  const directory = mkdtempSync(join(tmpdir(), 'hawser-reg-'))
  stack.defer(() => rmSync(directory, { recursive: true, force: true }))
  const { client } = await createCsiWorld()
  await client.create('Node', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', labels: { zone: 'a' } } })
  const drivers = createDrivers()
  stack.defer(() => {
    for (const driver of drivers.all()) drivers.remove(driver)
  })
  const host = stack.use(createLinuxHost())
  const nodeInfo = createNodeInfoPublisher({ client, clock, nodeName: 'n1' })
  const handshake = createHandshake({ connect: openChannel, clock, drivers, nodeInfo, files: host.files })
  const notified: string[] = []
  /** Serves a driver and its registrar; the registration socket lies at `path` below the watched directory. */
  const plug = async (path: string, plugin: Plugin): Promise<ServedSocket> => {
    const storage = createModelStorage({
      clock,
      name: plugin.name,
      maxVolumesPerNode: plugin.maxVolumes ?? 0n,
      ...(plugin.topologyKey !== undefined && { topologyKey: plugin.topologyKey }),
    })
    const made = storage.onNode({ nodeId: `id-of-${plugin.name}`, host: createModelHost({ clock }) })
    const handlers = plugin.nodeInfo
      ? { ...made, node: { ...made.node, nodeGetInfo: troubled(plugin.nodeInfo.kind) } }
      : plugin.says
        ? { ...made, node: { ...made.node, nodeGetInfo: async () => ({ nodeId: 'id', ...plugin.says }) } }
        : made
    const endpoint = join(directory, `${path.replaceAll('/', '-')}.csi`)
    const csi = stack.use(
      await serveOnSocket(endpoint, csiServices, (method, bytes, stop) => handleUnary(handlers, method, bytes, stop)),
    )
    const socket = join(directory, 'reg', path)
    mkdirSync(dirname(socket), { recursive: true })
    const answer = async (method: DescMethod, bytes: Uint8Array) => {
      if (method.name === 'GetInfo') {
        const info = {
          type: plugin.type ?? 'CSIPlugin',
          name: plugin.name,
          endpoint: plugin.endpoint ?? endpoint,
          supportedVersions: [...(plugin.versions ?? ['1.0.0'])],
        }
        return toBinary(PluginInfoSchema, create(PluginInfoSchema, info))
      }
      const { pluginRegistered, error } = fromBinary(RegistrationStatusSchema, bytes)
      notified.push(`${path} ${pluginRegistered}${error === '' ? '' : `: ${error}`}`)
      if (plugin.deaf && pluginRegistered) throw new CsiError('INTERNAL', 'I do not want to know')
      return toBinary(RegistrationStatusResponseSchema, create(RegistrationStatusResponseSchema))
    }
    const registrar = stack.use(await serveOnSocket(socket, [Registration], answer))
    return {
      kill: () => registrar.kill(),
      async [Symbol.asyncDispose]() {
        await registrar[Symbol.asyncDispose]()
        rmSync(socket, { force: true })
        csi.kill()
      },
    }
  }
  const watch = async () =>
    stack.use(await watchSockets({ host, clock, log: silentLog, handshake, directory: join(directory, 'reg') }, signal))
  const entries = async () => (await client.get('CSINode', { name: 'n1' })).spec.drivers
  return {
    client,
    drivers,
    nodeInfo,
    handshake,
    plug,
    watch,
    notified,
    entries,
    directory,
    stack,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const troubled = (kind: 'fails' | 'nameless') => async () => {
  if (kind === 'fails') throw new CsiError('INTERNAL', 'the node is on fire')
  return { nodeId: '' }
}

test('sockets present at start and nested ones register, a hidden one does not; a new one is found at once (TP-28, REG-1)', async () => {
  await using bench = await createBench()
  await bench.plug('a.sock', { name: 'a.example.com' })
  await bench.plug('deep/er/b.sock', { name: 'b.example.com', maxVolumes: 1n << 40n })
  await bench.plug('.x.sock', { name: 'x.example.com' })
  await bench.watch()
  await until('both registered', () => bench.drivers.all().length === 2)
  await bench.plug('c.sock', { name: 'c.example.com' })
  await until('the third registered', () => bench.drivers.get('c.example.com'))
  assert.equal(bench.drivers.get('x.example.com'), undefined)
  await until('all told', () => bench.notified.length === 3)
  const entries = (await bench.entries()).toSorted((left, right) => (left.name < right.name ? -1 : 1))
  assert.deepEqual(
    entries.map(({ name, nodeID, allocatable }) => [name, nodeID, allocatable?.count]),
    [
      ['a.example.com', 'id-of-a.example.com', undefined],
      ['b.example.com', 'id-of-b.example.com', 2_147_483_647],
      ['c.example.com', 'id-of-c.example.com', undefined],
    ],
  )
})

test('a socket that goes takes its driver along (REG-5, CSINODE-5)', async () => {
  await using bench = await createBench()
  const plugin = await bench.plug('a.sock', { name: 'a.example.com' })
  await bench.watch()
  await until('registered', () => bench.drivers.get('a.example.com'))
  await plugin[Symbol.asyncDispose]()
  await until('unregistered', () => bench.drivers.get('a.example.com') === undefined)
  await until('gone from CSINode', async () => (await bench.entries()).length === 0)
  const node = await bench.client.get('Node', { name: 'n1' })
  assert.equal(node.metadata.annotations?.['csi.volume.kubernetes.io/nodeid'], undefined)
})

test('the same name needs a higher version; 0.3.0 and 2.0.0 alone and foreign types are refused (TP-29, REG-6)', async () => {
  await using bench = await createBench()
  await bench.plug('1.sock', { name: 'a.example.com' })
  await bench.watch()
  await until('registered', () => bench.notified.includes('1.sock true'))
  const refusals: readonly [string, Plugin, RegExp][] = [
    ['2.sock', { name: 'a.example.com' }, /already registered/],
    ['3.sock', { name: 'old.example.com', versions: ['0.3.0'] }, /supported/],
    ['4.sock', { name: 'new.example.com', versions: ['2.0.0'] }, /supported/],
    ['5.sock', { name: 'other.example.com', type: 'Toaster' }, /no handler registered for plugin type: Toaster/],
    ['6.sock', { name: 'bad_name!' }, /invalid CSI driver name/],
  ]
  for (const [path, plugin, reason] of refusals) {
    await bench.plug(path, plugin)
    const told = await until(`${path} told`, () => bench.notified.find((text) => text.startsWith(`${path} `)))
    assert.match(told, reason)
    assert.match(told, / false/)
  }
  await bench.plug('7.sock', { name: 'a.example.com', versions: ['1.0.1'] })
  await until('the higher version registered', () => bench.notified.includes('7.sock true'))
  assert.match(bench.drivers.get('a.example.com')?.endpoint ?? '', /7\.sock/)
})

test('a topology that contradicts the node’s label is refused and published nowhere (TP-30, CSINODE-1)', async () => {
  await using bench = await createBench()
  await bench.plug('a.sock', { name: 'a.example.com', topologyKey: 'zone' })
  await bench.plug('b.sock', { name: 'b.example.com', topologyKey: 'rack' })
  await bench.watch()
  const told = await until('told', () => bench.notified.find((text) => text.startsWith('a.sock ')))
  assert.match(told, /false: .*topology value collision/)
  await until('the other registered', () => bench.drivers.get('b.example.com'))
  assert.deepEqual(await bench.entries(), [
    { name: 'b.example.com', nodeID: 'id-of-b.example.com', topologyKeys: ['rack'] },
  ])
  const node = await bench.client.get('Node', { name: 'n1' })
  assert.deepEqual([node.metadata.labels?.['zone'], node.metadata.labels?.['rack']], ['a', 'id-of-b.example.com'])
})

test('a socket made anew is another plugin: the old one goes first (REG-2, REG-3)', async () => {
  await using bench = await createBench()
  const first = await bench.plug('a.sock', { name: 'a.example.com' })
  await bench.watch()
  const before = await until('registered', () => bench.drivers.get('a.example.com'))
  await until('told', () => bench.notified.includes('a.sock true'))
  await first[Symbol.asyncDispose]()
  await bench.plug('a.sock', { name: 'a.example.com' })
  const now = await until('registered anew', () => {
    const driver = bench.drivers.get('a.example.com')
    return driver !== before && driver
  })
  assert.ok(now)
  await until('told twice', () => bench.notified.filter((text) => text === 'a.sock true').length === 2)
  await until('one entry', async () => (await bench.entries()).length === 1)
})

test('a plugin that cannot hear of its success is not registered (REG-4)', async () => {
  await using bench = await createBench()
  await bench.plug('a.sock', { name: 'a.example.com', deaf: true })
  await bench.watch()
  await until('told', () => bench.notified.some((text) => text.startsWith('a.sock true')))
  await until('undone', async () => !bench.drivers.get('a.example.com') && (await bench.entries()).length === 0)
})

test('without an endpoint of its own the registration socket serves the driver too (REG-4)', async () => {
  await using bench = await createBench()
  await bench.plug('a.sock', { name: 'a.example.com', endpoint: '' })
  await bench.watch()
  const told = await until('told', () => bench.notified.find((text) => text.startsWith('a.sock ')))
  // This registrar serves no CSI: asked at its own socket for NodeGetInfo, it says so.
  assert.match(told, /false: .*(Unimplemented|not implement)/i)
})

test('a driver that does not tell its node id is not registered, and is told why (REG-7)', async () => {
  await using bench = await createBench()
  await bench.plug('a.sock', { name: 'a.example.com', nodeInfo: { kind: 'fails' } })
  await bench.plug('b.sock', { name: 'b.example.com', nodeInfo: { kind: 'nameless' } })
  await bench.watch()
  const told = (path: string) => until(`${path} told`, () => bench.notified.find((text) => text.startsWith(`${path} `)))
  assert.match(await told('a.sock'), /false: .*node is on fire/)
  assert.match(await told('b.sock'), /false: .*nodeID must not be empty/)
  assert.deepEqual(bench.drivers.all(), [])
})

test('a driver that goes leaves the labels of its topology, and nothing else (REG-8, CSINODE-5)', async () => {
  await using bench = await createBench()
  const plugin = await bench.plug('a.sock', { name: 'a.example.com', topologyKey: 'rack' })
  await bench.plug('b.sock', { name: 'b.example.com' })
  await bench.watch()
  await until('both registered', () => bench.drivers.all().length === 2)
  await plugin[Symbol.asyncDispose]()
  await until('gone from CSINode', async () => (await bench.entries()).length === 1)
  const node = await until('gone from the node', async () => {
    const found = await bench.client.get('Node', { name: 'n1' })
    const ids = found.metadata.annotations?.['csi.volume.kubernetes.io/nodeid']
    return ids === '{"b.example.com":"id-of-b.example.com"}' && found
  })
  assert.equal(node.metadata.labels?.['rack'], 'id-of-a.example.com')
})

test('a driver without a registrar is registered by its own word, and by no other name (REG-9)', async () => {
  await using bench = await createBench()
  await bench.plug('hidden/.a.sock', { name: 'a.example.com' })
  const endpoint = join(bench.directory, 'hidden-.a.sock.csi')
  await assert.rejects(
    bench.handshake.registerDirectly(endpoint, 'b.example.com', signal),
    /calls itself a.example.com/,
  )
  const { driver } = await bench.handshake.registerDirectly(endpoint, 'a.example.com', signal)
  assert.equal(bench.drivers.get('a.example.com'), driver)
  assert.deepEqual(bench.notified, [], 'nobody is notified')
})

test('the object exists before any driver, belongs to the node, and is made anew for another node of that name (CSINODE-2, CSINODE-4, CSINODE-6, WART-17, C-20)', async () => {
  await using bench = await createBench()
  const node = await bench.client.get('Node', { name: 'n1' })
  const owner = (uid: string) => [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid }]
  await bench.client.create('CSINode', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name: 'n1', ownerReferences: owner('another-life') },
    spec: { drivers: [{ name: 'stale.example.com', nodeID: 'x', topologyKeys: [] }] },
  })
  await bench.nodeInfo.ensure(signal)
  const made = await bench.client.get('CSINode', { name: 'n1' })
  assert.deepEqual([made.metadata.ownerReferences, made.spec.drivers], [owner(node.metadata.uid ?? ''), []])
  const migrated = made.metadata.annotations?.['storage.alpha.kubernetes.io/migrated-plugins']?.split(',')
  assert.equal(migrated?.length, 7)
  assert.deepEqual(migrated, migrated?.toSorted())
  await bench.nodeInfo.ensure(signal)
  assert.equal(
    (await bench.client.get('CSINode', { name: 'n1' })).metadata.uid,
    made.metadata.uid,
    'kept when it is ours',
  )
})

test('a limit that changes is written, one that does not is no write; the entry of a stranger is not made (CSINODE-3, CSINODE-9)', async () => {
  await using bench = await createBench()
  const info = (maxVolumes: bigint) => ({ nodeId: 'n', maxVolumes, topology: { zone: 'a' } })
  await bench.nodeInfo.install('a.example.com', info(0n), signal)
  const version = async () => (await bench.client.get('CSINode', { name: 'n1' })).metadata.resourceVersion
  assert.equal((await bench.entries())[0]?.allocatable, undefined)
  const before = await version()
  await bench.nodeInfo.refresh('a.example.com', info(0n), signal)
  await bench.nodeInfo.refresh('b.example.com', info(5n), signal)
  assert.equal(await version(), before)
  await bench.nodeInfo.refresh('a.example.com', info(7n), signal)
  assert.deepEqual(await bench.entries(), [
    { name: 'a.example.com', nodeID: 'n', topologyKeys: ['zone'], allocatable: { count: 7 } },
  ])
})

test('a socket that others could have put there is not registered, nor a driver behind one', async () => {
  await using bench = await createBench()
  await bench.plug('open/a.sock', { name: 'a.example.com' })
  chmodSync(join(bench.directory, 'reg/open'), 0o777)
  const shared = join(bench.directory, 'shared')
  mkdirSync(shared)
  chmodSync(shared, 0o777)
  await bench.plug('b.sock', { name: 'b.example.com', endpoint: join(shared, 'b.sock') })
  await bench.plug('c.sock', { name: 'c.example.com' })
  await bench.watch()
  await until('the good one registered', () => bench.drivers.get('c.example.com'))
  await until('the plugin was told', () => bench.notified.some((line) => line.includes('for others could change it')))
  assert.deepEqual(
    bench.drivers.all().map(({ name }) => name),
    ['c.example.com'],
  )
  chmodSync(join(bench.directory, 'reg/open'), 0o755)
  await until('registered once it is closed', () => bench.drivers.get('a.example.com'))
})

test('a plugin that means harm is refused in words that can be shown, and nothing of it is published', async () => {
  await using bench = await createBench()
  const before = await bench.client.get('Node', { name: 'n1' })
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`key-${index}`, 'x']))
  const plugins: readonly Plugin[] = [
    { name: '../../../etc' },
    { name: 'a/b' },
    { name: '\u001b]0;owned\u0007' },
    { name: 'x'.repeat(100_000) },
    { name: 'a.example.com', type: `\u001b[2J${'x'.repeat(100_000)}` },
    { name: 'b.example.com', versions: [`\u001b[2J${'x'.repeat(100_000)}`] },
    { name: 'c.example.com', says: { nodeId: 'a\u0000b' } },
    { name: 'd.example.com', says: { nodeId: 'x'.repeat(10_000) } },
    { name: 'e.example.com', says: { accessibleTopology: { segments: many } } },
    { name: 'f.example.com', says: { accessibleTopology: { segments: { 'no key!': 'x' } } } },
    { name: 'g.example.com', says: { accessibleTopology: { segments: { key: 'no value!\u001b' } } } },
  ]
  for (const [index, plugin] of plugins.entries()) await bench.plug(`p${index}.sock`, plugin)
  await bench.watch()
  for (const index of plugins.keys()) {
    const told = await until(`p${index} told`, () => bench.notified.find((text) => text.startsWith(`p${index}.sock `)))
    assert.match(told, /false: /)
    assert.ok(told.length < 2_500, `${told.length} characters`)
    assert.doesNotMatch(told, /\p{Cc}/u)
  }
  assert.deepEqual(bench.drivers.all(), [])
  const after = await bench.client.get('Node', { name: 'n1' })
  assert.deepEqual(
    [after.metadata.labels, after.metadata.annotations],
    [before.metadata.labels, before.metadata.annotations],
  )
})
