// What does the node leave behind when a driver fails? The CSI plugin on the model host with the model driver: each node
// call with each status, and the rules about directories, metadata, secrets, tokens and groups.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PersistentVolume } from '../../src/api/generated/types.ts'
import { podUid } from '../../src/api/names.ts'
import { effectOf, statusCodes } from '../../src/csi/codes.ts'
import type { StatusName } from '../../src/csi/codes.ts'
import { wantsOwnership } from '../../src/plugins/csi/mount.ts'
import { VolumeError } from '../../src/volume/effect.ts'
import { createCsiNodeFixture, effectIs, pod, root, sha, signal } from '../kit/csi-node-plugin.ts'
import { specOfPersistentVolume, specOfPodVolume } from '../../src/volume/spec.ts'

const statuses = Object.keys(statusCodes) as StatusName[]

test('a volume is staged, published, unpublished and unstaged; nothing stays (CSI-4, CSI-5, CSI-7, CSI-42)', async () => {
  const bench = await createCsiNodeFixture()
  await bench.stage()
  await bench.plugin.mount(bench.request(), signal)
  const files = bench.world.host.files
  const saved = (directory: string) =>
    files.readText(`${directory}/vol_data.json`, signal).then((text) => JSON.parse(text) as object)
  assert.deepEqual(await saved(bench.staging.replace('/globalmount', '')), {
    driverName: 'model.hawser.dev',
    volumeHandle: bench.handle,
  })
  assert.deepEqual(await saved(bench.target), {
    attachmentID: `csi-${sha(`${bench.handle}model.hawser.devn1`)}`,
    driverName: 'model.hawser.dev',
    nodeName: 'n1',
    specVolID: 'pv1',
    volumeHandle: bench.handle,
    volumeLifecycleMode: 'Persistent',
  })
  const publish = bench.seen.find(({ rpc }) => rpc === 'nodePublishVolume')?.request
  assert.deepEqual(
    [publish?.['stagingTargetPath'], publish?.['targetPath'], publish?.['volumeContext']],
    [bench.staging, `${bench.target}/mount`, { a: 'b' }],
  )
  const restored = await bench.plugin.restore?.(
    { volumeName: 'pv1', pod: podUid('uid-1'), path: bench.target, mode: 'Filesystem' },
    signal,
  )
  assert.deepEqual(restored?.source, { kind: 'csi', value: { driver: 'model.hawser.dev', volumeHandle: bench.handle } })
  await bench.plugin.unmount({ volumeName: 'pv1', pod: podUid('uid-1'), target: bench.target }, signal)
  await bench.device.unmount({ path: bench.staging }, signal)
  assert.deepEqual(
    [await bench.exists(bench.target), await bench.exists(bench.staging.replace('/globalmount', ''))],
    [false, false],
  )
})

for (const status of statuses) {
  test(`${status} from stage and publish is ${effectOf(status)}; only a final one is cleaned up (TP-32, TP-31, CSI-15, CSI-32, CSI-38)`, async () => {
    const bench = await createCsiNodeFixture()
    const final = effectOf(status) === 'none'
    bench.setFaults((rpc) => (rpc === 'NodeStageVolume' ? { kind: 'refused', status } : undefined))
    await assert.rejects(bench.stage(), effectIs(effectOf(status)))
    assert.equal(await bench.exists(bench.staging), !final, 'staging directory')
    bench.setFaults(() => undefined)
    await bench.stage()
    bench.setFaults((rpc) => (rpc === 'NodePublishVolume' ? { kind: 'refused', status } : undefined))
    await assert.rejects(bench.plugin.mount(bench.request(), signal), effectIs(effectOf(status)))
    assert.equal(await bench.exists(`${bench.target}/vol_data.json`), !final, 'metadata')
    for (const kept of [{ remount: true }, { foundOnDisk: true }]) {
      await assert.rejects(bench.plugin.mount(bench.request(kept), signal))
      assert.equal(await bench.exists(`${bench.target}/vol_data.json`), true, 'a pod may be using it')
    }
    bench.setFaults((rpc, earlier) =>
      rpc.startsWith('NodeUn') && earlier === 0 ? { kind: 'answerLost', status } : undefined,
    )
    const unmount = { volumeName: 'pv1', pod: podUid('uid-1'), target: bench.target }
    await assert.rejects(bench.plugin.unmount(unmount, signal))
    await bench.plugin.unmount(unmount, signal)
    await assert.rejects(bench.device.unmount({ path: bench.staging }, signal))
    await bench.device.unmount({ path: bench.staging }, signal)
    assert.deepEqual([await bench.exists(bench.target), await bench.exists(bench.staging)], [false, false])
  })
}

