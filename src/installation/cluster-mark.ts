// Which cluster is this, and how far has it come? Read from namespace kube-system: its uid, its epoch, and the revision.
import { annotations } from '../api/annotations.ts'
import { kinds } from '../api/kinds.ts'
import type { KubeObject } from '../api/meta.ts'
import { isForbidden } from '../api/status-error.ts'
import { createStoredObjects, prefixOf, storeKey } from '../apiserver/objects/stored-objects.ts'
import type { Client } from '../client/client.ts'
import type { Store } from '../store/store.ts'
import type { ClusterMark } from './identity.ts'

export const home = 'kube-system'

/** Undefined where the namespace does not exist yet. */
export async function markOfStore(store: Store): Promise<ClusterMark | undefined> {
  const entry = await store.get(storeKey(kinds.Namespace, { name: home }))
  if (entry === undefined) return undefined
  return markOf(createStoredObjects().decode(kinds.Namespace, entry), store.revision())
}

/** `hidden` where we may not read the namespace, or there is none. Any other failure is thrown. */
export async function markOfServer(client: Client, signal: AbortSignal): Promise<ClusterMark | 'hidden'> {
  const options = { fieldSelector: `metadata.name=${home}` }
  const list = await client.list('Namespace', options, signal).catch((error: unknown) => {
    if (isForbidden(error)) return undefined
    throw error
  })
  const namespace = list?.items[0]
  if (list === undefined || namespace === undefined) return 'hidden'
  const revision = Number(list.resourceVersion)
  return markOf(namespace, Number.isSafeInteger(revision) ? revision : 0) ?? 'hidden'
}

/** The same store from now on, in a new epoch. */
export async function beginEpoch(store: Store, epoch: number): Promise<void> {
  const stored = createStoredObjects()
  const key = storeKey(kinds.Namespace, { name: home })
  const entry = await store.get(key)
  if (entry === undefined) return
  const marked = inEpoch(stored.decode(kinds.Namespace, entry), epoch)
  await store.update(key, stored.encode(kinds.Namespace, marked), entry.revision)
}

/** Objects other than namespace kube-system are left as they are. */
export function inEpoch(object: KubeObject, epoch: number): KubeObject {
  if (!isHome(object)) return object
  const { metadata } = object
  return {
    ...object,
    metadata: { ...metadata, annotations: { ...metadata.annotations, [annotations.clusterEpoch]: String(epoch) } },
  }
}

export function epochOf(objects: readonly KubeObject[]): number {
  const namespace = objects.find(isHome)
  return (namespace && markOf(namespace, 0)?.epoch) ?? 0
}

/** The uids of all pods in the store. */
export async function podsOfStore(store: Store): Promise<ReadonlySet<string>> {
  const stored = createStoredObjects()
  const { entries } = await store.list(prefixOf(kinds.Pod, undefined), {})
  return new Set(entries.map((entry) => stored.decode(kinds.Pod, entry).metadata.uid ?? ''))
}

function isHome(object: KubeObject): boolean {
  return (object as { kind?: string }).kind === 'Namespace' && object.metadata.name === home
}

function markOf({ metadata }: KubeObject, revision: number): ClusterMark | undefined {
  if (metadata.uid === undefined) return undefined
  const epoch = Number(metadata.annotations?.[annotations.clusterEpoch] ?? 0)
  return { cluster: metadata.uid, epoch: Number.isSafeInteger(epoch) ? epoch : 0, revision }
}
