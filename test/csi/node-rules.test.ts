// What exactly is a driver told on the node, and when is it not asked at all? Stage and publish to the letter, raw devices,
// metadata on disk, attachments, secrets, usage, time limits: one test per rule of the specification's chapter 22.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http2'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { podUid, uniqueVolumeName } from '../../src/api/names.ts'
import type { CSIPersistentVolumeSource, PersistentVolume } from '../../src/api/generated/types.ts'
import { openChannel } from '../../src/csi/channel.ts'
import { createNodeCalls } from '../../src/csi/node.ts'
import { NodeServiceCapability_RPC_Type as NodeRpc, VolumeUsage_Unit } from '../../src/csi/generated/csi_pb.ts'
import type { VolumeHealthErrorType } from '../../src/csi/generated/csi_pb.ts'
import { createWire, directTransport } from '../../src/csi/service.ts'
import type { Host } from '../../src/host/host.ts'
import type { DriverHandlers } from '../../src/csi/service.ts'
import csiPlugin from '../../src/plugins/csi/plugin.ts'
import { removeMountDirectory } from '../../src/plugins/csi/saved-data.ts'
import { VolumeError } from '../../src/volume/effect.ts'
import { createCsiNodeFixture, effectIs, pod, root, sha, signal } from '../kit/csi-node-plugin.ts'
import { specOfPersistentVolume, specOfPodVolume } from '../../src/volume/spec.ts'

type Bench = Awaited<ReturnType<typeof createCsiNodeFixture>>

const lastRequest = (bench: Bench, rpc: string) => bench.seen.findLast((each) => each.rpc === rpc)?.request
const asked = (bench: Bench) => bench.seen.map(({ rpc }) => rpc).filter((rpc) => !rpc.includes('Capabilities'))

const offering =
  (types: readonly NodeRpc[]) =>
  (handlers: DriverHandlers): DriverHandlers => ({
    ...handlers,
    node: {
      ...handlers.node,
      nodeGetCapabilities: async () => ({
        capabilities: types.map((type) => ({ type: { case: 'rpc' as const, value: { type } } })),
      }),
    },
  })

function withSource(pv: PersistentVolume, csi: Partial<CSIPersistentVolumeSource>, more: object = {}) {
  const value = { ...pv.spec!.csi!, ...csi }
  return specOfPersistentVolume({ ...pv, spec: { ...pv.spec, ...more, csi: value } }, false)
}

const makeSecret = ({ world }: Bench, name: string) =>
  world.client.create('Secret', {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'default' },
    data: { key: Buffer.from(`of ${name}`).toString('base64') },
  })

test('a volume is named by driver and handle; an inline one has no name of its own (CSI-1, CSI-2)', async () => {
  const { spec, handle } = await createCsiNodeFixture()
  assert.equal(csiPlugin.name, 'kubernetes.io/csi')
  assert.equal(csiPlugin.volumeName(spec as never), `model.hawser.dev^${handle}`)
  assert.throws(() => csiPlugin.volumeName(specOfPodVolume({ name: 'i', csi: { driver: 'd' } }) as never), VolumeError)
  assert.equal(
    uniqueVolumeName(`kubernetes.io/csi/model.hawser.dev^${handle}`),
    `kubernetes.io/csi/model.hawser.dev^${handle}`,
  )
})

test('only a driver that asks for it is published again, and then a failure touches nothing (CSI-3, CSI-39)', async () => {
  const quiet = await createCsiNodeFixture()
  assert.equal(quiet.plugin.remountRequired?.(quiet.spec), false)
  const bench = await createCsiNodeFixture({ driverSpec: { requiresRepublish: true } })
  assert.equal(bench.plugin.remountRequired?.(bench.spec), true)
  await bench.stage()
  await bench.plugin.mount(bench.request(), signal)
  await bench.plugin.mount(bench.request({ remount: true }), signal)
  assert.deepEqual(asked(bench), ['createVolume', 'nodeStageVolume', 'nodePublishVolume', 'nodePublishVolume'].slice(1))
  bench.setFaults((rpc) => (rpc === 'NodePublishVolume' ? { kind: 'refused', status: 'INTERNAL' } : undefined))
  await assert.rejects(bench.plugin.mount(bench.request({ remount: true }), signal))
  assert.equal(await bench.world.host.mounts.isMountPoint(`${bench.target}/mount`, signal), true)
  assert.equal(await bench.exists(`${bench.target}/vol_data.json`), true)
})

