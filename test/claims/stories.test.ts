// The same controllers on the real API server: admission, validation, defaults, garbage collection and all.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createInformers } from '../../src/client/informer.ts'
import { createInProcessClient } from '../../src/client/in-process.ts'
import { createRecorder } from '../../src/client/recorder.ts'
import { createRandom } from '../../src/clock/random.ts'
import { createControllers } from '../../src/controllers/index.ts'
import { silentLog } from '../../src/telemetry/log.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { createRegistry } from '../../src/volume/registry.ts'
import { admin, makeServer } from '../kit/api-server.ts'
import { claimRequest, node, pod, storageClass, volumeRequest, withoutServerFields } from '../kit/objects.ts'

async function startCluster() {
  const { server, clock, ...rest } = await makeServer()
  const client = createInProcessClient(server.api(admin))
  const informers = createInformers({ client, clock, random: createRandom(2), log: silentLog })
  const recorder = (component: string) => createRecorder({ client, clock, log: silentLog, component })
  const common = { client, informers, clock, recorder, log: silentLog, metrics: createMetrics() }
  const options = { binding: { auditMs: 0 }, attachment: { verifyPeriodMs: 0 }, placement: {} }
  const controllers = createControllers({ ...common, plugins: createRegistry([]), options })
  await clock.settle()
  await client.create('Namespace', { metadata: { name: 'ns' } }).catch(() => {})
  return {
    client,
    clock,
    controllers,
    async stop() {
      const stopped = Promise.all([controllers[Symbol.asyncDispose](), informers[Symbol.asyncDispose]()])
      await clock.settle()
      await stopped
      await rest[Symbol.asyncDispose]()
    },
  }
}

const userVolume = (name: string, spec: object = {}) =>
  volumeRequest(name, { storageClassName: 'late', csi: { driver: 'd', volumeHandle: name }, ...spec })
const userClaim = (name: string, spec: object = {}) => claimRequest(name, spec, { namespace: 'ns' })

test('18.1 static, delayed: the placement reserves, the binding completes, the pod gets its node; all goes in reverse order', async () => {
  const { client, clock, stop } = await startCluster()
  await client.create('Node', withoutServerFields(node('n1')))
  await client.create(
    'StorageClass',
    withoutServerFields(
      storageClass('late', { volumeBindingMode: 'WaitForFirstConsumer', provisioner: 'kubernetes.io/no-provisioner' }),
    ),
  )
  await client.create('PersistentVolume', userVolume('v'))
  await client.create('PersistentVolumeClaim', userClaim('c', { storageClassName: 'late' }))
  await clock.settle()
  assert.equal((await client.get('PersistentVolumeClaim', { namespace: 'ns', name: 'c' })).status?.phase, 'Pending')
  await client.create('Pod', withoutServerFields(pod('p', { claims: ['c'] })))
  await clock.settle()
  const [placed, bound] = [
    await client.get('Pod', { namespace: 'ns', name: 'p' }),
    await client.get('PersistentVolumeClaim', { namespace: 'ns', name: 'c' }),
  ]
  assert.deepEqual([placed.spec?.nodeName, bound.status?.phase, bound.spec.volumeName], ['n1', 'Bound', 'v'])
  await client.remove('PersistentVolumeClaim', { namespace: 'ns', name: 'c' })
  await clock.settle()
  assert.notEqual(
    (await client.get('PersistentVolumeClaim', { namespace: 'ns', name: 'c' })).metadata.deletionTimestamp,
    undefined,
  )
  await client.remove('Pod', { namespace: 'ns', name: 'p' }, { gracePeriodSeconds: 0 })
  await clock.settle()
  await assert.rejects(client.get('PersistentVolumeClaim', { namespace: 'ns', name: 'c' }), /not found/)
  assert.equal((await client.get('PersistentVolume', { name: 'v' })).status?.phase, 'Released')
  await stop()
})

test('18.1 external, immediate: asked, made by somebody, bound by three writes; expansion is announced', async () => {
  const { client, clock, stop } = await startCluster()
  await client.create('StorageClass', withoutServerFields(storageClass('ext', { allowVolumeExpansion: true })))
  const made = await client.create('PersistentVolumeClaim', userClaim('c', { storageClassName: 'ext' }))
  await clock.settle()
  const claimRef = { namespace: 'ns', name: 'c', uid: made.metadata.uid! }
  await client.create('PersistentVolume', userVolume('pv', { storageClassName: 'ext', claimRef }))
  await clock.settle()
  const bound = await client.get('PersistentVolumeClaim', { namespace: 'ns', name: 'c' })
  assert.deepEqual([bound.status?.phase, bound.status?.capacity], ['Bound', { storage: '1Gi' }])
  const more = { spec: { resources: { requests: { storage: '2Gi' } } } }
  await client.patch('PersistentVolumeClaim', { namespace: 'ns', name: 'c' }, { type: 'merge', body: more })
  await clock.settle()
  const reasons = (await client.list('Event', { namespace: 'ns' })).items.map(({ reason }) => reason)
  assert.deepEqual(reasons.toSorted(), ['ExternalExpanding', 'ExternalProvisioning'])
  await stop()
})

test('a volume deleted by force leaves its claim Lost; its return heals it; then nothing is written any more (CLM-17, CLM-22, I-5)', async () => {
  const { client, clock, stop, controllers } = await startCluster()
  await client.create('PersistentVolume', userVolume('v', { storageClassName: 'x' }))
  const made = await client.create('PersistentVolumeClaim', userClaim('c', { storageClassName: 'x' }))
  await clock.settle()
  await client.remove('PersistentVolume', { name: 'v' })
  await client.patch('PersistentVolume', { name: 'v' }, { type: 'merge', body: { metadata: { finalizers: null } } })
  await clock.settle()
  const read = () => client.get('PersistentVolumeClaim', { namespace: 'ns', name: 'c' })
  assert.equal((await read()).status?.phase, 'Lost')
  assert.equal(controllers.waiting().get('PersistentVolumeClaim/ns/c')?.[0]?.reason, 'volumeLost')
  const claimRef = { namespace: 'ns', name: 'c', uid: made.metadata.uid! }
  await client.create('PersistentVolume', userVolume('v', { storageClassName: 'x', claimRef }))
  await clock.settle()
  assert.equal((await read()).status?.phase, 'Bound')
  const { resourceVersion } = await client.list('PersistentVolumeClaim')
  await clock.advance(60_000)
  assert.equal((await client.list('PersistentVolumeClaim')).resourceVersion, resourceVersion)
  await stop()
})
