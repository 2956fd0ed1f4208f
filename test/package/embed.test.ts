// Does the library keep its word inside a test? The documented example runs, and a cluster leaves nothing behind.
import assert from 'node:assert/strict'
import { existsSync, statSync } from 'node:fs'
import { test } from 'node:test'
import { isNotFound, startHawser, UsageError } from '../../src/index.ts'
import '../../docs/examples/embed.test.ts'

test('a cluster is gone with its scope: directory, port and all', async () => {
  let directory = ''
  let url = ''
  {
    await using hawser = await startHawser()
    ;({ dataDirectory: directory, url } = hawser)
    assert.equal(statSync(hawser.kubeconfig).mode & 0o777, 0o600)
    await assert.rejects(hawser.client.get('Pod', { name: 'none', namespace: 'default' }), isNotFound)
  }
  assert.ok(!existsSync(directory))
  await assert.rejects(fetch(url), TypeError)
})

test('two clusters live side by side', async () => {
  await using first = await startHawser()
  await using second = await startHawser()
  await first.client.create('Namespace', { metadata: { name: 'only-here' } })
  await assert.rejects(second.client.get('Namespace', { name: 'only-here' }), isNotFound)
})

test('nodes without root are refused in a sentence', { skip: process.getuid?.() === 0 && 'is root' }, async () => {
  await assert.rejects(startHawser({ nodes: ['one'] }), UsageError)
})

test(
  'with a node, a pod runs to its end',
  { skip: process.getuid?.() !== 0 && 'needs root', timeout: 60_000 },
  async () => {
    await using hawser = await startHawser({ nodes: ['one'] })
    const { client } = hawser
    const container = { name: 'c', image: 'none', command: ['sh', '-c', 'exit 3'] }
    const metadata = { name: 'p', namespace: 'default' }
    await client.create('Pod', { metadata, spec: { restartPolicy: 'Never', containers: [container] } })
    for await (const event of client.watch('Pod', { namespace: 'default' }, AbortSignal.timeout(30_000))) {
      if (event.type === 'bookmark' || event.object.status?.phase !== 'Failed') continue
      assert.equal(event.object.status.containerStatuses?.[0]?.state?.terminated?.exitCode, 3)
      await client.remove('Pod', metadata, { gracePeriodSeconds: 0 })
      return
    }
    assert.fail('the pod did not end')
  },
)
