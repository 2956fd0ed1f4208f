// What does the cluster know of a driver on this node? The Node's annotation and topology labels, and its entry in
// CSINode: node id, topology keys, attach limit (CSINODE-1 … CSINODE-9).
import { annotation } from '../../api/meta.ts'
import { ignoreNotFound, isNotFound } from '../../api/status-error.ts'
import type { CSINode, CSINodeDriver, CSINodeStatus, Node, StorageHealth } from '../../api/generated/types.ts'
import type { Client } from '../../client/client.ts'
import { migratedPlugins } from '../../volume/migration.ts'
import type { Clock } from '../../clock/clock.ts'
import { VolumeError } from '../../volume/effect.ts'
import type { NodeInfo } from '../node.ts'

export interface NodeInfoPublisher {
  /** Publishes a driver; throws if the node id is empty or a topology label would change. */
  install(driver: string, info: NodeInfo, signal: AbortSignal): Promise<void>
  /** CSINODE-9: rewrites the attach limit only. */
  refresh(driver: string, info: NodeInfo, signal: AbortSignal): Promise<void>
  /** Removes the entry and the annotation; topology labels stay (REG-8). */
  uninstall(driver: string, signal: AbortSignal): Promise<void>
  /** CSI-71: rewrites what is known of the storage's health; the same list means no write. */
  changeHealth(
    change: (present: readonly StorageHealth[]) => readonly StorageHealth[],
    signal: AbortSignal,
  ): Promise<void>
  /** CSINODE-6: the object exists even before the first driver. */
  ensure(signal: AbortSignal): Promise<void>
}

const nodeIdAnnotation = 'csi.volume.kubernetes.io/nodeid'
const migratedAnnotation = 'storage.alpha.kubernetes.io/migrated-plugins'
const maxLimit = 2_147_483_647n
const tries = 4

export function createNodeInfoPublisher(deps: {
  readonly client: Client
  readonly clock: Clock
  readonly nodeName: string
}): NodeInfoPublisher {
  const { client, clock, nodeName } = deps
  let last: Promise<unknown> = Promise.resolve()
  /** One writer at a time; fresh read each try; 10 ms, factor 5 (CSINODE-2). */
  const exclusively = <T>(write: () => Promise<T>, signal: AbortSignal): Promise<T> => {
    const run = last.then(
      () => withTries(clock, write, signal),
      () => withTries(clock, write, signal),
    )
    last = run.catch(() => {})
    return run
  }
  const changeEntries = (
    change: (entries: readonly CSINodeDriver[]) => readonly CSINodeDriver[],
    signal: AbortSignal,
  ) =>
    exclusively(async () => {
      const current = await ownedCsiNode(client, nodeName, signal)
      const drivers = change(current.spec.drivers)
      if (drivers !== current.spec.drivers) {
        await client.update('CSINode', { ...current, spec: { ...current.spec, drivers } }, {}, signal)
      }
    }, signal)

  return {
    async install(driver, info, signal) {
      if (info.nodeId === '') throw invalid(`error adding CSI driver node info: nodeID must not be empty`)
      const write = () => publishOnNode(client, nodeName, driver, info, signal)
      await exclusively(write, signal)
      await changeEntries((entries) => withEntry(entries, entryFor(driver, info)), signal)
    },
    async refresh(driver, info, signal) {
      await changeEntries((entries) => withLimit(entries, entryFor(driver, info)), signal)
    },
    async uninstall(driver, signal) {
      await changeEntries(
        (entries) => (entries.some(({ name }) => name === driver) ? entries.filter((e) => e.name !== driver) : entries),
        signal,
      )
      await exclusively(() => removeFromNode(client, nodeName, driver, signal), signal)
    },
    async changeHealth(change, signal) {
      await exclusively(async () => {
        const current = await ownedCsiNode(client, nodeName, signal)
        const present = current.status?.storageHealth ?? []
        const storageHealth = change(present)
        if (storageHealth !== present) await writeStatus(client, nodeName, { storageHealth }, signal)
      }, signal)
    },
    async ensure(signal) {
      await exclusively(() => ownedCsiNode(client, nodeName, signal), signal)
    },
  }
}

/** What a driver says of itself, as its entry in the CSINode (CSINODE-3). */
export function entryFor(driver: string, info: NodeInfo): CSINodeDriver {
  const limit = info.maxVolumes > maxLimit ? maxLimit : info.maxVolumes
  const keys = Object.keys(info.topology ?? {}).toSorted()
  return {
    name: driver,
    nodeID: info.nodeId,
    topologyKeys: keys,
    ...(limit > 0n ? { allocatable: { count: Number(limit) } } : {}),
  }
}