test('the stage request to the letter (CSI-30, CSI-31)', async () => {
  const bench = await createCsiNodeFixture()
  await makeSecret(bench, 'stage')
  const spec = withSource(bench.pv, { nodeStageSecretRef: { name: 'stage', namespace: 'default' } })
  await bench.device.mount({ spec, devicePath: '', path: bench.staging, pod, fsGroup: 5 }, signal)
  const request = lastRequest(bench, 'nodeStageVolume')
  assert.partialDeepStrictEqual(request, {
    volumeId: bench.handle,
    stagingTargetPath: bench.staging,
    publishContext: {},
    volumeContext: { a: 'b' },
    secrets: { key: 'of stage' },
    volumeCapability: {
      accessType: { case: 'mount', value: { fsType: 'ext4', mountFlags: ['noatime'], volumeMountGroup: '' } },
      accessMode: { mode: 7 }, // SINGLE_NODE_MULTI_WRITER: the model driver has the capability (CSI-19)
    },
  })
})

test('a SELinux label is one more mount flag, and stands in the metadata for the next life (CSI-7, CSI-30, CSI-33)', async () => {
  const bench = await createCsiNodeFixture({ driverSpec: { seLinuxMount: true } })
  const seLinuxLabel = 'system_u:object_r:container_file_t:s0:c1,c2'
  assert.equal(bench.plugin.seLinuxMount!(bench.spec), true)
  await bench.device.mount({ spec: bench.spec, devicePath: '', path: bench.staging, pod, seLinuxLabel }, signal)
  await bench.plugin.mount(bench.request({ seLinuxLabel }), signal)
  const mountFlags = ['noatime', `context="${seLinuxLabel}"`]
  for (const rpc of ['nodeStageVolume', 'nodePublishVolume'])
    assert.partialDeepStrictEqual(lastRequest(bench, rpc), {
      volumeCapability: { accessType: { case: 'mount', value: { mountFlags } } },
    })
  const found = { volumeName: 'pv1', pod: podUid('uid-1'), path: bench.target, mode: 'Filesystem' as const }
  assert.equal(await bench.plugin.restoredLabel!(found, signal), seLinuxLabel)
  const silent = await createCsiNodeFixture()
  assert.equal(silent.plugin.seLinuxMount!(silent.spec), false)
})

test('a driver that mounts with a group is told it, and the node leaves the files alone (CSI-18, CSI-31, CSI-40)', async () => {
  const bench = await createCsiNodeFixture({
    driverSpec: { fsGroupPolicy: 'File' },
    change: offering([NodeRpc.STAGE_UNSTAGE_VOLUME, NodeRpc.VOLUME_MOUNT_GROUP, 999 as NodeRpc]),
  })
  await bench.device.mount({ spec: bench.spec, devicePath: '', path: bench.staging, pod, fsGroup: 5 }, signal)
  await bench.plugin.mount(bench.request({ ownership: { fsGroup: 5 } }), signal)
  for (const rpc of ['nodeStageVolume', 'nodePublishVolume'])
    assert.partialDeepStrictEqual(lastRequest(bench, rpc), {
      volumeCapability: {
        accessType: { case: 'mount', value: { volumeMountGroup: '5' } },
        accessMode: { mode: 1 }, // SINGLE_NODE_WRITER: no other capability was offered
      },
    })
  assert.notEqual((await bench.world.host.files.stat(`${bench.target}/mount`, signal)).gid, 5)
})

