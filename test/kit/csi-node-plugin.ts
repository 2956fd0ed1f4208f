// The CSI plugin of one node over the model driver and the model host: what reaches the driver, and what stays on disk.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { CSIDriver, PersistentVolume, Pod } from '../../src/api/generated/types.ts'
import { createDrivers, openDriver } from '../../src/csi/drivers.ts'
import { modelConnection } from '../../src/csi/model/driver.ts'
import { withFaults } from '../../src/csi/faults.ts'
import type { ChooseFault } from '../../src/csi/faults.ts'
import { directTransport } from '../../src/csi/service.ts'
import type { DriverHandlers } from '../../src/csi/service.ts'
import type { Host } from '../../src/host/host.ts'
import { createCsiNodePlugin } from '../../src/plugins/csi/plugin.ts'
import { VolumeError } from '../../src/volume/effect.ts'
import type { MountRequest } from '../../src/volume/plugin.ts'
import { createCsiWorld } from './csi-cluster.ts'
import { specOfPersistentVolume } from '../../src/volume/spec.ts'

export const root = '/var/lib/hawser'
export const signal = new AbortController().signal
export const pod: Pod = {
  metadata: { name: 'p', namespace: 'default', uid: 'uid-1' },
  spec: { serviceAccountName: 'robot' },
} as Pod
export const sha = (text: string) => createHash('sha256').update(text).digest('hex')

export async function createCsiNodeFixture(
  options: {
    faults?: ChooseFault
    driverSpec?: CSIDriver['spec']
    change?: (handlers: DriverHandlers, host: Host) => DriverHandlers
    driver?: boolean
    /** False: no CSIDriver object exists. */
    object?: boolean
    /** True: the volume's attachment exists and says so. */
    attached?: boolean
  } = {},
) {
  const world = await createCsiWorld({ attach: false })
  const seen: { rpc: string; request: Record<string, unknown> }[] = []
  let choose: ChooseFault = options.faults ?? (() => undefined)
  const handlers = options.change?.(world.handlers, world.host) ?? world.handlers
  const inner = directTransport(recording(handlers, seen))
  const transport = withFaults(inner, world.clock, (rpc, earlier) => choose(rpc, earlier))
  const drivers = createDrivers()
  if (options.driver !== false)
    drivers.add(
      openDriver({
        name: 'model.hawser.dev',
        endpoint: '',
        connect: () => modelConnection(transport),
        clock: world.clock,
      }),
    )
  const object: CSIDriver = {
    metadata: { name: 'model.hawser.dev' },
    spec: {
      attachRequired: false,
      fsGroupPolicy: 'ReadWriteOnceWithFSType',
      volumeLifecycleModes: ['Persistent', 'Ephemeral'],
      ...options.driverSpec,
    },
  }
  const plugin = createCsiNodePlugin({
    host: world.host,
    client: world.client,
    clock: world.clock,
    drivers,
    csiDrivers: { get: () => (options.object === false ? undefined : object) },
    nodeName: 'n1',
    root,
  })
  const volume = await world.handlers.controller?.createVolume?.(
    { name: 'v', volumeCapabilities: [capability], parameters: {}, secrets: {}, mutableParameters: {} } as never,
    signal,
  )
  const handle = volume?.volume?.volumeId ?? ''
  const pv: PersistentVolume = {
    metadata: { name: 'pv1' },
    spec: {
      csi: { driver: 'model.hawser.dev', volumeHandle: handle, fsType: 'ext4', volumeAttributes: { a: 'b' } },
      accessModes: ['ReadWriteOnce'],
      volumeMode: 'Filesystem',
      mountOptions: ['noatime'],
    },
  }
  if (options.attached) {
    const name = `csi-${sha(`${handle}model.hawser.devn1`)}`
    const made = await world.client.create('VolumeAttachment', {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name },
      spec: { attacher: 'model.hawser.dev', nodeName: 'n1', source: { persistentVolumeName: 'pv1' } },
    })
    await world.client.update('VolumeAttachment', { ...made, status: { attached: true } }, { subresource: 'status' })
  }
  const spec = specOfPersistentVolume(pv, false)
  const staging = `${root}/plugins/kubernetes.io/csi/model.hawser.dev/${sha(handle)}/globalmount`
  const target = `${root}/pods/uid-1/volumes/kubernetes.io~csi/pv1`
  const request = (overrides: Partial<MountRequest> = {}): MountRequest => ({
    spec,
    pod,
    target,
    ownership: {},
    foundOnDisk: false,
    remount: false,
    notify: () => {},
    ...overrides,
  })
  const device = plugin.device?.(spec)
  assert.ok(device)
  const stage = () => device.mount({ spec, devicePath: '', path: staging, pod }, signal)
  const exists = (path: string) => world.host.files.exists(path, signal)
  return {
    world,
    plugin,
    device,
    spec,
    pv,
    handle,
    staging,
    target,
    request,
    stage,
    exists,
    seen,
    setFaults: (next: ChooseFault) => void (choose = next),
  }
}

const capability = { accessType: { case: 'mount', value: { fsType: '', mountFlags: [] } }, accessMode: { mode: 1 } }

/** Writes down what reaches the driver. */
function recording(
  handlers: DriverHandlers,
  seen: { rpc: string; request: Record<string, unknown> }[],
): DriverHandlers {
  const wrap = (service: object | undefined) =>
    Object.fromEntries(
      Object.entries(service ?? {}).map(([name, handle]) => [
        name,
        (request: Record<string, unknown>, stop: AbortSignal) => {
          seen.push({ rpc: name, request })
          return (handle as (request: unknown, stop: AbortSignal) => Promise<unknown>)(request, stop)
        },
      ]),
    )
  return {
    identity: wrap(handlers.identity),
    controller: wrap(handlers.controller),
    node: wrap(handlers.node),
  } as DriverHandlers
}

export const effectIs = (effect: string) => (error: unknown) => error instanceof VolumeError && error.effect === effect
