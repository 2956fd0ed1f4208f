// One node with one claim bound to one volume of the plugin that answers as told (device-plugin.ts).
import type { UniqueVolumeName } from '../../src/api/names.ts'
import type { PersistentVolume, PersistentVolumeClaimStatus, Pod } from '../../src/api/generated/types.ts'
import { claim, createDevicePlugin, volume, volumeName } from './device-plugin.ts'
import type { DevicePluginOptions } from './device-plugin.ts'
import { createNodeWorld, nodeName, pod } from './node.ts'
import type { NodeWorldOptions } from './node.ts'

export const disk = volumeName as UniqueVolumeName
export const removeNow = { gracePeriodSeconds: 0 }

export interface DiskWorldOptions
  extends DevicePluginOptions, Pick<NodeWorldOptions, 'through' | 'script' | 'manifestDirectory'> {
  readonly volume?: Partial<NonNullable<PersistentVolume['spec']>>
  /** What the claim asks for. */
  readonly request?: string
}

/** The built-in fc plugin would match the same source, so that the registry here holds ours alone besides the rest. */
export async function createDiskWorld(options: DiskWorldOptions = {}) {
  const { plugin, registered } = createDevicePlugin(options)
  const world = await createNodeWorld({
    plugins: [registered],
    ...(options.through ? { through: options.through } : {}),
    ...(options.script ? { script: options.script } : {}),
    ...(options.manifestDirectory ? { manifestDirectory: options.manifestDirectory } : {}),
  })
  const made = await world.client.create('PersistentVolumeClaim', claim(options.request))
  const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c', uid: made.metadata.uid ?? '' }
  await world.client.create('PersistentVolume', volume('pv', { claimRef, ...options.volume }))
  const setClaim = (status: PersistentVolumeClaimStatus) =>
    world.client.patch(
      'PersistentVolumeClaim',
      { namespace: 'default', name: 'c' },
      { type: 'merge', body: { status } },
      { subresource: 'status' },
    )
  await setClaim({ phase: 'Bound', capacity: { storage: '10Gi' } })
  const claimNow = () => world.client.get('PersistentVolumeClaim', { namespace: 'default', name: 'c' })
  const setVolume = (body: object) => world.client.patch('PersistentVolume', { name: 'pv' }, { type: 'merge', body })
  const grow = () => setVolume({ spec: { capacity: { storage: '15Gi' } } })
  const nodeStatus = (status: object) =>
    world.client.patch('Node', { name: nodeName }, { type: 'merge', body: { status } }, { subresource: 'status' })
  const attach = () => nodeStatus({ volumesAttached: [{ name: disk, devicePath: '/dev/disk' }] })
  const inUse = async () => (await world.client.get('Node', { name: nodeName })).status?.volumesInUse ?? []
  const remove = (name: string) => world.client.remove('Pod', { namespace: 'default', name }, removeNow)
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }]
  return { ...world, plugin, setClaim, claimNow, setVolume, grow, attach, inUse, remove, volumes, nodeStatus }
}

/** A pod that uses its volumes as devices. */
export function blockPod(name: string, volumes: NonNullable<NonNullable<Pod['spec']>['volumes']>): Pod {
  const volumeDevices = volumes.map((each) => ({ name: each.name, devicePath: `/dev/${each.name}` }))
  return pod(name, volumes, { containers: [{ name: 'c', image: 'i', command: ['run'], volumeDevices }] })
}