test('the publish request to the letter; pod information wins over equal attributes (CSI-33, CSI-35, CSI-36)', async () => {
  const bench = await createCsiNodeFixture({ driverSpec: { podInfoOnMount: true } })
  await makeSecret(bench, 'publish')
  const spec = specOfPersistentVolume(
    withSource(bench.pv, {
      nodePublishSecretRef: { name: 'publish', namespace: 'default' },
      volumeAttributes: { a: 'b', 'csi.storage.k8s.io/pod.name': 'an impostor' },
    }).persistentVolume!,
    true,
  )
  await bench.stage()
  await bench.plugin.mount(bench.request({ spec }), signal)
  assert.partialDeepStrictEqual(lastRequest(bench, 'nodePublishVolume'), {
    volumeId: bench.handle,
    stagingTargetPath: bench.staging,
    targetPath: `${bench.target}/mount`,
    readonly: true,
    publishContext: {},
    secrets: { key: 'of publish' },
    volumeContext: {
      a: 'b',
      'csi.storage.k8s.io/pod.name': 'p',
      'csi.storage.k8s.io/pod.namespace': 'default',
      'csi.storage.k8s.io/pod.uid': 'uid-1',
      'csi.storage.k8s.io/serviceAccount.name': 'robot',
      'csi.storage.k8s.io/ephemeral': 'false',
    },
  })
})

test('a missing publish secret is found before anything is written or asked (CSI-33)', async () => {
  const bench = await createCsiNodeFixture()
  const spec = withSource(bench.pv, { nodePublishSecretRef: { name: 'nope', namespace: 'default' } })
  await bench.stage()
  await assert.rejects(bench.plugin.mount(bench.request({ spec }), signal), effectIs('untried'))
  assert.equal(await bench.exists(`${bench.target}/vol_data.json`), false)
  assert.ok(!asked(bench).includes('nodePublishVolume'))
})

test('without a CSIDriver object only persistent volumes are allowed (CSI-34)', async () => {
  const inline = specOfPodVolume({ name: 'i', csi: { driver: 'model.hawser.dev' } })
  const bench = await createCsiNodeFixture({ object: false })
  await assert.rejects(
    bench.plugin.mount(
      bench.request({ spec: inline, target: `${root}/pods/uid-1/volumes/kubernetes.io~csi/i` }),
      signal,
    ),
    (error: Error) => effectIs('untried')(error) && /no CSIDriver object/.test(error.message),
  )
  const persistent = await createCsiNodeFixture({ object: false, attached: true })
  await persistent.stage()
  await persistent.plugin.mount(persistent.request(), signal)
})

test('a volume is waited for until its attachment says so, and its context reaches the driver (CSI-24, CSI-25)', async () => {
  const bench = await createCsiNodeFixture({ driverSpec: { attachRequired: true } })
  const { client } = bench.world
  const name = `csi-${sha(`${bench.handle}model.hawser.devn1`)}`
  const wait = () => bench.device.waitForAttach!({ spec: bench.spec, devicePath: '', pod }, signal)
  await assert.rejects(wait(), effectIs('untried'))
  const made = await client.create('VolumeAttachment', {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name, finalizers: ['example.com/test'] },
    spec: { attacher: 'model.hawser.dev', nodeName: 'n1', source: { persistentVolumeName: 'pv1' } },
  })
  await assert.rejects(
    wait(),
    (error: Error) => effectIs('untried')(error) && /not been attached yet/.test(error.message),
  )
  const status = { attached: true, attachmentMetadata: { device: 'sdx' } }
  await client.update('VolumeAttachment', { ...made, status }, { subresource: 'status' })
  assert.equal(await wait(), name)
  await bench.stage()
  await bench.plugin.mount(bench.request(), signal)
  for (const rpc of ['nodeStageVolume', 'nodePublishVolume'])
    assert.deepEqual(lastRequest(bench, rpc)?.['publishContext'], { device: 'sdx' })
  await client.remove('VolumeAttachment', { name })
  await assert.rejects(wait(), /is being deleted/)
})

test('without metadata nothing is asked of a driver; a missing driver is waited for (CSI-9, CSI-12)', async () => {
  const bench = await createCsiNodeFixture()
  const unmount = { volumeName: 'pv1', pod: podUid('uid-1'), target: bench.target }
  await assert.rejects(bench.plugin.unmount(unmount, signal), effectIs('untried'))
  await bench.device.unmount({ path: bench.staging }, signal) // nothing was staged: done
  const { files } = bench.world.host
  for (const directory of [bench.target, bench.staging.replace('/globalmount', '')]) {
    await files.mkdirAll(directory, 0o750, signal)
    await files.writeFile(`${directory}/vol_data.json`, '{"driverName":', { mode: 0o644 }, signal)
  }
  await assert.rejects(bench.plugin.unmount(unmount, signal), /failed to parse volume data file/)
  await assert.rejects(bench.device.unmount({ path: bench.staging }, signal), /failed to parse volume data file/)
  assert.deepEqual(asked(bench), [])
  const away = await createCsiNodeFixture({ driver: false })
  await away.world.host.files.mkdirAll(away.target, 0o750, signal)
  const data = { driverName: 'model.hawser.dev', volumeHandle: 'h' }
  await away.world.host.files.writeFile(`${away.target}/vol_data.json`, JSON.stringify(data), { mode: 0o644 }, signal)
  await assert.rejects(away.plugin.unmount(unmount, signal), effectIs('untried'))
  assert.equal(await away.exists(`${away.target}/vol_data.json`), true)
})

