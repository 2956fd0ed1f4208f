// Does a raw block volume leave nothing behind, wherever an agent died? The whole agent on virtual time.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNodeWorld, nodeName, pod, root } from '../kit/node.ts'

test('a device node whose link is gone already is found again by its record, and goes (BLOCK-4)', async () => {
  const world = await createNodeWorld()
  const { client, host, signal, clock } = world
  host.makeDiskFile('/var/disk', 1n << 24n)
  const device = await host.quiet.devices.attachLoop({ file: '/var/disk', readOnly: false }, signal)
  const common = { accessModes: ['ReadWriteOnce' as const], volumeMode: 'Block' as const, storageClassName: '' }
  await client.create('PersistentVolume', {
    metadata: { name: 'raw' },
    spec: {
      ...common,
      capacity: { storage: '16Mi' },
      claimRef: { namespace: 'default', name: 'raw' },
      local: { path: device },
      nodeAffinity: {
        required: {
          nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [nodeName] }] }],
        },
      },
    },
  })
  const claim = await client.create('PersistentVolumeClaim', {
    metadata: { name: 'raw', namespace: 'default' },
    spec: { ...common, volumeName: 'raw', resources: { requests: { storage: '16Mi' } } },
  })
  const named = { namespace: 'default', name: 'raw' }
  await client.patch(
    'PersistentVolume',
    { name: 'raw' },
    { type: 'merge', body: { spec: { claimRef: { uid: claim.metadata.uid } } } },
  )
  await client.patch(
    'PersistentVolumeClaim',
    named,
    { type: 'merge', body: { status: { phase: 'Bound' } } },
    { subresource: 'status' },
  )

  const { crash } = await world.start()
  const containers = [
    { name: 'c', image: 'i', command: ['run'], volumeDevices: [{ name: 'raw', devicePath: '/dev/x' }] },
  ]
  const volumes = [{ name: 'raw', persistentVolumeClaim: { claimName: 'raw' } }]
  const uid = await world.create(pod('p', volumes, { containers }))
  await clock.advance(2_000)
  assert.equal(await world.phase('p'), 'Running')
  const map = `${root}/plugins/kubernetes.io~local-volume/volumeDevices/raw`
  assert.deepEqual(await host.quiet.files.readDir(map, signal), [uid])

  crash()
  await host.quiet.files.unlink(`${root}/pods/${uid}/volumeDevices/kubernetes.io~local-volume/raw`, signal)
  await client.remove('Pod', { namespace: 'default', name: 'p' }, { gracePeriodSeconds: 0 })
  const { agent } = await world.start()
  await clock.advance(10_000)
  assert.equal(await host.quiet.files.exists(map, signal), false)
  assert.deepEqual(await world.podDirectories(), [])
  await agent.stop()
})
