// What is there to say about a claim? Its volume, who uses it, where it is attached: gathered from the API once.
import { keyOf } from '../api/meta.ts'
import { claimKeysOf, hasEnded } from '../api/pod-claims.ts'
import { shortModes } from '../api/access-modes.ts'
import { classOf } from '../api/storage-class.ts'
import type { Client } from '../client/client.ts'
import { shortSize } from './volume-usage.ts'
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  VolumeAttachment,
  VolumeSnapshot,
} from '../api/generated/types.ts'

export interface VolumeFacts {
  readonly name: string
  readonly namespace: string
  readonly status: string
  /** What was asked for, and what there is. */
  readonly requested: string
  readonly capacity: string
  readonly accessModes: readonly string[]
  readonly volumeMode: string
  readonly class: string
  readonly volume?: string
  readonly driver?: string
  readonly handle?: string
  readonly reclaimPolicy?: string
  /** What is used of it, as the node that mounts it says; absent while it is mounted nowhere. */
  readonly used?: string
  /** The path that the volume itself names: of hostPath and local volumes. */
  readonly path?: string
  readonly attachedTo: readonly string[]
  /** Pods that name the claim and have not ended. */
  readonly usedBy: readonly string[]
  readonly snapshots: readonly string[]
  /** What goes on with it now, in the words of its conditions. */
  readonly conditions: readonly string[]
}

interface Surroundings {
  readonly volumes: readonly PersistentVolume[]
  readonly pods: readonly Pod[]
  readonly attachments: readonly VolumeAttachment[]
  readonly snapshots: readonly VolumeSnapshot[]
}

export async function gatherVolumes(client: Client, namespace: string | undefined): Promise<VolumeFacts[]> {
  const scope = namespace === undefined ? {} : { namespace }
  const [claims, volumes, pods, attachments, snapshots] = await Promise.all([
    client.list('PersistentVolumeClaim', scope),
    client.list('PersistentVolume'),
    client.list('Pod', scope),
    client.list('VolumeAttachment'),
    client.list('VolumeSnapshot', scope),
  ])
  const around = {
    volumes: volumes.items,
    pods: pods.items,
    attachments: attachments.items,
    snapshots: snapshots.items,
  }
  return claims.items.map((claim) => factsOf(claim, around))
}

export async function gatherVolume(client: Client, namespace: string, name: string): Promise<VolumeFacts> {
  // A missing claim is an error of its own, with the server's sentence.
  await client.get('PersistentVolumeClaim', { name, namespace })
  const all = await gatherVolumes(client, namespace)
  return all.find((facts) => facts.name === name)!
}

export function factsOf(claim: PersistentVolumeClaim, around: Surroundings): VolumeFacts {
  const { name, namespace = '', deletionTimestamp } = claim.metadata
  const key = keyOf(claim)
  const volumeName = claim.spec?.volumeName
  const volume = around.volumes.find(({ metadata }) => metadata.name === volumeName)
  const here = ({ metadata }: { readonly metadata: { readonly namespace?: string } }) =>
    metadata.namespace === namespace
  return {
    name,
    namespace,
    status: deletionTimestamp ? 'Terminating' : (claim.status?.phase ?? 'Pending'),
    requested: String(claim.spec?.resources?.requests?.['storage'] ?? ''),
    capacity: String(claim.status?.capacity?.['storage'] ?? ''),
    accessModes: claim.spec?.accessModes ?? [],
    volumeMode: claim.spec?.volumeMode ?? 'Filesystem',
    class: classOf(claim),
    ...(volumeName === undefined ? {} : { volume: volumeName }),
    ...(volume?.spec?.csi ? { driver: volume.spec.csi.driver, handle: volume.spec.csi.volumeHandle } : {}),
    ...(volume?.spec?.persistentVolumeReclaimPolicy
      ? { reclaimPolicy: volume.spec.persistentVolumeReclaimPolicy }
      : {}),
    ...pathOf(volume),
    attachedTo: around.attachments
      .filter(({ spec, status }) => spec.source.persistentVolumeName === volumeName && status?.attached === true)
      .map(({ spec }) => spec.nodeName),
    usedBy: around.pods
      .filter((pod) => claimKeysOf(pod).includes(key) && !hasEnded(pod))
      .map(({ metadata }) => metadata.name),
    snapshots: around.snapshots
      .filter((snapshot) => here(snapshot) && snapshot.spec.source.persistentVolumeClaimName === name)
      .map(({ metadata }) => metadata.name),
    conditions: (claim.status?.conditions ?? [])
      .filter(({ status }) => status === 'True')
      .map(({ type, message }) => (message ? `${type}: ${message}` : type)),
  }
}

function pathOf(volume: PersistentVolume | undefined): { readonly path?: string } {
  const path = volume?.spec?.local?.path ?? volume?.spec?.hostPath?.path
  return path === undefined ? {} : { path }
}

/** With what the nodes say about space. */
export function withUsage(facts: VolumeFacts, usage: ReadonlyMap<string, number>): VolumeFacts {
  const bytes = usage.get(`${facts.namespace}/${facts.name}`)
  return bytes === undefined ? facts : { ...facts, used: shortSize(bytes) }
}

export const shortMode = (mode: string) => (shortModes as Readonly<Record<string, string>>)[mode] ?? mode