test('no driver, no attachment and no secret are passing troubles that change nothing (TP-33)', async () => {
  const without = await createCsiNodeFixture({ driver: false })
  await assert.rejects(
    without.stage(),
    (error: Error) =>
      effectIs('untried')(error) &&
      /attacher.MountDevice failed to create newCsiDriverClient: driver name model.hawser.dev not found in the list of registered CSI drivers/.test(
        error.message,
      ),
  )
  const unattached = await createCsiNodeFixture({ driverSpec: { attachRequired: true } })
  await assert.rejects(unattached.stage(), effectIs('untried'))
  await assert.rejects(
    async () => unattached.device.waitForAttach?.({ spec: unattached.spec, devicePath: '', pod }, signal),
    effectIs('untried'),
  )
  const bench = await createCsiNodeFixture()
  const csi = { ...bench.pv.spec!.csi!, nodeStageSecretRef: { name: 'nope', namespace: 'default' } }
  const spec = specOfPersistentVolume({ ...bench.pv, spec: { ...bench.pv.spec, csi } }, false)
  await assert.rejects(
    bench.device.mount({ spec, devicePath: '', path: bench.staging, pod }, signal),
    (error: Error) =>
      effectIs('untried')(error) && /fetching NodeStageSecretRef default\/nope failed/.test(error.message),
  )
  assert.equal(await bench.exists(bench.staging), false)
})

test('an inline volume needs a driver that allows it; its id, context and target are its own (TP-34, CSI-8, CSI-36, CSI-43)', async () => {
  const refusing = await createCsiNodeFixture({ driverSpec: { volumeLifecycleModes: ['Persistent'] } })
  const spec = specOfPodVolume({
    name: 'i',
    csi: { driver: 'model.hawser.dev', fsType: 'ext4', volumeAttributes: { size: '8Mi' } },
  })
  const target = `${root}/pods/uid-1/volumes/kubernetes.io~csi/i`
  await assert.rejects(refusing.plugin.mount(refusing.request({ spec, target }), signal), effectIs('untried'))
  const bench = await createCsiNodeFixture({ driverSpec: { podInfoOnMount: true } })
  await bench.plugin.mount(bench.request({ spec, target }), signal)
  const publish = bench.seen.find(({ rpc }) => rpc === 'nodePublishVolume')?.request
  assert.equal(publish?.['volumeId'], `csi-${sha('uid-1i')}`)
  assert.equal(publish?.['stagingTargetPath'], '')
  assert.deepEqual(publish?.['volumeContext'], {
    size: '8Mi',
    'csi.storage.k8s.io/pod.name': 'p',
    'csi.storage.k8s.io/pod.namespace': 'default',
    'csi.storage.k8s.io/pod.uid': 'uid-1',
    'csi.storage.k8s.io/serviceAccount.name': 'robot',
    'csi.storage.k8s.io/ephemeral': 'true',
  })
  await bench.plugin.unmount({ volumeName: 'i', pod: podUid('uid-1'), target }, signal)
  assert.equal(await bench.exists(target), false)
})

test('tokens go to the context, or to the secrets when the driver says so; the volume’s attributes stay untouched (TP-36, CSI-37, WART-8)', async () => {
  for (const inSecrets of [false, true]) {
    const bench = await createCsiNodeFixture({
      driverSpec: { tokenRequests: [{ audience: '' }, { audience: 'x' }], serviceAccountTokenInSecrets: inSecrets },
    })
    await bench.world.client.create('ServiceAccount', {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'robot', namespace: 'default' },
    })
    const made = await bench.world.client.create('Pod', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace: 'default' },
      spec: { serviceAccountName: 'robot', containers: [{ name: 'c', image: 'i' }] },
    })
    await bench.stage()
    await bench.plugin.mount(bench.request({ pod: made }), signal)
    const publish = bench.seen.find(({ rpc }) => rpc === 'nodePublishVolume')?.request as {
      volumeContext: Record<string, string>
      secrets: Record<string, string>
    }
    const key = 'csi.storage.k8s.io/serviceAccount.tokens'
    const [holder, other] = inSecrets
      ? [publish.secrets, publish.volumeContext]
      : [publish.volumeContext, publish.secrets]
    const tokens = JSON.parse(holder[key] ?? '{}') as Record<string, { token: string; expirationTimestamp: string }>
    assert.deepEqual(Object.keys(tokens), ['', 'x'])
    assert.ok(tokens['x']?.token && tokens['x'].expirationTimestamp)
    assert.equal(key in other, false)
    assert.deepEqual(bench.pv.spec?.csi?.volumeAttributes, { a: 'b' })
  }
})

