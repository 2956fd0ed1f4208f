// Storage is deleted only when the server itself still says so: what our cache shows may be minutes old.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluginName } from '../../api/names.ts'
import type { PersistentVolume, PersistentVolumeClaim } from '../../api/generated/types.ts'
import { notFound } from '../../api/status-error.ts'
import { createVirtualClock } from '../../clock/virtual-clock.ts'
import { createPending } from '../../loop/pending.ts'
import type { ClusterPlugin } from '../../volume/plugin.ts'
import { createRegistry } from '../../volume/registry.ts'
import type { ReclaimDeps } from './reclaim.ts'
import { createReclaim } from './reclaim.ts'

const claimRef = { namespace: 'ns', name: 'c', uid: 'claim-1' }
const seen: PersistentVolume = {
  metadata: { name: 'v', uid: 'volume-1' },
  spec: { volumeMode: 'Filesystem', flexVolume: { driver: 'x' }, claimRef, persistentVolumeReclaimPolicy: 'Delete' },
  status: { phase: 'Released' },
}
const withSpec = (spec: Partial<PersistentVolume['spec']>): PersistentVolume => ({
  ...seen,
  spec: { ...seen.spec, ...spec },
})
const claim = (uid: string, volumeName?: string): PersistentVolumeClaim => ({
  metadata: { namespace: 'ns', name: 'c', uid },
  spec: { resources: {}, ...(volumeName === undefined ? {} : { volumeName }) },
})

interface Server {
  readonly volume?: PersistentVolume | undefined
  readonly claim?: PersistentVolumeClaim | undefined
}

/** Which calls reach the storage when the cache shows a released volume and the server something else? */
async function reclaimed(server: Server): Promise<readonly string[]> {
  const calls: string[] = []
  const clock = createVirtualClock()
  const pending = createPending(clock)
  const plugin: ClusterPlugin = { remove: async () => void calls.push('storage removed') }
  const plugins = createRegistry<ClusterPlugin>([
    {
      name: pluginName('kubernetes.io/disk'),
      traits: { takesMountOptions: false, remountOnPodUpdate: false },
      volumeName: () => 'x',
      supports: () => true,
      plugin,
    },
  ])
  const objects: Readonly<Record<string, unknown>> = {
    PersistentVolume: server.volume,
    PersistentVolumeClaim: server.claim,
  }
  const deps = {
    client: {
      async get(kind: string) {
        if (objects[kind] === undefined) throw notFound({ group: '', plural: kind }, 'v')
        return objects[kind]
      },
      remove: async () => void calls.push('object removed'),
    },
    clock,
    plugins,
    pending,
    writer: { putVolume: async () => {} },
    metrics: { deleteStarted() {}, failed() {} },
  } as unknown as ReclaimDeps // deleting asks for these only
  await createReclaim(deps)(seen, new AbortController().signal)
  await pending.idle()
  return calls
}

test('a volume that the server still shows as released is deleted, then its object (RCL-6)', async () => {
  assert.deepEqual(await reclaimed({ volume: seen }), ['storage removed', 'object removed'])
  const another = { volume: seen, claim: claim('claim-2', 'v') }
  assert.deepEqual(await reclaimed(another), ['storage removed', 'object removed'])
})

test('nothing is deleted when the server knows better than the cache (RCL-6, WC-14, I-2)', async (context) => {
  const table: readonly (readonly [name: string, server: Server])[] = [
    ['the policy is Retain by now', { volume: withSpec({ persistentVolumeReclaimPolicy: 'Retain' }) }],
    ['the volume is gone', {}],
    ['another volume has its name', { volume: { ...seen, metadata: { name: 'v', uid: 'volume-2' } } }],
    ['the volume was given free', { volume: withSpec({ claimRef: { namespace: 'ns', name: 'c' } }) }],
    ['its claim is there and bound', { volume: seen, claim: claim('claim-1', 'v') }],
    ['its claim is there and not bound yet', { volume: seen, claim: claim('claim-1') }],
  ]
  for (const [name, server] of table)
    await context.test(name, async () => assert.deepEqual(await reclaimed(server), []))
})