test('with damaged or lost metadata the agent’s own record serves, and nothing staged is called gone (WART-6)', async () => {
  for (const damage of ['', 'garbage', undefined]) {
    const bench = await createCsiNodeFixture()
    const { files } = bench.world.host
    await bench.stage()
    await bench.plugin.mount(bench.request(), signal)
    for (const directory of [bench.target, bench.staging.replace('/globalmount', '')]) {
      const file = `${directory}/vol_data.json`
      if (damage === undefined) await files.unlink(file, signal)
      else await files.writeFile(file, damage, { mode: 0o644 }, signal)
    }
    await assert.rejects(bench.device.unmount({ path: bench.staging }, signal), effectIs('untried'), 'still staged')
    const { spec, target, staging } = bench
    await bench.plugin.unmount({ volumeName: 'pv1', pod: podUid('uid-1'), target, spec }, signal)
    await bench.device.unmount({ path: staging, spec }, signal)
    assert.deepEqual(asked(bench).slice(-2), ['nodeUnpublishVolume', 'nodeUnstageVolume'])
    assert.deepEqual([await bench.exists(target), await bench.exists(staging)], [false, false])
  }
})

test('a full disk before the driver was asked leaves nothing in doubt (DES-13)', async () => {
  const bench = await createCsiNodeFixture()
  const { faults } = bench.world.host
  const full = { call: 'files.writeFile', kind: 'fails', code: 'ENOSPC', times: 1 } as const
  faults.plant(full)
  await assert.rejects(bench.stage(), effectIs('untried'))
  await bench.stage()
  faults.plant(full)
  await assert.rejects(bench.plugin.mount(bench.request(), signal), effectIs('untried'))
  faults.plant({ ...full, kind: 'failsAfter', code: 'TIMEOUT' })
  await assert.rejects(bench.plugin.mount(bench.request(), signal), effectIs('unknown'), 'the file may be there')
  assert.deepEqual(asked(bench), ['nodeStageVolume'])
})

test('what was prepared for a driver that was never asked is removed again, unless an earlier call may need it (CSI-11)', async () => {
  const full = { call: 'files.writeFile', kind: 'fails', code: 'ENOSPC', times: 1 } as const
  const bench = await createCsiNodeFixture()
  bench.world.host.faults.plant(full)
  await assert.rejects(bench.stage(), effectIs('untried'))
  assert.equal(await bench.exists(dirname(bench.staging)), false, 'nothing was staged, no directory is left')
  await bench.stage()
  bench.world.host.faults.plant(full)
  await assert.rejects(bench.stage(), effectIs('untried'))
  assert.equal(await bench.exists(`${dirname(bench.staging)}/vol_data.json`), true, 'it is staged')
  await bench.device.unmount({ path: bench.staging }, signal)
  await bench.world.host.files.mkdirAll(bench.staging, 0o750, signal)
  await bench.device.unmount({ path: bench.staging }, signal)
  assert.equal(await bench.exists(dirname(bench.staging)), false, 'an unstage leaves no directory without metadata')
})

