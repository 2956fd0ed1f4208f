// Where do the facts come from? The API, once; what may not exist or be asked for counts as empty.
import { isForbidden, isNotFound } from '../api/status-error.ts'
import type { KindMap, KindName } from '../api/kinds.ts'
import type { Pod } from '../api/generated/types.ts'
import type { Client } from '../client/client.ts'
import type { Facts, WhySubject } from './facts.ts'
import { leaseNamespace } from './facts.ts'
import type { WaitingObject } from './list-waiting.ts'
import { listWaiting, waitingPods } from './list-waiting.ts'

/** What `why` reads: every list of the facts, and the kind that is in it. */
const listed = {
  pods: 'Pod',
  claims: 'PersistentVolumeClaim',
  volumes: 'PersistentVolume',
  classes: 'StorageClass',
  attributesClasses: 'VolumeAttributesClass',
  attachments: 'VolumeAttachment',
  snapshots: 'VolumeSnapshot',
  snapshotContents: 'VolumeSnapshotContent',
  nodes: 'Node',
  leases: 'Lease',
  csiNodes: 'CSINode',
  csiDrivers: 'CSIDriver',
  operations: 'Operation',
} as const satisfies Partial<Record<keyof Facts, KindName>>

type Lists = { readonly [Name in keyof typeof listed]: readonly KindMap[(typeof listed)[Name]][] }

export async function gatherFacts(client: Client, subject: WhySubject, now: number): Promise<Facts> {
  const common = await gatherLists(client, now)
  const pod =
    subject.kind === 'Pod'
      ? common.pods.find(({ metadata }) => metadata.name === subject.name && metadata.namespace === subject.namespace)
      : undefined
  const missing = pod === undefined ? [] : await missingOf(client, pod)
  return { ...common, subject, missing }
}

/** Everything that waits, in a namespace or at all. */
export async function gatherWaiting(
  client: Client,
  namespace: string | undefined,
  now: number,
): Promise<readonly WaitingObject[]> {
  const common = await gatherLists(client, now)
  const missing = new Map<string, readonly string[]>()
  for (const pod of waitingPods(common, namespace))
    missing.set(`${pod.metadata.namespace}/${pod.metadata.name}`, await missingOf(client, pod))
  return listWaiting(common, namespace, (pod) => missing.get(`${pod.namespace}/${pod.name}`) ?? [])
}

async function gatherLists(client: Client, now: number): Promise<Omit<Facts, 'subject' | 'missing'>> {
  const all = async <K extends KindName>(kind: K): Promise<readonly KindMap[K][]> => {
    try {
      return (await client.list(kind)).items
    } catch (error) {
      // A server without our kinds (a real Kubernetes), or one that does not show them to us.
      if (isNotFound(error) || isForbidden(error)) return []
      throw error
    }
  }
  const names = Object.keys(listed) as (keyof typeof listed)[]
  const found = await Promise.all(names.map(async (name) => [name, await all(listed[name])]))
  const lists = Object.fromEntries(found) as Lists // one list for each name
  const leases = lists.leases.filter(({ metadata }) => metadata.namespace === leaseNamespace)
  return { now, ...lists, leases }
}

/** ConfigMaps and Secrets that volumes of the pod need. */
async function missingOf(client: Client, pod: Pod): Promise<readonly string[]> {
  const wanted = (pod.spec?.volumes ?? []).flatMap((volume) => {
    const sources = [volume, ...(volume.projected?.sources ?? [])]
    return sources.flatMap(({ configMap, secret }) => [
      ...(configMap && configMap.optional !== true && configMap.name
        ? [{ kind: 'ConfigMap' as const, name: configMap.name }]
        : []),
      ...(secret && secret.optional !== true ? secretNames(secret) : []),
    ])
  })
  const namespace = pod.metadata.namespace
  const found = await Promise.all(
    wanted.map(async ({ kind, name }) => {
      try {
        await client.get(kind, { name, ...(namespace === undefined ? {} : { namespace }) })
        return []
      } catch (error) {
        return isNotFound(error) ? [`${kind} ${name}`] : []
      }
    }),
  )
  return found.flat()
}

function secretNames(secret: { readonly secretName?: string; readonly name?: string }) {
  const name = secret.secretName ?? secret.name
  return name ? [{ kind: 'Secret' as const, name }] : []
}
