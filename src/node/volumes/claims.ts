// Which storage is behind a pod's volume? Inline volumes name it themselves; claims are resolved with live reads,
// because a cache could still hold an older claim of the same name (KP-6).
import { annotation, isControlledBy, isDeleting, hasFinalizer } from '../../api/meta.ts'
import { claimNameOf } from '../../api/pod-claims.ts'
import { bytesOfQuantity } from '../../api/quantity.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { migrated } from '../../volume/migration.ts'
import type { VolumeSpec } from '../../volume/spec.ts'
import { specOfPersistentVolume, specOfPodVolume } from '../../volume/spec.ts'

export interface ResolvedVolume {
  readonly spec: VolumeSpec
  /** The pod's own word for a claim; false for inline volumes (their spec says it). */
  readonly readOnly: boolean
  readonly claimBytes: bigint
  /** pv.spec.capacity.storage; 0 without a claim. */
  readonly volumeBytes: bigint
  /** Annotation C-16. */
  readonly group: string
}

export async function resolveVolume(
  client: Pick<Client, 'get'>,
  pod: Pod,
  volume: Volume,
  signal: AbortSignal,
): Promise<ResolvedVolume> {
  const claimName = claimNameOf(pod, volume)
  if (claimName === undefined) {
    const spec = migrated(specOfPodVolume(volume), pod.metadata.namespace)
    return { spec, readOnly: false, claimBytes: 0n, volumeBytes: 0n, group: '' }
  }
  const namespace = pod.metadata.namespace ?? ''
  const readOnly = volume.persistentVolumeClaim?.readOnly === true
  const processing = `error processing PVC ${namespace}/${claimName}`
  const claim = await wrapped(processing, async () => {
    const found = await wrapped('failed to fetch PVC from API server', () =>
      client.get('PersistentVolumeClaim', { namespace, name: claimName }, signal),
    )
    checkClaim(found)
    return found
  })
  if (volume.ephemeral && !isControlledBy(claim, pod)) {
    const podName = `${namespace}/${pod.metadata.name}`
    throw new Error(`PVC ${namespace}/${claimName} was not created for pod ${podName} (pod is not owner)`)
  }
  const name = claim.spec?.volumeName ?? ''
  const persistentVolume = await wrapped(processing, async () => {
    const found = await wrapped(`failed to fetch PV ${name} from API server`, () =>
      client.get('PersistentVolume', { name }, signal),
    )
    checkBound(found, claim)
    return found
  })
  return {
    spec: migrated(specOfPersistentVolume(persistentVolume, readOnly)),
    readOnly,
    claimBytes: bytesOf(claim.status?.capacity?.['storage']),
    volumeBytes: bytesOf(persistentVolume.spec?.capacity?.['storage']),
    group: annotation(persistentVolume, 'pv.beta.kubernetes.io/gid') ?? '',
  }
}

interface UsedVolumes {
  readonly mounts: ReadonlySet<string>
  readonly devices: ReadonlySet<string>
  /** Those of the pod's volumes that are one or the other. */
  readonly volumes: readonly Volume[]
}

/** Only volumes that some container mounts or maps (KP-4). */
export function usedVolumes(pod: Pod): UsedVolumes {
  const { containers = [], initContainers = [], ephemeralContainers = [], volumes = [] } = pod.spec ?? {}
  const all = [...initContainers, ...containers, ...ephemeralContainers]
  const mounts = new Set(all.flatMap((each) => (each.volumeMounts ?? []).map(({ name }) => name)))
  const devices = new Set(all.flatMap((each) => (each.volumeDevices ?? []).map(({ name }) => name)))
  return { mounts, devices, volumes: volumes.filter(({ name }) => mounts.has(name) || devices.has(name)) }
}

/** Containers are added to a pod, never taken away: more names mean that some of them are new. */
export function usesMore(now: Pod, before: Pod): boolean {
  const count = (pod: Pod) => usedVolumes(pod).mounts.size + usedVolumes(pod).devices.size
  return now.spec?.ephemeralContainers !== undefined && count(now) > count(before)
}

/** A block volume cannot be mounted, a filesystem cannot be used as a device (KP-7). */
export function checkMode(volume: string, spec: VolumeSpec, used: ReturnType<typeof usedVolumes>): void {
  if (spec.mode === 'Block' && used.mounts.has(volume)) {
    throw new Error(`volume ${volume} has volumeMode Block, but is specified in volumeMounts`)
  }
  if (spec.mode === 'Filesystem' && used.devices.has(volume)) {
    throw new Error(`volume ${volume} has volumeMode Filesystem, but is specified in volumeDevices`)
  }
}

function checkClaim(claim: PersistentVolumeClaim): void {
  if (isDeleting(claim) && !hasFinalizer(claim, 'kubernetes.io/pvc-protection')) throw new Error('PVC is being deleted')
  if (claim.status?.phase !== 'Bound') throw new Error('PVC is not bound')
  if (!claim.spec?.volumeName) throw new Error('PVC has empty pvc.Spec.VolumeName')
}

function checkBound({ metadata: { name }, spec }: PersistentVolume, claim: PersistentVolumeClaim): void {
  const uid = spec?.claimRef?.uid ?? ''
  const found = `found PV object ${name} but`
  if (!spec?.claimRef) {
    throw new Error(`${found} it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim`)
  }
  if (uid !== claim.metadata.uid) {
    throw new Error(`${found} its pv.Spec.ClaimRef.UID ${uid} does not point to claim.UID ${claim.metadata.uid}`)
  }
}

async function wrapped<T>(prefix: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw new Error(`${prefix}: ${errorText(error)}`, { cause: error })
  }
}

const bytesOf = (quantity: string | undefined) => (quantity === undefined ? 0n : bytesOfQuantity(quantity))
