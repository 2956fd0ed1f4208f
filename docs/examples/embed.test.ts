// A cluster inside a test: it starts in the scope, and it is gone when the scope ends. In your own project write
// `import { startHawser } from 'hawser'`. Run: node --test docs/examples/embed.test.ts
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHawser } from '../../src/index.ts'

test('a claim is bound to a volume of the same size', async () => {
  await using hawser = await startHawser()
  const { client } = hawser

  await client.create('PersistentVolume', {
    metadata: { name: 'disk' },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: '',
      hostPath: { path: '/srv/disk' },
    },
  })
  await client.create('PersistentVolumeClaim', {
    metadata: { name: 'data', namespace: 'default' },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: '', resources: { requests: { storage: '1Gi' } } },
  })

  const stop = AbortSignal.timeout(10_000)
  for await (const event of client.watch('PersistentVolumeClaim', { namespace: 'default' }, stop)) {
    if (event.type === 'bookmark' || event.object.status?.phase !== 'Bound') continue
    assert.equal(event.object.spec?.volumeName, 'disk')
    return
  }
  assert.fail('the claim was not bound within ten seconds')
})