test('a final failure whose leavings cannot be removed is not final: somebody must come back (CSI-32, CSI-38)', async () => {
  const bench = await createCsiNodeFixture()
  const stuck = () => bench.world.host.faults.plant({ call: 'files.remove', kind: 'fails', code: 'EROFS', times: 1 })
  bench.setFaults((rpc) => (rpc === 'NodeStageVolume' ? { kind: 'refused', status: 'INTERNAL' } : undefined))
  stuck()
  await assert.rejects(bench.stage(), effectIs('unknown'))
  bench.setFaults(() => undefined)
  await bench.stage()
  bench.setFaults((rpc) => (rpc === 'NodePublishVolume' ? { kind: 'refused', status: 'INTERNAL' } : undefined))
  stuck()
  await assert.rejects(bench.plugin.mount(bench.request(), signal), effectIs('unknown'))
  assert.equal(await bench.exists(`${bench.target}/vol_data.json`), true)
  await assert.rejects(bench.plugin.mount(bench.request(), signal), effectIs('none'))
  assert.equal(await bench.exists(bench.target), false)
})

test('what a volume was is read from its metadata: inline, filesystem or raw (CSI-10)', async () => {
  const bench = await createCsiNodeFixture()
  const { files } = bench.world.host
  const save = async (directory: string, data: object) => {
    await files.mkdirAll(directory, 0o750, signal)
    await files.writeFile(`${directory}/vol_data.json`, JSON.stringify(data), { mode: 0o644 }, signal)
  }
  const inline = `${root}/pods/uid-1/volumes/kubernetes.io~csi/i`
  await save(inline, { driverName: 'd', volumeHandle: 'csi-1', volumeLifecycleMode: 'Ephemeral' })
  const restore = (volumeName: string, path: string, mode: 'Filesystem' | 'Block') =>
    bench.plugin.restore!({ volumeName, pod: podUid('uid-1'), path, mode }, signal)
  assert.deepEqual((await restore('i', `${inline}/mount`, 'Filesystem')).source, {
    kind: 'csi',
    value: { driver: 'd' },
  })
  await save(`${root}/plugins/kubernetes.io/csi/volumeDevices/raw/data`, {
    driverName: 'd',
    volumeHandle: 'h',
    specVolID: 'raw',
  })
  const raw = await restore('raw', `${root}/pods/uid-1/volumeDevices/kubernetes.io~csi/raw`, 'Block')
  assert.deepEqual([raw.name, raw.mode, raw.persistentVolume?.spec?.volumeMode], ['raw', 'Block', 'Block'])
})

test('a directory that is mounted is left alone, one with foreign files is not deleted (CSI-11)', async () => {
  const bench = await createCsiNodeFixture()
  await bench.stage()
  await bench.plugin.mount(bench.request(), signal)
  const mount = `${bench.target}/mount`
  await assert.rejects(removeMountDirectory(bench.world.host, mount, signal), { code: 'DeviceInUse' })
  assert.deepEqual([await bench.exists(mount), await bench.exists(`${bench.target}/vol_data.json`)], [true, true])
  await bench.world.host.mounts.unmount(mount, {}, signal)
  await bench.world.host.files.writeFile(`${mount}/precious`, 'x', { mode: 0o644 }, signal)
  await assert.rejects(removeMountDirectory(bench.world.host, mount, signal))
  assert.equal(await bench.exists(`${mount}/precious`), true)
})

test('the authority is localhost, whatever the socket is called (CSI-13)', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hawser-authority-'))
  const socket = join(directory, 'csi.sock')
  const server = createServer()
  try {
    server.listen(socket)
    await once(server, 'listening')
    const heard = once(server, 'stream') as Promise<[{ close(): void }, Record<string, string>]>
    using channel = openChannel(socket)
    const call = createNodeCalls({
      wire: createWire(channel.transport),
      clock: (await createCsiNodeFixture()).world.clock,
    })
    const stop = new AbortController()
    const answer = call.info(stop.signal).catch(() => {})
    const [stream, headers] = await heard
    assert.deepEqual([headers[':authority'], headers[':path']], ['localhost', '/csi.v1.Node/NodeGetInfo'])
    stop.abort()
    stream.close()
    await answer
  } finally {
    server.close()
    rmSync(directory, { recursive: true, force: true })
  }
})

test('two minutes for the whole operation, questions about capabilities included (CSI-14)', async () => {
  const bench = await createCsiNodeFixture()
  const { clock } = bench.world
  bench.setFaults((rpc) => (rpc === 'NodeGetCapabilities' ? { kind: 'late', ms: 90_000 } : { kind: 'silent' }))
  let over: unknown
  const staging = bench.stage().catch((error: unknown) => (over = error))
  await clock.advance(119_000)
  assert.equal(over, undefined)
  await clock.advance(2_000)
  await staging
  assert.ok(effectIs('unknown')(over), 'the driver may be working still')
})

