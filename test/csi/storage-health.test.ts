// Does the cluster hear how the storage is, as a node sees it? CSINode and the metric, from a driver that can tell (CSI-71,
// MEA-13).
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDrivers, openDriver } from '../../src/csi/drivers.ts'
import { modelConnection } from '../../src/csi/model/driver.ts'
import { NodeServiceCapability_RPC_Type as NodeRpc } from '../../src/csi/generated/csi_pb.ts'
import { createNodeInfoPublisher } from '../../src/csi/registration/node-info.ts'
import { createStorageHealth } from '../../src/csi/registration/storage-health.ts'
import { directTransport } from '../../src/csi/service.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createCsiWorld, furnish } from '../kit/csi-cluster.ts'

const degraded = (reason: string, message = '') => ({ status: 1, reason, message })
const forBlock = { volumeCapability: { accessType: { case: 'block' as const, value: {} }, accessMode: { mode: 1 } } }

async function createBench(types: readonly NodeRpc[] = [NodeRpc.GET_STORAGE_HEALTH]) {
  const world = await createCsiWorld()
  await furnish(world)
  const { client, clock } = world
  let backendHealth: readonly object[] | 'fails' = []
  const handlers = {
    ...world.handlers,
    node: {
      ...world.handlers.node,
      nodeGetCapabilities: async () => ({
        capabilities: types.map((type) => ({ type: { case: 'rpc' as const, value: { type } } })),
      }),
      async nodeGetStorageHealth() {
        if (backendHealth === 'fails') throw new Error('no answer')
        return { backendHealth: backendHealth as never }
      },
    },
  }
  const drivers = createDrivers()
  const metrics = createMetrics()
  const nodeInfo = createNodeInfoPublisher({ client, clock, nodeName: 'n1' })
  const monitor = createStorageHealth({ clock, log: silentLog, metrics, drivers, nodeInfo })
  const connect = () => modelConnection(directTransport(handlers))
  const driver = openDriver({ name: 'd', endpoint: '', connect, clock })
  drivers.add(driver)
  const node = () => client.get('CSINode', { name: 'n1' })
  return {
    drivers,
    driver,
    node,
    /** What CSINode says a minute after the storage says this. */
    async after(next: typeof backendHealth) {
      backendHealth = next
      await clock.advance(61_000)
      return (await node()).status?.storageHealth
    },
    minute: () => clock.advance(61_000),
    gauges: async () => (await metrics.text()).split('\n').filter((line) => line.startsWith('csi_node_storage_health')),
    stop: () => monitor[Symbol.asyncDispose](),
  }
}

test('conditions come and go in CSINode; what stays keeps its time; unknown ones are skipped (CSI-71)', async () => {
  const bench = await createBench()
  assert.equal(await bench.after([]), undefined)
  const first = await bench.after([degraded('Slow', 'x'), { status: 2, reason: 'Cut', ...forBlock }, { status: 9 }])
  const since = first?.[0]?.healthConditions?.[0]?.lastTransitionTime
  assert.deepEqual(first, [
    {
      name: 'd',
      healthConditions: [
        { status: 'StorageDegraded', reason: 'Slow', message: 'x', lastTransitionTime: since },
        {
          status: 'StorageUnreachable',
          reason: 'Cut',
          volumeMode: 'Block',
          accessMode: 'ReadWriteOnce',
          lastTransitionTime: since,
        },
      ],
    },
  ])
  assert.deepEqual((await bench.gauges()).toSorted(), [
    'csi_node_storage_health_status{driver_name="d",status="StorageDegraded",reason="Slow"} 1',
    'csi_node_storage_health_status{driver_name="d",status="StorageUnreachable",reason="Cut"} 1',
  ])
  const { resourceVersion } = (await bench.node()).metadata
  await bench.after([{ status: 2, reason: 'Cut', message: 'other words', ...forBlock }, degraded('Slow', 'y')])
  await bench.after('fails')
  assert.equal((await bench.node()).metadata.resourceVersion, resourceVersion, 'words alone and silence are no news')
  const left = await bench.after([degraded('Slow')])
  assert.deepEqual(
    left?.[0]?.healthConditions?.map(({ reason, lastTransitionTime }) => [reason, lastTransitionTime]),
    [['Slow', since]],
  )
  bench.drivers.remove(bench.driver)
  await bench.minute()
  assert.deepEqual(await bench.gauges(), [])
  await bench.stop()
})

test('more than sixteen conditions are refused; a driver that cannot tell is not asked (CSI-71)', async () => {
  const bench = await createBench()
  assert.equal(await bench.after(Array.from({ length: 17 }, (_, index) => degraded(`r${index}`))), undefined)
  await bench.stop()
  const silent = await createBench([])
  assert.equal(await silent.after([degraded('Slow')]), undefined)
  await silent.stop()
})
