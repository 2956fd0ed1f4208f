// What has to do with a node? Its own Node, CSINode and Lease, the pods bound to it, and the secrets, configMaps, claims and
// volumes that those pods use. Each kind's definition names the rule; what it needs to know is read from the store at request
// time.
import type { KindInfo } from '../../api/kinds.ts'
import type { NodeRule } from '../../api/kinds/define-kind.ts'
import { kindByPlural, kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import type {
  ObjectReference,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  VolumeAttachment,
} from '../../api/generated/types.ts'
import type { ServerContext } from '../objects/context.ts'
import { findObject } from '../objects/context.ts'
import { prefixOf } from '../objects/stored-objects.ts'
import { namesUsedBy } from './pod-uses.ts'
import type { Attributes, Decision } from './roles.ts'
import { secretRefsIn } from './secret-refs.ts'

const yes: Decision = { allowed: true, reason: '' }
type UsedByPods = Extract<NodeRule, { may: 'usedByPods' }>

/** The verb is granted already: is it about an object that has to do with the node? */
export function ofNode(
  context: ServerContext,
  node: string,
  attributes: Attributes,
  rule: NodeRule,
): Decision | Promise<Decision> {
  switch (rule.may) {
    case 'ownName':
      return own(node, attributes, rule.inNamespace)
    case 'ownPods':
      return podAccess(context, node, attributes)
    case 'usedByPods':
      return attributes.subresource === 'token'
        ? tokenAccess(context, node, attributes)
        : uses(context, node, attributes, rule.as)
    case 'volumesOfPods':
      return volumeAccess(context, node, selectedName(attributes))
    case 'ownAttachments':
      return attachmentAccess(context, node, attributes.name)
    case 'readAll':
    // What an event is about is in its body, which apply reads too: see `checkNodeEvent`.
    case 'ownEvents':
      return yes
    case 'ownRecords':
      return recordAccess(context, node, attributes)
    default:
      return rule satisfies never
  }
}

/** Objects that carry the node's own name. A create names the object in its body. */
function own(node: string, attributes: Attributes, inNamespace: string | undefined): Decision {
  const { resource, namespace, verb } = attributes
  if (inNamespace !== undefined && namespace !== inNamespace) {
    return no(`nodes use ${resource} of their own name in ${inNamespace}`)
  }
  const name = verb === 'create' ? bodyName(attributes.object) : selectedName(attributes)
  return name === node ? yes : no(`node ${node} may only use ${resource} of its own name`)
}

/** Those whose spec.node is the node. What a write makes of it is checked by node-writes.ts. */
async function recordAccess(context: ServerContext, node: string, attributes: Attributes): Promise<Decision> {
  const { verb, resource, name, object } = attributes
  if (verb === 'list' || verb === 'watch') {
    const ownRecords = (attributes.fieldSelector ?? '').split(',').includes(`spec.node=${node}`)
    return ownRecords ? yes : no(`a node lists and watches ${resource} with the field selector spec.node of its own`)
  }
  const info = kindByPlural(attributes.group, resource)
  if (info === undefined || (verb !== 'create' && name === undefined)) return no(`nodes name the ${resource} they use`)
  const record = verb === 'create' ? object : await findObject(context, info, { name: name ?? '' })
  // A missing record is answered with 404 by the verb itself.
  if (record === undefined && verb !== 'create') return yes
  const { spec } = (record ?? {}) as { spec?: { node?: unknown } } // a body that is not parsed yet
  return spec?.node === node ? yes : no(`nodes use ${resource} of their own`)
}

/** A token for a pod of this node: of the pod's own account, and good only while the pod lives. */
async function tokenAccess(context: ServerContext, node: string, attributes: Attributes): Promise<Decision> {
  const { namespace, name: account, object } = attributes
  const { spec } = (object ?? {}) as { spec?: { boundObjectRef?: Partial<ObjectReference> } } // not parsed yet
  const { kind, name, uid } = spec?.boundObjectRef ?? {}
  if (kind !== 'Pod' || typeof name !== 'string' || !uid || namespace === undefined) {
    return no(`node requested token not bound to a pod, by name and uid`)
  }
  const pod = (await findObject(context, kinds.Pod, { namespace, name })) as Pod | undefined
  if (pod?.spec?.nodeName !== node) return no('node requested token bound to a pod scheduled on a different node')
  if (pod.metadata.uid !== uid) return no(`node requested token bound to pod ${name} with another uid`)
  const isOwn = account !== undefined && namesUsedBy(pod).serviceAccounts.has(account)
  return isOwn ? yes : no(`pod ${name} has another service account than ${account}`)
}

async function podAccess(context: ServerContext, node: string, attributes: Attributes): Promise<Decision> {
  const { verb, name, namespace } = attributes
  if (verb === 'list' || verb === 'watch') {
    const ownPods = (attributes.fieldSelector ?? '').split(',').includes(`spec.nodeName=${node}`)
    return ownPods ? yes : no('a node lists and watches pods with the field selector spec.nodeName of its own')
  }
  if (name === undefined || namespace === undefined) return no('a node names the pods it writes')
  const pod = (await findObject(context, kinds.Pod, { namespace, name })) as Pod | undefined
  // A missing pod is answered with 404 by the verb itself.
  return pod === undefined || pod.spec?.nodeName === node ? yes : no(`pod ${name} does not run on node ${node}`)
}

async function uses(
  context: ServerContext,
  node: string,
  attributes: Attributes,
  what: UsedByPods['as'],
): Promise<Decision> {
  const { namespace } = attributes
  const name = selectedName(attributes)
  if (name === undefined || namespace === undefined) return no(`a node reads ${what} one by one`)
  for (const pod of await podsOf(context, node, namespace)) {
    if (namesUsedBy(pod)[what].has(name)) return yes
  }
  if (what === 'secrets' && (await volumeSecrets(context, node)).has(`${namespace}/${name}`)) return yes
  return no(`no pod of node ${node} uses ${name}`)
}

async function volumeAccess(context: ServerContext, node: string, name: string | undefined): Promise<Decision> {
  if (name === undefined) return no('a node reads volumes one by one')
  const volume = (await findObject(context, kinds.PersistentVolume, { name })) as PersistentVolume | undefined
  const claim = volume?.spec?.claimRef
  if (volume === undefined) return yes
  if (claim?.namespace === undefined || claim.name === undefined)
    return no(`no pod of node ${node} uses volume ${name}`)
  for (const pod of await podsOf(context, node, claim.namespace)) {
    if (namesUsedBy(pod).claims.has(claim.name)) return yes
  }
  return no(`no pod of node ${node} uses volume ${name}`)
}

async function attachmentAccess(context: ServerContext, node: string, name: string | undefined): Promise<Decision> {
  if (name === undefined) return no('a node reads its attachments one by one')
  const found = (await findObject(context, kinds.VolumeAttachment, { name })) as VolumeAttachment | undefined
  return found === undefined || found.spec?.nodeName === node ? yes : no(`attachment ${name} is not of node ${node}`)
}

/** Secrets that the volumes of the node's pods name (CSI stage, publish and expand secrets, iSCSI, …). */
async function volumeSecrets(context: ServerContext, node: string): Promise<ReadonlySet<string>> {
  const secrets = new Set<string>()
  for (const pod of await podsOf(context, node, undefined)) {
    const { namespace } = pod.metadata
    if (namespace === undefined) continue
    for (const claimName of namesUsedBy(pod).claims) {
      const claim = (await findObject(context, kinds.PersistentVolumeClaim, { namespace, name: claimName })) as
        | PersistentVolumeClaim
        | undefined
      const name = claim?.spec?.volumeName
      const volume = name ? await findObject(context, kinds.PersistentVolume, { name }) : undefined
      for (const ref of secretRefsIn(volume)) secrets.add(`${ref.namespace || namespace}/${ref.name}`)
    }
  }
  return secrets
}

async function podsOf(context: ServerContext, node: string, namespace: string | undefined): Promise<readonly Pod[]> {
  const info: KindInfo = kinds.Pod
  const { entries } = await context.store.list(prefixOf(info, namespace), {})
  // The texts are searched before they are parsed: most pods run elsewhere.
  const mark = `"nodeName":${JSON.stringify(node)}`
  return entries
    .filter((entry) => entry.value.includes(mark))
    .map((entry) => context.objects.decode(info, entry) as Pod)
    .filter((pod) => pod.spec?.nodeName === node)
}

/**
 * Who is told of an event believes that it happened to the object: a node tells only of itself, its pods and what they use. An object
 * that is not there any more may have been its own a moment ago.
 */
export async function mayTellOf(context: ServerContext, node: string, about: ObjectReference): Promise<Decision> {
  const { kind = '', name = '', namespace, uid } = about
  const asked: Attributes = {
    verb: 'get',
    group: '',
    resource: '',
    subresource: undefined,
    name,
    namespace,
    fieldSelector: undefined,
  }
  switch (kind) {
    case 'Node':
    case 'CSINode':
      return name === node ? yes : no(`node ${node} tells of no other node`)
    case 'Pod':
      return (await isElsewhere(context, node, uid)) ? no('that pod runs elsewhere') : podAccess(context, node, asked)
    case 'PersistentVolumeClaim':
      return uses(context, node, asked, 'claims')
    case 'PersistentVolume':
      return volumeAccess(context, node, name)
    default:
      return no(`nodes tell of pods, claims and volumes, not of ${kind || 'nothing'}`)
  }
}

/** Whether a pod of another node has this uid, by whatever name it is called. */
async function isElsewhere(context: ServerContext, node: string, uid: string | undefined): Promise<boolean> {
  if (!uid) return false
  const { entries } = await context.store.list(prefixOf(kinds.Pod, undefined), {})
  const mark = `"uid":${JSON.stringify(uid)}`
  return entries
    .filter((entry) => entry.value.includes(mark))
    .map((entry) => context.objects.decode(kinds.Pod, entry) as Pod)
    .some((pod) => pod.metadata.uid === uid && pod.spec?.nodeName !== node)
}

/** The name in the path. A list and a watch may choose one object by a selector; for other verbs a selector means nothing. */
function selectedName({ verb, name, fieldSelector }: Attributes): string | undefined {
  if (name !== undefined || (verb !== 'list' && verb !== 'watch')) return name
  const chosen = (fieldSelector ?? '').split(',').find((term) => term.startsWith('metadata.name='))
  return chosen?.slice('metadata.name='.length).replace(/^=/, '')
}

function bodyName(object: unknown): string | undefined {
  const { metadata } = (object ?? {}) as Partial<KubeObject> // a body that is not parsed yet
  return typeof metadata?.name === 'string' ? metadata.name : undefined
}

function no(reason: string): Decision {
  return { allowed: false, reason }
}