test('what is missing in a request is found before the driver is asked (CSI-17)', async () => {
  const bench = await createCsiNodeFixture()
  const wire = createWire(directTransport(bench.world.handlers))
  const node = createNodeCalls({ wire, clock: bench.world.clock })
  const capability = { access: { kind: 'block' as const }, mode: 'SINGLE_NODE_WRITER' as const }
  const rest = { capability, publishContext: {}, volumeContext: {}, secrets: {} }
  const wrong: readonly (() => Promise<unknown>)[] = [
    () => node.stage({ volumeId: '', stagingPath: '/s', ...rest }, signal),
    () => node.stage({ volumeId: 'v', stagingPath: '', ...rest }, signal),
    () => node.publish({ volumeId: 'v', targetPath: '', stagingPath: '', readOnly: false, ...rest }, signal),
    () => node.unpublish('', '/t', signal),
    () => node.unstage('v', '', signal),
    () =>
      node.expand({ volumeId: 'v', volumePath: '', stagingPath: '', sizeBytes: 1n, capability, secrets: {} }, signal),
    () =>
      node.expand(
        { volumeId: 'v', volumePath: '/p', stagingPath: '', sizeBytes: -1n, capability, secrets: {} },
        signal,
      ),
  ]
  for (const call of wrong) await assert.rejects(call, effectIs('untried'))
})

async function blockBench(
  options: Parameters<typeof createCsiNodeFixture>[0] = {},
  csi: Partial<CSIPersistentVolumeSource> = {},
) {
  const bench = await createCsiNodeFixture(options)
  const spec = withSource(bench.pv, csi, { volumeMode: 'Block' })
  const mapper = bench.plugin.block!(spec)!
  const devices = `${root}/plugins/kubernetes.io/csi/volumeDevices`
  const request = { spec, pod, devicePath: '', globalMapPath: mapper.globalMapPath(spec) }
  return { bench, spec, mapper, devices, request }
}

test('a raw device is staged and published at its own places, with the pod’s information (CSI-6, CSI-51, CSI-52)', async () => {
  const { bench, mapper, devices, request, spec } = await blockBench({ driverSpec: { podInfoOnMount: true } })
  assert.equal(mapper.globalMapPath(spec), `${devices}/pv1/dev`)
  assert.equal(await mapper.setUpDevice!(request, signal), `${devices}/staging/pv1`)
  assert.equal(await mapper.mapPodDevice!(request, signal), `${devices}/publish/pv1/uid-1`)
  assert.partialDeepStrictEqual(lastRequest(bench, 'nodeStageVolume'), {
    stagingTargetPath: `${devices}/staging/pv1`,
    volumeCapability: { accessType: { case: 'block' } },
  })
  const publish = lastRequest(bench, 'nodePublishVolume')
  assert.partialDeepStrictEqual(publish, {
    stagingTargetPath: `${devices}/staging/pv1`,
    targetPath: `${devices}/publish/pv1/uid-1`,
    readonly: false,
    volumeContext: { a: 'b', 'csi.storage.k8s.io/pod.name': 'p', 'csi.storage.k8s.io/ephemeral': 'false' },
  })
  const saved = await bench.world.host.files.readText(`${devices}/pv1/data/vol_data.json`, signal)
  assert.deepEqual(JSON.parse(saved), {
    specVolID: 'pv1',
    volumeHandle: bench.handle,
    driverName: 'model.hawser.dev',
    nodeName: 'n1',
    attachmentID: `csi-${sha(`${bench.handle}model.hawser.devn1`)}`,
  })
  await mapper.unmapPodDevice!({ spec, pod: podUid('uid-1'), volumeName: 'pv1' }, signal)
  await mapper.tearDownDevice!({ spec, globalMapPath: request.globalMapPath, devicePath: '' }, signal)
  for (const path of ['pv1', 'staging/pv1', 'publish/pv1'])
    assert.equal(await bench.exists(`${devices}/${path}`), false, path)
})

