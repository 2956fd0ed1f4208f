// Does a node find its drivers as a kubelet does? Real registration sockets in a real directory: nested, hidden, refused,
// replaced, gone; and what the cluster then knows of the node.
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { DescMethod } from '@bufbuild/protobuf'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { createSystemClock } from '../../src/clock/system-clock.ts'
import { openChannel } from '../../src/csi/channel.ts'
import { createDrivers } from '../../src/csi/drivers.ts'
import { createModelStorage } from '../../src/csi/model/driver.ts'
import {
  PluginInfoSchema,
  Registration,
  RegistrationStatusResponseSchema,
  RegistrationStatusSchema,
} from '../../src/csi/proto/registration_pb.ts'
import { createHandshake } from '../../src/csi/registration/handshake.ts'
import { createNodeInfoPublisher } from '../../src/csi/registration/node-info.ts'
import { watchSockets } from '../../src/csi/registration/sockets.ts'
import { serveOnSocket } from '../../src/csi/serve.ts'
import type { ServedSocket } from '../../src/csi/serve.ts'
import { csiServices, handleUnary } from '../../src/csi/service.ts'
import { createLinuxHost } from '../../src/host/linux/linux-host.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { until } from './cluster.ts'
import { createCsiWorld } from './world.ts'

const clock = createSystemClock()
const signal = new AbortController().signal

interface Plugin {
  readonly name: string
  readonly versions?: readonly string[]
  readonly type?: string
  readonly topologyKey?: string
  readonly maxVolumes?: bigint
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
  const handshake = createHandshake({ connect: openChannel, clock, drivers, nodeInfo })
  const notified: string[] = []
  /** Serves a driver and its registrar; the registration socket lies at `path` below the watched directory. */
  const plug = async (path: string, plugin: Plugin): Promise<ServedSocket> => {
    const storage = createModelStorage({
      clock,
      name: plugin.name,
      maxVolumesPerNode: plugin.maxVolumes ?? 0n,
      ...(plugin.topologyKey !== undefined && { topologyKey: plugin.topologyKey }),
    })
    const handlers = storage.onNode({ nodeId: `id-of-${plugin.name}`, host: createModelHost({ clock }) })
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
          endpoint,
          supportedVersions: [...(plugin.versions ?? ['1.0.0'])],
        }
        return toBinary(PluginInfoSchema, create(PluginInfoSchema, info))
      }
      const { pluginRegistered, error } = fromBinary(RegistrationStatusSchema, bytes)
      notified.push(`${path} ${pluginRegistered}${error === '' ? '' : `: ${error}`}`)
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
    plug,
    watch,
    notified,
    entries,
    directory,
    stack,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('T-28: sockets present at start and nested ones register, a hidden one does not; a new one is found at once (REG-1)', async () => {
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

test('REG-5, CSINODE-5: a socket that goes takes its driver along', async () => {
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

test('T-29: the same name needs a higher version; 0.3.0 and 2.0.0 alone and foreign types are refused (REG-6)', async () => {
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

test('T-30: a topology that contradicts the node’s label is refused and published nowhere (CSINODE-1)', async () => {
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
