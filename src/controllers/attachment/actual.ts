// Where do volumes sit, as far as we know? One record per volume, one entry per node (rules ADA-1 … ADA-10).
//
// 1. Any failed attach leaves doubt; only a successful attach or a successful detach ends it (ATT-3, DET-6).
// 2. A certain attachment is not made doubtful by a second attempt, only by a failed detach.
// 3. A volume is told to its node (`reported`) only while it is certainly attached; doubt never adds it (ADA-4, NSP-7).
// 4. The device path belongs to the volume on one node, not to the volume (WA-20).
import type { NodeName, UniqueVolumeName } from '../../api/names.ts'
import type { World } from '../../loop/world.ts'
import { createWorld } from '../../loop/world.ts'
import type { VolumeSpec } from '../../volume/spec.ts'

export interface ActualVolume {
  readonly volume: UniqueVolumeName
  /** A volume found in a node's status at start is only `seen`: its name is all we have until a pod or PV explains it. */
  readonly identity: Identity
  readonly nodes: ReadonlyMap<NodeName, OnNode>
}

type Identity = { readonly kind: 'known'; readonly spec: VolumeSpec } | { readonly kind: 'seen' }

export interface OnNode {
  readonly presence: 'attached' | 'uncertain'
  readonly devicePath: string
  /** Belongs into node.status.volumesAttached. */
  readonly reported: boolean
  /** Since when nobody wants it here; the six-minute timer of FD-2 runs from this moment. By the steady clock. */
  readonly detachWantedSince: number | undefined
  /** The node's status count when this was attached: until it counts on, the node may be using what we just reported. */
  readonly nodeVersion: number
}

interface At {
  readonly volume: UniqueVolumeName
  readonly node: NodeName
}

export type ActualEvent =
  | (At & { readonly kind: 'foundInNodeStatus'; readonly devicePath: string; readonly nodeVersion: number })
  | (At & { readonly kind: 'foundAttachment'; readonly spec: VolumeSpec })
  | (At & { readonly kind: 'specLearned'; readonly spec: VolumeSpec })
  | (At & {
      readonly kind: 'attached'
      readonly spec: VolumeSpec
      readonly devicePath: string
      readonly nodeVersion: number
    })
  | (At & { readonly kind: 'attachFailed'; readonly spec: VolumeSpec })
  | (At & { readonly kind: 'detachWanted'; readonly at: number })
  | (At & { readonly kind: 'detachUnwanted' | 'reportWithdrawn' | 'reportRestored' })
  | (At & { readonly kind: 'detachFailed' })
  | (At & { readonly kind: 'detached' | 'foundNotAttached' })

export type ActualWorld = World<UniqueVolumeName, ActualVolume, ActualEvent>

export function createActualWorld(): ActualWorld {
  return createWorld<UniqueVolumeName, ActualVolume, ActualEvent>((event) => event.volume, reduceActual)
}

export function reduceActual(item: ActualVolume | undefined, event: ActualEvent): ActualVolume | undefined {
  const onNode = item?.nodes.get(event.node)
  switch (event.kind) {
    case 'foundInNodeStatus':
      if (onNode) return item
      return put(item, event, undefined, { ...fresh, ...event, presence: 'attached', reported: true })
    case 'foundAttachment':
      return onNode ? learn(item, event.spec) : put(item, event, event.spec, fresh)
    case 'specLearned':
      return learn(item, event.spec)
    case 'attached':
      return put(item, event, event.spec, {
        presence: 'attached',
        devicePath: event.devicePath,
        reported: true,
        detachWantedSince: onNode?.detachWantedSince,
        nodeVersion: event.nodeVersion,
      })
    case 'attachFailed':
      return onNode ? learn(item, event.spec) : put(item, event, event.spec, fresh)
    case 'detached':
    case 'foundNotAttached':
      return drop(item, event.node)
    default:
      return item && onNode ? change(item, onNode, event) : item
  }
}

/** What a volume should be doing according to the entry of one node; used by the reducer and by tests. */
export function presenceOn(item: ActualVolume | undefined, node: NodeName): 'attached' | 'uncertain' | 'absent' {
  return item?.nodes.get(node)?.presence ?? 'absent'
}

const fresh: OnNode = {
  presence: 'uncertain',
  devicePath: '',
  reported: false,
  detachWantedSince: undefined,
  nodeVersion: -1,
}

type Change = Extract<
  ActualEvent,
  { kind: 'detachWanted' | 'detachUnwanted' | 'reportWithdrawn' | 'reportRestored' | 'detachFailed' }
>

/** Events that only touch an entry that exists. */
function change(item: ActualVolume, onNode: OnNode, event: Change): ActualVolume {
  switch (event.kind) {
    case 'detachWanted': // the first call stamps, later ones change nothing (ADA-7)
      if (onNode.detachWantedSince !== undefined) return item
      return withNode(item, event.node, { ...onNode, detachWantedSince: event.at })
    case 'detachUnwanted':
      if (onNode.detachWantedSince === undefined) return item
      return withNode(item, event.node, { ...onNode, detachWantedSince: undefined })
    case 'reportWithdrawn':
      return onNode.reported ? withNode(item, event.node, { ...onNode, reported: false }) : item
    case 'reportRestored': // only what is certainly attached may be told to the node again (DES-8, WA-14)
      if (onNode.reported || onNode.presence !== 'attached') return item
      return withNode(item, event.node, { ...onNode, reported: true })
    case 'detachFailed': // half-finished: doubtful, and out of the report until a fresh attach (DET-6, NSP-7)
      if (onNode.presence === 'uncertain' && !onNode.reported && onNode.devicePath === '') return item
      return withNode(item, event.node, { ...onNode, presence: 'uncertain', reported: false, devicePath: '' })
    default:
      return event satisfies never
  }
}

function put(item: ActualVolume | undefined, at: At, spec: VolumeSpec | undefined, onNode: OnNode): ActualVolume {
  const { presence, devicePath, reported, detachWantedSince, nodeVersion } = onNode
  const base = learn(item, spec) ?? { volume: at.volume, identity: identityOf(spec), nodes: new Map() }
  return withNode(base, at.node, { presence, devicePath, reported, detachWantedSince, nodeVersion })
}

function learn(item: ActualVolume | undefined, spec: VolumeSpec | undefined): ActualVolume | undefined {
  if (!item || spec === undefined) return item
  if (item.identity.kind === 'known' && item.identity.spec === spec) return item
  return { ...item, identity: identityOf(spec) }
}

function identityOf(spec: VolumeSpec | undefined): Identity {
  return spec === undefined ? { kind: 'seen' } : { kind: 'known', spec }
}

function drop(item: ActualVolume | undefined, node: NodeName): ActualVolume | undefined {
  if (!item?.nodes.has(node)) return item
  const nodes = new Map(item.nodes)
  nodes.delete(node)
  return nodes.size === 0 ? undefined : { ...item, nodes }
}

function withNode(item: ActualVolume, node: NodeName, onNode: OnNode): ActualVolume {
  return { ...item, nodes: new Map(item.nodes).set(node, onNode) }
}
