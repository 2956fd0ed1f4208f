// Does every command that waits end soon after Ctrl-C or SIGTERM, and say what it leaves? One server that has controllers but no node:
// nothing that is asked of it here is ever done.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Client } from '../../src/client/client.ts'
import { createHttpClient } from '../../src/client/http.ts'
import { fileIn } from '../kit/command-line.ts'
import { startServer } from '../kit/server-process.ts'
import { speaking } from '../kit/speaking.ts'

let place = ''
before(() => void (place = mkdtempSync(join(tmpdir(), 'hawser-interrupt-'))))
after(() => rmSync(place, { recursive: true, force: true }))

const pod = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'applied' },
  spec: { containers: [{ name: 'c', image: 'none', command: ['true'] }] },
})

interface Case {
  readonly args: readonly string[]
  /** Said before the signal is sent. */
  readonly waits: RegExp
  readonly left: RegExp
  /** Done while the command starts. */
  readonly meanwhile?: (client: Client) => Promise<void>
}

const namespace = 'default'
const toDead = {
  apiVersion: 'v1',
  kind: 'Binding',
  metadata: { name: 'stuck' },
  target: { apiVersion: 'v1', kind: 'Node', name: 'dead' },
}

const cases: Readonly<Record<string, Case>> = {
  'volume create': {
    args: ['volume', 'create', 'new', '--size', '1Gi', '--class', 'slow'],
    waits: /waiting for a volume for claim new/,
    left: /persistentvolumeclaim\/new stays, and the server goes on with it\n {2}try: hawser why persistentvolumeclaim\/new/,
  },
  'volume rm': {
    args: ['volume', 'rm', 'held', '--yes'],
    waits: /claim held is held/,
    left: /persistentvolumeclaim\/held is still being deleted\n {2}try: hawser why persistentvolumeclaim\/held/,
  },
  'volume resize': {
    args: ['volume', 'resize', 'bound', '2Gi'],
    waits: /asked for 2Gi[^]*bound/,
    left: /persistentvolumeclaim\/bound stays, and the server goes on with it/,
  },
  'volume snapshot': {
    args: ['volume', 'snapshot', 'bound', '--as', 'snap'],
    waits: /taking the snapshot/,
    left: /volumesnapshot\/snap stays, and the server goes on with it/,
  },
  'volume export': {
    args: ['volume', 'export', 'bound'],
    waits: /waits for a node/,
    left: /the archive is incomplete; pod export-\w+ was deleted/,
  },
  apply: {
    args: ['apply', '--wait', '-f', 'APPLIED'],
    waits: /waiting for pod applied to run/,
    left: /pod\/applied stays, and the server goes on with it/,
  },
  delete: {
    args: ['delete', 'pod/there'],
    waits: /waiting for pod\/there: its node dead/,
    left: /pod\/there is still being deleted\n {2}try: hawser why pod\/there/,
  },
  'node drain': {
    args: ['node', 'drain', 'gone'],
    waits: /pod drained stops/,
    left: /pod\/drained is still being deleted; node gone gets no new pods/,
  },
  detach: {
    args: ['detach', 'pv/attached', 'gone', '--reason', 'test', '--force', '--yes'],
    waits: /nobody\.example\.com detaches/,
    left: /the volume is still being detached/,
  },
  'run without a node': {
    args: ['run', '--name', 'nowhere', '--', 'true'],
    waits: /pod nowhere waits for a node/,
    left: /SIGINT: pod nowhere was deleted/,
  },
  'run on a dead node': {
    args: ['run', '--name', 'stuck', '--', 'true'],
    meanwhile: async (client) => void (await client.post('Pod', { namespace, name: 'stuck' }, 'binding', toDead)),
    waits: /pod stuck waits for its volumes on dead/,
    left: /pod stuck is still being deleted: node dead has not confirmed it\n {2}try: hawser why pod\/stuck/,
  },
}

test('every command that waits ends soon after a signal, and says what it leaves', { timeout: 100_000 }, async (t) => {
  await using server = await startServer(['--bare'])
  using client = createHttpClient({ url: server.url, token: server.token, insecureSkipTlsVerify: true })
  await prepare(client)
  const applied = fileIn(place, 'applied.json', pod)
  const env = { KUBECONFIG: server.kubeconfig, HAWSER_DATA_DIR: server.dataDirectory }
  const signals = { SIGINT: 130, SIGTERM: 143 } as const
  for (const [name, { args, waits, left, meanwhile }] of Object.entries(cases)) {
    const signal = Object.keys(cases).indexOf(name) % 2 === 0 ? 'SIGTERM' : 'SIGINT'
    await t.test(`${name}: ${signal}`, async () => {
      await using child = speaking(
        args.map((word) => (word === 'APPLIED' ? applied : word)),
        env,
      )
      if (meanwhile) await until(() => meanwhile(client), name)
      await child.says(waits)
      const start = performance.now()
      await child.end(signal)
      const took = performance.now() - start
      assert.deepEqual([child.child.exitCode, child.child.signalCode], [signals[signal], null], child.text())
      assert.match(child.text(), left)
      assert.ok(took < 20_000, `it took ${Math.round(took)} ms`)
    })
  }
})

/** What stands still on this server: claims of a driver that nobody runs, pods of nodes without an agent. */
async function prepare(client: Client): Promise<void> {
  const provisioner = 'nobody.example.com'
  for (const name of ['dead', 'gone']) await client.create('Node', { metadata: { name } })
  await client.create('StorageClass', {
    metadata: { name: 'slow' },
    provisioner,
    allowVolumeExpansion: true,
    volumeBindingMode: 'Immediate',
  })
  await client.create('VolumeSnapshotClass', {
    metadata: { name: 'slow', annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
    driver: provisioner,
    deletionPolicy: 'Delete',
  })
  for (const name of ['bound', 'held', 'attached']) {
    const spec = { accessModes: ['ReadWriteOnce'] as const, storageClassName: 'slow' }
    await client.create('PersistentVolume', {
      metadata: { name },
      spec: {
        ...spec,
        capacity: { storage: '1Gi' },
        csi: { driver: provisioner, volumeHandle: name },
        claimRef: { namespace, name },
      },
    })
    await client.create('PersistentVolumeClaim', {
      metadata: { name, namespace },
      spec: { ...spec, volumeName: name, resources: { requests: { storage: '1Gi' } } },
    })
  }
  await client.create('VolumeAttachment', {
    metadata: { name: 'attachment', finalizers: [`external-attacher/${provisioner}`] },
    spec: { attacher: provisioner, nodeName: 'gone', source: { persistentVolumeName: 'attached' } },
  })
  const podOn = (name: string, nodeName: string, claims: readonly string[] = []) =>
    client.create('Pod', {
      metadata: { name, namespace },
      spec: {
        nodeName,
        containers: [{ name: 'c', image: 'none', command: ['true'] }],
        volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
      },
    })
  await podOn('there', 'dead')
  await podOn('drained', 'gone')
  await podOn('user', 'dead', ['held'])
  await until(async () => {
    const { items } = await client.list('PersistentVolumeClaim', { namespace })
    assert.deepEqual(
      items.map(({ status }) => status?.phase),
      ['Bound', 'Bound', 'Bound'],
    )
  }, 'claims')
}

/** Tries for ten seconds; the last failure is the test's. */
async function until(attempt: () => Promise<void>, what: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      if (tries >= 100) throw new Error(`${what}: ${(error as Error).message}`, { cause: error })
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