test('a driver without staging is never asked to stage, and no directory is left (TP-37, WART-5)', async () => {
  const bench = await createCsiNodeFixture({
    change: (handlers, host) => ({
      ...handlers,
      node: {
        ...handlers.node,
        nodeGetCapabilities: async () => ({ capabilities: [] }),
        nodePublishVolume: async ({ targetPath }) => {
          await host.files.writeFile(`${targetPath}/file`, 'x', { mode: 0o600, parentMode: 0o750 }, signal)
          return {}
        },
        nodeUnpublishVolume: async ({ targetPath }) => {
          await host.files.removeTree(targetPath, signal)
          return {}
        },
      },
    }),
  })
  await bench.stage()
  await bench.plugin.mount(bench.request(), signal)
  assert.equal(bench.seen.find(({ rpc }) => rpc === 'nodePublishVolume')?.request['stagingTargetPath'], '')
  await bench.plugin.unmount({ volumeName: 'pv1', pod: podUid('uid-1'), target: bench.target }, signal)
  await bench.device.unmount({ path: bench.staging }, signal)
  assert.ok(!bench.seen.some(({ rpc }) => rpc === 'nodeStageVolume' || rpc === 'nodeUnstageVolume'))
  assert.equal(await bench.exists(`${root}/plugins/kubernetes.io/csi/model.hawser.dev`), false)
})

test('who applies fsGroup (TP-35, CSI-40)', () => {
  for (const policy of ['None', 'File', 'ReadWriteOnceWithFSType'] as const) {
    for (const fsType of ['ext4', '']) {
      for (const mode of ['ReadWriteOnce', 'ReadWriteOncePod', 'ReadWriteMany'] as const) {
        for (const readOnly of [false, true]) {
          for (const byDriver of [false, true]) {
            const pv: PersistentVolume = {
              metadata: { name: 'pv' },
              spec: { csi: { driver: 'd', volumeHandle: 'h', fsType }, accessModes: [mode], volumeMode: 'Filesystem' },
            }
            const request = { spec: specOfPersistentVolume(pv, readOnly), ownership: { fsGroup: 5 } }
            const wanted =
              !readOnly &&
              !byDriver &&
              (policy === 'File' || (policy === 'ReadWriteOnceWithFSType' && fsType !== '' && mode !== 'ReadWriteMany'))
            const capabilities = new Set(byDriver ? (['VOLUME_MOUNT_GROUP'] as const) : [])
            assert.equal(
              wantsOwnership(request, policy, capabilities),
              wanted,
              `${policy} ${fsType} ${mode} ${readOnly} ${byDriver}`,
            )
          }
        }
      }
    }
  }
})

test('two volumes with one handle share one staging directory (TP-42)', async () => {
  const bench = await createCsiNodeFixture()
  const other = specOfPersistentVolume({ ...bench.pv, metadata: { name: 'pv2' } }, false)
  assert.equal(bench.device.path(other), bench.device.path(bench.spec))
})

test('an expansion that fails says why by its tags; a driver without it is not supported (CSI-16, WART-9)', async () => {
  const bench = await createCsiNodeFixture()
  await bench.stage()
  await bench.plugin.mount(bench.request(), signal)
  const expand = () =>
    bench.plugin.expand!(
      {
        spec: bench.spec,
        oldBytes: 1n,
        newBytes: 1n << 20n,
        path: `${bench.target}/mount`,
        stagingPath: bench.staging,
      },
      signal,
    )
  assert.equal(await expand(), 1n << 20n)
  for (const [status, tag] of [
    ['FAILED_PRECONDITION', 'failedPrecondition'],
    ['OUT_OF_RANGE', 'infeasible'],
    ['NOT_FOUND', 'infeasible'],
    ['INVALID_ARGUMENT', 'infeasible'],
  ] as const) {
    bench.setFaults((rpc) => (rpc === 'NodeExpandVolume' ? { kind: 'refused', status } : undefined))
    await assert.rejects(
      expand(),
      (error: unknown) => error instanceof VolumeError && error.tags.includes(tag) && error.effect === 'none',
    )
  }
  bench.setFaults((rpc) => (rpc === 'NodeExpandVolume' ? { kind: 'refused', status: 'DEADLINE_EXCEEDED' } : undefined))
  await assert.rejects(expand(), effectIs('unknown'))
  const without = await createCsiNodeFixture({
    change: (handlers) => ({
      ...handlers,
      node: { ...handlers.node, nodeGetCapabilities: async () => ({ capabilities: [] }) },
    }),
  })
  await assert.rejects(
    async () => without.plugin.expand?.({ spec: without.spec, oldBytes: 1n, newBytes: 2n, path: '/x' }, signal),
    (error: unknown) => error instanceof VolumeError && error.tags.includes('notSupported'),
  )
})