/** Unchanged content is no write; a rewritten entry moves to the end. */
export function withEntry(entries: readonly CSINodeDriver[], entry: CSINodeDriver): readonly CSINodeDriver[] {
  const old = entries.find(({ name }) => name === entry.name)
  if (old && sameEntry(old, entry)) return entries
  return [...entries.filter(({ name }) => name !== entry.name), entry]
}

/** Id and topology stay: volumes are attached under them, and a driver that changes them must register anew. */
export function withLimit(
  entries: readonly CSINodeDriver[],
  { name, allocatable }: CSINodeDriver,
): readonly CSINodeDriver[] {
  const known = entries.find((each) => each.name === name)
  if (!known) return entries
  const { allocatable: _before, ...rest } = known
  return withEntry(entries, { ...rest, ...(allocatable && { allocatable }) })
}

function sameEntry(left: CSINodeDriver, right: CSINodeDriver): boolean {
  const plain = (entry: CSINodeDriver) =>
    JSON.stringify([entry.nodeID, entry.topologyKeys ?? [], entry.allocatable?.count ?? null])
  return plain(left) === plain(right)
}

async function publishOnNode(client: Client, nodeName: string, driver: string, info: NodeInfo, signal: AbortSignal) {
  const node = await client.get('Node', { name: nodeName }, signal)
  const ids = { ...nodeIds(node), [driver]: info.nodeId }
  for (const [key, value] of Object.entries(info.topology ?? {})) {
    const present = node.metadata.labels?.[key]
    if (present !== undefined && present !== value) {
      throw invalid(
        `detected topology value collision: driver reported "${key}":"${value}" but existing label is "${key}":"${present}"`,
      )
    }
  }
  const labelsMissing = Object.keys(info.topology ?? {}).some((key) => node.metadata.labels?.[key] === undefined)
  const text = goJson(ids)
  if (!labelsMissing && annotation(node, nodeIdAnnotation) === text) return
  const metadata = {
    resourceVersion: node.metadata.resourceVersion,
    annotations: { [nodeIdAnnotation]: text },
    ...(info.topology ? { labels: info.topology } : {}),
  }
  await client.patch('Node', { name: nodeName }, { type: 'merge', body: { metadata } }, {}, signal)
}

async function removeFromNode(client: Client, nodeName: string, driver: string, signal: AbortSignal): Promise<void> {
  const node = await client.get('Node', { name: nodeName }, signal)
  const ids: Record<string, string> = { ...nodeIds(node) }
  if (!(driver in ids)) return
  delete ids[driver]
  const value = Object.keys(ids).length > 0 ? goJson(ids) : null
  const metadata = { resourceVersion: node.metadata.resourceVersion, annotations: { [nodeIdAnnotation]: value } }
  await client.patch('Node', { name: nodeName }, { type: 'merge', body: { metadata } }, {}, signal)
}

/** Creates the object if it is missing; one that belongs to another node of the same name is deleted first. */
async function ownedCsiNode(client: Client, nodeName: string, signal: AbortSignal): Promise<CSINode> {
  // The uid is read first: without it a valid object could be taken for a stranger's (WART-17).
  const node = await client.get('Node', { name: nodeName }, signal)
  const uid = node.metadata.uid ?? ''
  try {
    const found = await client.get('CSINode', { name: nodeName }, signal)
    const owner = found.metadata.ownerReferences?.find(({ kind }) => kind === 'Node')
    if (owner?.uid === uid) return found
    await client.remove('CSINode', { name: nodeName }, {}, signal)
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
  const made: CSINode = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: {
      name: nodeName,
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid }],
      annotations: { [migratedAnnotation]: Object.keys(migratedPlugins).join(',') },
    },
    spec: { drivers: [] },
  }
  return client.create('CSINode', made, {}, signal)
}

/** A Kubernetes API server before 1.37 has no such place; then there is nobody to tell. */
async function writeStatus(client: Client, name: string, status: CSINodeStatus, signal: AbortSignal): Promise<void> {
  const patch = { type: 'merge', body: { status } } as const
  await client.patch('CSINode', { name }, patch, { subresource: 'status' }, signal).catch(ignoreNotFound)
}

function nodeIds(node: Node): Record<string, string> {
  const text = annotation(node, nodeIdAnnotation)
  if (!text) return {}
  const parsed: unknown = JSON.parse(text)
  if (parsed === null || typeof parsed !== 'object') return {}
  return Object.fromEntries(Object.entries(parsed).map(([name, id]) => [name, String(id)]))
}

/** Go writes maps with sorted keys; equal content must be equal text. */
function goJson(map: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1))))
}

async function withTries<T>(clock: Clock, write: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write()
    } catch (error) {
      if (attempt >= tries || signal.aborted || error instanceof VolumeError) throw error
      await clock.sleep(10 * 5 ** (attempt - 1), signal)
    }
  }
}

function invalid(message: string): VolumeError {
  return new VolumeError('NodeInfoRefused', message, { effect: 'none' })
}
