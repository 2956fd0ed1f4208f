// A cluster inside a test: start it, use it, and it is gone with the scope. Run: node --test docs/examples/embedded.test.ts
// In your own project the import is from 'hawser'.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHawser } from '../../src/index.ts'

test('a claim finds a volume that fits', async () => {
  await using hawser = await startHawser()
  const { client } = hawser

  await client.create('PersistentVolume', {
    metadata: { name: 'disk' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: '',
      hostPath: { path: '/tmp/disk' },
    },
  })
  const claim = await client.create('PersistentVolumeClaim', {
    metadata: { name: 'data', namespace: 'default' },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName: '',
      resources: { requests: { storage: '500Mi' } },
    },
  })

  const signal = AbortSignal.timeout(10_000)
  const since = { namespace: 'default', resourceVersion: claim.metadata.resourceVersion ?? '' }
  for await (const event of client.watch('PersistentVolumeClaim', since, signal)) {
    if (event.type !== 'modified') continue
    if (event.object.status?.phase === 'Bound') {
      assert.equal(event.object.spec?.volumeName, 'disk')
      return
    }
  }
  assert.fail('the watch ended before the claim was bound')
})