test('a device is unpublished even if nothing is there; one never staged is not unstaged (CSI-53)', async () => {
  const { bench, mapper, request, spec } = await blockBench()
  await mapper.unmapPodDevice!({ spec, pod: podUid('uid-1'), volumeName: 'pv1' }, signal)
  await mapper.tearDownDevice!({ spec, globalMapPath: request.globalMapPath, devicePath: '' }, signal)
  assert.deepEqual(asked(bench), ['nodeUnpublishVolume'])
})

test('a driver that does not stage raw devices needs neither the secret nor the path for it (CSI-51, WART-10)', async () => {
  const { bench, mapper, request } = await blockBench(
    { change: (handlers, host) => ({ ...offering([])(handlers), ...publishingFiles(handlers, host) }) },
    { nodeStageSecretRef: { name: 'nope', namespace: 'default' } },
  )
  assert.equal(await mapper.setUpDevice!(request, signal), '')
  await mapper.mapPodDevice!(request, signal)
  assert.deepEqual(asked(bench), ['nodePublishVolume'])
  assert.equal(lastRequest(bench, 'nodePublishVolume')?.['stagingTargetPath'], '')
})

const publishingFiles = (handlers: DriverHandlers, { files }: Host): Pick<DriverHandlers, 'node'> => ({
  node: {
    ...offering([])(handlers).node,
    nodePublishVolume: async ({ targetPath }) => {
      await files.writeFile(targetPath, 'a disk', { mode: 0o600 }, signal)
      return {}
    },
    nodeUnpublishVolume: async ({ targetPath }) => {
      await files.remove(targetPath, signal)
      return {}
    },
  },
})

test('a final refusal leaves nothing of a raw device, doubt leaves everything (CSI-51, CSI-54)', async () => {
  for (const [status, left] of [
    ['INTERNAL', false],
    ['DEADLINE_EXCEEDED', true],
  ] as const) {
    const { bench, mapper, devices, request } = await blockBench()
    bench.setFaults((rpc) => (rpc === 'NodeStageVolume' ? { kind: 'refused', status } : undefined))
    await assert.rejects(mapper.setUpDevice!(request, signal))
    assert.equal(await bench.exists(`${devices}/pv1/data/vol_data.json`), left, status)
    assert.equal(await bench.exists(`${devices}/staging/pv1`), left, status)
  }
})

test('a raw device that was prepared for a driver that was never asked leaves no directory (CSI-54)', async () => {
  const { bench, mapper, devices, request } = await blockBench()
  const { faults } = bench.world.host
  const full = { call: 'files.mkdirAll', below: `${devices}/staging`, kind: 'fails', code: 'ENOSPC', times: 1 } as const
  faults.plant(full)
  await assert.rejects(mapper.setUpDevice!(request, signal), effectIs('untried'))
  assert.equal(await bench.exists(`${devices}/pv1`), false)
  await mapper.setUpDevice!(request, signal)
  faults.plant(full)
  await assert.rejects(mapper.setUpDevice!(request, signal), effectIs('untried'))
  assert.equal(await bench.exists(`${devices}/pv1/data/vol_data.json`), true, 'it is staged')
})

const statsOf = (answer: object, types: readonly NodeRpc[] = [NodeRpc.GET_VOLUME_STATS]) =>
  createCsiNodeFixture({
    change: (handlers) => {
      const changed = offering(types)(handlers)
      return { ...changed, node: { ...changed.node, nodeGetVolumeStats: async () => answer } }
    },
  })

test('usage in bytes and inodes; none is an error; the older condition is understood (CSI-70, CSI-72)', async () => {
  const usage = [
    { available: 1n, total: 4n, used: 3n, unit: VolumeUsage_Unit.BYTES },
    { available: 10n, total: 40n, used: 30n, unit: VolumeUsage_Unit.INODES },
    { total: 7n, unit: 99 as VolumeUsage_Unit },
  ]
  const read = (bench: Bench) => bench.plugin.usage!({ spec: bench.spec, path: '/x' }, signal)
  const well = await statsOf({ usage })
  assert.deepEqual(await read(well), {
    time: well.world.clock.now(),
    availableBytes: 1n,
    capacityBytes: 4n,
    usedBytes: 3n,
    inodesFree: 10n,
    inodes: 40n,
    inodesUsed: 30n,
  })
  assert.equal(lastRequest(well, 'nodeGetVolumeStats')?.['stagingTargetPath'], '')
  const ill = await read(await statsOf({ usage, volumeCondition: { abnormal: true, message: 'strange noises' } }))
  assert.deepEqual(ill.abnormal, { message: 'strange noises' })
  await assert.rejects(read(await statsOf({ usage: [] })), /no usage/)
  await assert.rejects(
    read(await statsOf({ usage }, [])),
    (error: unknown) => error instanceof VolumeError && error.tags.includes('notSupported'),
  )
})

