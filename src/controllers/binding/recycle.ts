// How is a released volume wiped for its next user (RCL-9, MGR-13)? By a pod that mounts nothing but that volume.
// Each recycle builds a fresh pod (WC-22), trusts no pod it did not create, and never outlives its deadline.
import { isAlreadyExists, isNotFound } from '../../api/status-error.ts'
import { bytesOfQuantity } from '../../api/quantity.ts'
import type { Event, PersistentVolume, Pod } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import type { Clock } from '../../clock/clock.ts'
import { errorText } from '../../telemetry/error-text.ts'

export interface RecyclerDeps {
  readonly client: Client
  readonly clock: Clock
  readonly image?: string
}

export interface RecycleRequest {
  readonly volume: PersistentVolume
  /** Hears the pod's own events; they are shown on the volume. */
  onPodEvent(type: 'Normal' | 'Warning', message: string): void
}

const namespace = 'default'
const gibibyte = 1024n ** 3n

/** minimum and increment per GiB, in seconds (RCL-9). */
const timeouts = { nfs: [300n, 30n], hostPath: [60n, 30n] } as const

/** Only these volume types can be wiped through a mount. */
export function isRecyclable(volume: PersistentVolume): boolean {
  return recyclableSource(volume) !== undefined
}

function recyclableSource(volume: PersistentVolume): keyof typeof timeouts | undefined {
  if (volume.spec.nfs !== undefined) return 'nfs'
  return volume.spec.hostPath === undefined ? undefined : 'hostPath'
}

export function recyclerPod(
  volume: PersistentVolume,
  image = 'registry.k8s.io/build-image/debian-base:bookworm-v1.0.6',
): Pod {
  const source = recyclableSource(volume)
  if (source === undefined) throw new Error('No recycler plugin found for the volume!')
  const [minimum, increment] = timeouts[source]
  const perSize = (bytesOfQuantity(volume.spec.capacity?.['storage'] ?? '0') / gibibyte) * increment
  // The scrubber stays on one file system (-xdev), so a mount inside the volume is neither crossed nor emptied, and it
  // ends successfully only if nothing is left.
  const script = 'test -e /scrub && find /scrub -xdev -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1'
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `recycler-for-${volume.metadata.name}`, namespace },
    spec: {
      restartPolicy: 'Never',
      activeDeadlineSeconds: Number(perSize > minimum ? perSize : minimum),
      volumes: [
        {
          name: 'vol',
          ...(source === 'nfs' ? { nfs: volume.spec.nfs! } : { hostPath: volume.spec.hostPath! }),
        },
      ],
      containers: [
        {
          name: 'pv-recycler',
          image,
          command: ['/bin/sh'],
          args: ['-c', script],
          volumeMounts: [{ name: 'vol', mountPath: '/scrub' }],
        },
      ],
    },
  }
}

/** Resolves when the volume is empty; rejects with what the user should read. */
export async function recycle(deps: RecyclerDeps, request: RecycleRequest, signal: AbortSignal): Promise<void> {
  const { client, clock } = deps
  const wanted = recyclerPod(request.volume, deps.image)
  const ref = { namespace, name: wanted.metadata.name }
  const pod = await createPod(client, wanted, signal)
  const uid = pod.metadata.uid ?? ''
  // The kubelet enforces the pod's own deadline; ours is a little longer, for a pod that never starts.
  using deadline = clock.deadline(((wanted.spec?.activeDeadlineSeconds ?? 60) + 60) * 1_000, signal)
  const watching = new AbortController()
  const following = followEvents(deps, request, pod, watching.signal)
  let failure: unknown
  try {
    await untilOver(client, pod, deadline.signal)
  } catch (error) {
    failure = error ?? new Error('failed')
  }
  watching.abort()
  await following
  if (signal.aborted) throw signal.reason
  let removal: unknown
  try {
    await client.remove('Pod', ref, { uid, gracePeriodSeconds: 0 }, signal)
  } catch (error) {
    if (!isNotFound(error)) removal = error
  }
  // Why the volume was not wiped is worth more than why its pod is still there; the next try removes that again.
  if (failure !== undefined) throw new Error(`failed to recycle volume: ${errorText(failure)}`, { cause: failure })
  if (removal !== undefined) throw new Error(`failed to delete recycler pod: ${errorText(removal)}`, { cause: removal })
}

async function createPod(client: Client, pod: Pod, signal: AbortSignal): Promise<Pod> {
  try {
    return await client.create('Pod', pod, {}, signal)
  } catch (error) {
    if (!isAlreadyExists(error))
      throw new Error(`unexpected error creating recycler pod:  ${errorText(error)}`, { cause: error })
    // Nobody knows what the old pod wiped, or when: it is never trusted.
    await client.remove('Pod', { namespace, name: pod.metadata.name }, {}, signal).catch((removal: unknown) => {
      if (!isNotFound(removal)) throw removal
    })
    throw new Error('old recycler pod found, will retry later')
  }
}

async function untilOver(client: Client, pod: Pod, signal: AbortSignal): Promise<void> {
  const { name, uid, resourceVersion } = pod.metadata
  const fieldSelector = `metadata.name=${name}`
  const options = { namespace, fieldSelector, ...(resourceVersion === undefined ? {} : { resourceVersion }) }
  for await (const event of client.watch('Pod', options, signal)) {
    if (event.type === 'bookmark' || event.object.metadata.uid !== uid) continue
    if (event.type === 'deleted') throw new Error('recycler pod was deleted')
    const { phase, message } = event.object.status ?? {}
    if (phase === 'Succeeded') return
    if (phase === 'Failed') throw new Error(message || 'pod failed, pod.Status.Message unknown')
  }
  signal.throwIfAborted()
  throw new Error(`recycler pod "${name}" watch channel had been closed`)
}

/** Best effort: what the pod's events say is shown on the volume; failing to hear them harms nothing. */
async function followEvents(deps: RecyclerDeps, request: RecycleRequest, pod: Pod, signal: AbortSignal): Promise<void> {
  try {
    // By name, for not everybody who writes events knows the uid; a uid that is there must be this pod's.
    const options = { namespace, fieldSelector: `involvedObject.name=${pod.metadata.name}` }
    const listed = await deps.client.list('Event', options, signal)
    const tell = ({ involvedObject, type, message }: Event) => {
      if (!involvedObject.uid || involvedObject.uid === pod.metadata.uid)
        request.onPodEvent(type ?? 'Normal', `Recycler pod: ${message ?? ''}`)
    }
    listed.items.forEach(tell)
    const from = { ...options, resourceVersion: listed.resourceVersion }
    for await (const event of deps.client.watch('Event', from, signal)) if (event.type === 'added') tell(event.object)
  } catch {
    // Aborted, or not allowed to read events.
  }
}
