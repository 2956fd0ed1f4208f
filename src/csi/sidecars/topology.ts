// Where may a new volume lie? The requirements sent with CreateVolume, from the class, the nodes and the node that the
// scheduler selected (SIDE-15, XPR-13). Pure: the same facts give the same requirements, so retries are identical.
import { refused } from '../../volume/effect.ts'
import type { CSINode, Node, StorageClass, VolumeNodeAffinity } from '../../api/generated/types.ts'
import type { Segments, Strings } from '../values.ts'

export interface TopologyFacts {
  readonly driver: string
  readonly claimName: string
  readonly storageClass: StorageClass
  readonly selectedNode: string | undefined
  readonly nodes: readonly Node[]
  readonly csiNodes: readonly CSINode[]
  /** Only the selected node's own segment is asked for. */
  readonly strict: boolean
}

export interface Requirements {
  readonly requisite: readonly Segments[]
  readonly preferred: readonly Segments[]
}

export type TopologyPlan =
  | { readonly kind: 'none' }
  | { readonly kind: 'required'; readonly requirements: Requirements }
  /** The selected node or its driver entry is gone: another node must be selected. */
  | { readonly kind: 'reschedule'; readonly reason: string }

export function planTopology(facts: TopologyFacts): TopologyPlan {
  const { selectedNode, storageClass } = facts
  const allowed = allowedSegments(storageClass)
  if (selectedNode === undefined) {
    const requisite = allowed ?? allSegments(facts, undefined)
    if (requisite.length === 0) return { kind: 'none' }
    const preferred = rotated(requisite, startFor(facts.claimName, requisite.length))
    return { kind: 'required', requirements: { requisite, preferred } }
  }
  const keys = keysOn(facts, selectedNode)
  const node = facts.nodes.find(({ metadata }) => metadata.name === selectedNode)
  if (!node || !keys)
    return { kind: 'reschedule', reason: `node "${selectedNode}" or its CSINode entry for ${facts.driver} is gone` }
  if (keys.length === 0) throw refused('TopologyMissing', `no topology key found on CSINode ${selectedNode}`, 'none')
  const own = segmentOf(node, keys)
  if (!own) return { kind: 'reschedule', reason: `node "${selectedNode}" lacks topology labels ${keys.join(', ')}` }
  const matches = (term: Segments) =>
    Object.entries(term.segments).every(
      ([key, value]) => own.segments[key] === undefined || own.segments[key] === value,
    )
  if (allowed && !allowed.some(matches))
    throw refused('TopologyRefused', `selected node "${selectedNode}" is not in allowedTopologies of the class`, 'none')
  if (facts.strict) return { kind: 'required', requirements: { requisite: [own], preferred: [own] } }
  const requisite = allowed ?? allSegments(facts, keys)
  const first = requisite.findIndex((term) => matches(term))
  return { kind: 'required', requirements: { requisite, preferred: rotated(requisite, Math.max(0, first)) } }
}

/** SIDE-19: any of the segments, each with all of its keys. */
export function affinityOf(topology: readonly Segments[]): VolumeNodeAffinity | undefined {
  const terms = topology.filter(({ segments }) => Object.keys(segments).length > 0)
  if (terms.length === 0) return undefined
  const nodeSelectorTerms = terms.map(({ segments }) => ({
    matchExpressions: Object.keys(segments)
      .toSorted()
      .map((key) => ({ key, operator: 'In' as const, values: [segments[key] ?? ''] })),
  }))
  return { required: { nodeSelectorTerms } }
}

/** Every distinct segment of nodes that run the driver. */
export function allSegments(
  facts: Pick<TopologyFacts, 'nodes' | 'csiNodes' | 'driver'>,
  keys: readonly string[] | undefined,
): readonly Segments[] {
  const found = new Map<string, Segments>()
  for (const node of facts.nodes) {
    const wanted = keys ?? keysOn(facts, node.metadata.name)
    const segment = wanted && wanted.length > 0 ? segmentOf(node, wanted) : undefined
    if (segment) found.set(JSON.stringify(segment), segment)
  }
  return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, segment]) => segment)
}

function keysOn(
  { csiNodes, driver }: Pick<TopologyFacts, 'csiNodes' | 'driver'>,
  nodeName: string,
): readonly string[] | undefined {
  const csiNode = csiNodes.find(({ metadata }) => metadata.name === nodeName)
  const entry = csiNode?.spec.drivers.find(({ name }) => name === driver)
  return entry && (entry.topologyKeys ?? [])
}

function segmentOf(node: Node, keys: readonly string[]): Segments | undefined {
  const segments: Record<string, string> = {}
  for (const key of keys.toSorted()) {
    const value = node.metadata.labels?.[key]
    if (value === undefined) return undefined
    segments[key] = value
  }
  return { segments }
}

/** The cross product of the values of each term. */
function allowedSegments({ allowedTopologies }: StorageClass): readonly Segments[] | undefined {
  if (!allowedTopologies || allowedTopologies.length === 0) return undefined
  const found = new Map<string, Segments>()
  for (const term of allowedTopologies) {
    let products: Strings[] = [{}]
    for (const { key, values } of term.matchLabelExpressions ?? []) {
      products = products.flatMap((product) => values.map((value) => ({ ...product, [key]: value })))
    }
    for (const product of products) {
      const sorted = Object.fromEntries(Object.entries(product).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      found.set(JSON.stringify(sorted), { segments: sorted })
    }
  }
  return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, segment]) => segment)
}

function rotated<T>(items: readonly T[], start: number): readonly T[] {
  return [...items.slice(start), ...items.slice(0, start)]
}

/** Members of one set of claims (`data-web-0`, `data-web-1`) are spread one after the other. */
function startFor(claimName: string, count: number): number {
  const match = /^(.*)-(\d+)$/.exec(claimName)
  const ordinal = match ? Number(match[2]) % count : 0
  const stem = match ? (match[1] ?? '').slice((match[1] ?? '').lastIndexOf('-') + 1) : claimName
  return ((fnv1(stem) % count) + ordinal) % count
}

function fnv1(text: string): number {
  let hash = 0x811c9dc5
  for (const byte of new TextEncoder().encode(text)) {
    hash = Math.imul(hash, 0x01000193) >>> 0
    hash = (hash ^ byte) >>> 0
  }
  return hash
}