test('health is asked with both paths, of claims and of drivers that can tell; unknown statuses are skipped (CSI-71)', async () => {
  const entry = (status: VolumeHealthErrorType, reason: string) => ({ status, reason, message: 'm' })
  const volumeHealth = {
    volumeId: 'x',
    healthStatuses: [entry(1, 'Slow'), entry(3, 'Scrub'), entry(9 as never, 'New')],
  }
  const benchOf = (types: readonly NodeRpc[]) =>
    createCsiNodeFixture({
      change: (handlers) => {
        const changed = offering(types)(handlers)
        return { ...changed, node: { ...changed.node, nodeGetVolumeHealth: async () => ({ volumeHealth }) } }
      },
    })
  const bench = await benchOf([NodeRpc.GET_VOLUME_HEALTH])
  const paths = { path: '/pod', stagingPath: '/global' }
  assert.deepEqual(await bench.plugin.health!({ spec: bench.spec, ...paths }, signal), [
    { status: 'Degraded', reason: 'Slow', message: 'm' },
    { status: 'DataLoss', reason: 'Scrub', message: 'm' },
  ])
  const { volumeId, volumePublishPath, stagingTargetPath } = lastRequest(bench, 'nodeGetVolumeHealth') ?? {}
  assert.deepEqual([volumeId, volumePublishPath, stagingTargetPath], [bench.handle, '/pod', '/global'])
  const inline = specOfPodVolume({ name: 'i', csi: { driver: 'model.hawser.dev' } })
  assert.equal(await bench.plugin.health!({ spec: inline, ...paths }, signal), undefined)
  const silent = await benchOf([])
  assert.equal(await silent.plugin.health!({ spec: silent.spec, ...paths }, signal), undefined)
})

test('a driver that does not tell its usage is not waited for longer than a quarter of a minute (WART-28)', async () => {
  const bench = await createCsiNodeFixture()
  bench.setFaults((rpc) => (rpc === 'NodeGetVolumeStats' ? { kind: 'silent' } : undefined))
  const reading = assert.rejects(bench.plugin.usage!({ spec: bench.spec, path: '/x' }, signal))
  await bench.world.clock.advance(15_100)
  await reading
})

test('capabilities are asked once, not for every call (WART-7)', async () => {
  const bench = await createCsiNodeFixture()
  await bench.stage()
  await bench.plugin.mount(bench.request(), signal)
  await bench.plugin.unmount({ volumeName: 'pv1', pod: podUid('uid-1'), target: bench.target }, signal)
  await bench.device.unmount({ path: bench.staging }, signal)
  assert.equal(bench.seen.filter(({ rpc }) => rpc === 'nodeGetCapabilities').length, 1)
})

test('the expansion request to the letter (CSI-61)', async () => {
  const bench = await createCsiNodeFixture()
  await makeSecret(bench, 'grow')
  const spec = withSource(bench.pv, { nodeExpandSecretRef: { name: 'grow', namespace: 'default' } })
  await bench.stage()
  await bench.plugin.mount(bench.request(), signal)
  const path = `${bench.target}/mount`
  await bench.plugin.expand!({ spec, oldBytes: 1n, newBytes: 1n << 20n, path, stagingPath: bench.staging }, signal)
  assert.partialDeepStrictEqual(lastRequest(bench, 'nodeExpandVolume'), {
    volumeId: bench.handle,
    volumePath: path,
    stagingTargetPath: bench.staging,
    capacityRange: { requiredBytes: 1n << 20n },
    secrets: { key: 'of grow' },
    volumeCapability: { accessType: { case: 'mount', value: { fsType: 'ext4', mountFlags: ['noatime'] } } },
  })
})
