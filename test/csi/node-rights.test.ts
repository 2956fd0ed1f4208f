// Does an agent ever ask for what its role does not give it? It lives with the rights of the role node: registration, pods with
// every kind of volume, growth, restart, deletion. A refusal would be tried again, and logged, for ever.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createInformers } from '../../src/client/informer.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createVirtualClock } from '../../src/clock/virtual-clock.ts'
import { createDrivers } from '../../src/csi/drivers.ts'
import { createModelStorage, modelConnection, modelDriverName } from '../../src/csi/model/driver.ts'
import { createRegistrar } from '../../src/csi/registration/registrar.ts'
import { createModelHost } from '../../src/host/model/model-host.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createTestApi } from '../kit/api.ts'
import { withNodeRights } from '../kit/node-rights.ts'
import { claimOf, createWholeCluster, driver, podWith } from '../kit/whole-cluster.ts'

const inDefault = (name: string) => ({ namespace: 'default', name })

test('an agent that runs, restarts and removes pods is refused nothing', async () => {
  const cluster = await createWholeCluster({ driverSpec: { volumeLifecycleModes: ['Persistent', 'Ephemeral'] } })
  const { client, clock } = cluster
  await client.create('ConfigMap', { metadata: inDefault('settings'), data: { a: '1' } })
  await client.create('Secret', { metadata: inDefault('key'), data: { a: 'eA==' } })
  await client.create('PersistentVolumeClaim', claimOf('data'))
  const template = { spec: claimOf('x').spec! }
  const sources = [
    { name: 'empty', emptyDir: {} },
    { name: 'settings', configMap: { name: 'settings' } },
    { name: 'key', secret: { secretName: 'key' } },
    { name: 'later', configMap: { name: 'later', optional: true } },
    { name: 'all', projected: { sources: [{ serviceAccountToken: { path: 'token' } }, { secret: { name: 'key' } }] } },
    { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
    { name: 'own', ephemeral: { volumeClaimTemplate: template } },
  ]
  await client.create('Pod', podWith('web', sources))
  await client.create('Pod', podWith('lacking', [{ name: 'none', configMap: { name: 'none' } }]))
  await clock.advance(60_000)
  assert.equal((await client.get('Pod', inDefault('web'))).status?.phase, 'Running')
  const body = { spec: { resources: { requests: { storage: '2Gi' } } } }
  await client.patch('PersistentVolumeClaim', inDefault('data'), { type: 'merge', body })
  await clock.advance(60_000)
  await cluster.restartNodes()
  await clock.advance(60_000)
  for (const name of ['web', 'lacking']) await client.remove('Pod', inDefault(name))
  await client.remove('PersistentVolumeClaim', inDefault('data'))
  await clock.advance(120_000)
  assert.deepEqual((await client.list('Pod')).items, [])
  await cluster.stop()
  assert.deepEqual(cluster.refused, [])
})

test('a node that registers drivers is refused nothing, and reads its limit again when it is full', async () => {
  const clock = createVirtualClock()
  const random = createRandom(1)
  const refused: string[] = []
  await using api = await createTestApi({ clock, random })
  const client = withNodeRights({ ...api, clock, random, refused }, 'n1')
  await api.client.create('Node', { metadata: { name: 'n1' } })
  await api.client.create('CSIDriver', {
    metadata: { name: driver },
    spec: { attachRequired: true, nodeAllocatableUpdatePeriodSeconds: 100_000 },
  })
  let asked = 0
  const host = createModelHost({ clock })
  const { node, ...services } = createModelStorage({ clock }).onNode({ nodeId: 'n1', host })
  const counted = {
    ...services,
    node: { ...node, nodeGetInfo: async () => ({ nodeId: 'n1', maxVolumesPerNode: BigInt(++asked) }) },
  }
  const informers = createInformers({ client, clock, random, log: silentLog })
  const drivers = createDrivers()
  const registrar = await createRegistrar(
    {
      ...{ client, informers, host, clock, log: silentLog, metrics: createMetrics() },
      ...{ connect: () => modelConnection(counted), drivers, nodeName: 'n1', root: '/node' },
    },
    new AbortController().signal,
  )
  await registrar.register({ name: modelDriverName, endpoint: '/run/csi.sock' }, new AbortController().signal)
  await clock.advance(60_000)
  const before = asked
  drivers.tellFull('another.example.com')
  await clock.advance(1_000)
  assert.equal(asked, before, 'not of this driver')
  drivers.tellFull(driver)
  await clock.advance(1_000)
  assert.equal(asked, before + 1, 'the driver is asked for its limit again')
  await registrar[Symbol.asyncDispose]()
  await informers[Symbol.asyncDispose]()
  assert.deepEqual(refused, [])
})
