// What may a node touch? Its own Node, CSINode and Lease, the pods bound to it, and, reading only, the secrets,
// configMaps, claims and volumes that those pods use (issue 3, part 3). Decided from the stored pods, at request time.
import type { KindInfo, Verb } from '../../api/kinds.ts'
import { kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import type { PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttachment } from '../../api/types.ts'
import type { ServerContext } from '../context.ts'
import { findObject } from '../context.ts'
import { decodeObject, prefixOf } from '../objects.ts'
import { namesUsedBy } from './pod-uses.ts'
import type { Attributes, Decision } from './roles.ts'

export interface NodeAccess {
  decide(node: string, attributes: Attributes): Promise<Decision>
}

const leaseNamespace = 'kube-node-lease'
const reading: ReadonlySet<Verb> = new Set<Verb>(['get', 'list', 'watch'])
const yes: Decision = { allowed: true, reason: '' }

export function createNodeAccess(context: ServerContext): NodeAccess {
  return {
    async decide(node, attributes) {
      const { group, resource, verb } = attributes
      const selected = selectedName(attributes)
      switch (`${group}/${resource}`) {
        case '/nodes':
          return own(node, attributes, attributes.subresource === 'status' || verb !== 'delete')
        case 'storage.k8s.io/csinodes':
          return own(node, attributes, true)
        case 'coordination.k8s.io/leases':
          return attributes.namespace === leaseNamespace
            ? own(node, attributes, true)
            : no('nodes use leases of their own name in kube-node-lease')
        case '/pods':
          return podAccess(context, node, attributes)
        case '/secrets':
        case '/configmaps':
          if (!reading.has(verb)) return no('nodes only read secrets and configMaps')
          return uses(context, node, attributes, resource === 'secrets' ? 'secrets' : 'configMaps', selected)
        case '/persistentvolumeclaims':
          // The node reports finished expansions in the claim's status.
          if (!reading.has(verb) && attributes.subresource !== 'status') return no('nodes only read claims')
          return uses(context, node, attributes, 'claims', selected)
        case '/persistentvolumes':
          return reading.has(verb) ? volumeAccess(context, node, selected) : no('nodes only read volumes')
        case 'storage.k8s.io/volumeattachments':
          return attachmentAccess(context, node, attributes, selected)
        case '/serviceaccounts':
          if (attributes.subresource !== 'token' && verb !== 'get') return no('nodes only ask for tokens of their pods')
          return uses(context, node, attributes, 'serviceAccounts', selected)
        default:
          return otherAccess(node, attributes)
      }
    },
  }
}

function otherAccess(node: string, { group, resource, verb, object }: Attributes): Decision {
  const what = `${group}/${resource}`
  const shared = ['storage.k8s.io/csidrivers', 'storage.k8s.io/storageclasses', '/namespaces']
  if (shared.includes(what)) return reading.has(verb) ? yes : no(`nodes only read ${resource}`)
  if (what === '/events' || what === 'events.k8s.io/events') {
    return ['create', 'update', 'patch'].includes(verb) ? yes : no('nodes only write events')
  }
  if (what === 'authentication.k8s.io/tokenreviews' || what === 'authorization.k8s.io/subjectaccessreviews') {
    return verb === 'create' ? yes : no('reviews are only created')
  }
  if (what === 'hawser.dev/operations') {
    if (reading.has(verb)) return yes
    const { spec } = (object ?? {}) as { spec?: { node?: unknown } } // a body that is not parsed yet
    return spec === undefined || spec.node === node ? yes : no('nodes record operations of their own')
  }
  return no(`nodes have no access to ${resource}`)
}

/** Objects that carry the node's own name. A create names the object in its body. */
function own(node: string, attributes: Attributes, allowedVerb: boolean): Decision {
  const name = attributes.name ?? selectedName(attributes) ?? bodyName(attributes.object)
  if (!allowedVerb) return no('a node does not delete itself')
  return name === node ? yes : no(`node ${node} may only use ${attributes.resource} of its own name`)
}

async function podAccess(context: ServerContext, node: string, attributes: Attributes): Promise<Decision> {
  const { verb, name, namespace, subresource } = attributes
  if (verb === 'list' || verb === 'watch') {
    const ownPods = (attributes.fieldSelector ?? '').split(',').includes(`spec.nodeName=${node}`)
    return ownPods ? yes : no('a node lists and watches pods with the field selector spec.nodeName of its own')
  }
  if (name === undefined || namespace === undefined) return no('a node does not create pods')
  const writes = subresource === 'status' || verb === 'delete' || subresource === 'eviction'
  if (verb !== 'get' && !writes) return no('a node only writes the status of its pods and removes them')
  const pod = (await findObject(context, kinds.Pod, { namespace, name })) as Pod | undefined
  // A missing pod is answered with 404 by the verb itself.
  return pod === undefined || pod.spec?.nodeName === node ? yes : no(`pod ${name} does not run on node ${node}`)
}

type Used = 'secrets' | 'configMaps' | 'claims' | 'serviceAccounts'

async function uses(
  context: ServerContext,
  node: string,
  attributes: Attributes,
  what: Used,
  name: string | undefined,
): Promise<Decision> {
  const { namespace } = attributes
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

async function attachmentAccess(
  context: ServerContext,
  node: string,
  attributes: Attributes,
  name: string | undefined,
): Promise<Decision> {
  if (attributes.verb !== 'get' || name === undefined) return no('a node reads its attachments one by one')
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
      if (volume !== undefined) collectSecretRefs(volume, namespace, secrets, 0)
    }
  }
  return secrets
}

function collectSecretRefs(value: unknown, namespace: string, into: Set<string>, depth: number): void {
  if (typeof value !== 'object' || value === null || depth > 8) return
  for (const [member, item] of Object.entries(value)) {
    if (/secretRef$/i.test(member) && typeof item === 'object' && item !== null) {
      const { name, namespace: said } = item as { name?: unknown; namespace?: unknown } // a reference of some kind
      if (typeof name === 'string') into.add(`${typeof said === 'string' && said !== '' ? said : namespace}/${name}`)
    } else collectSecretRefs(item, namespace, into, depth + 1)
  }
}

async function podsOf(context: ServerContext, node: string, namespace: string | undefined): Promise<readonly Pod[]> {
  const info: KindInfo = kinds.Pod
  const { entries } = await context.store.list(prefixOf(info, namespace), {})
  // The texts are searched before they are parsed: most pods run elsewhere.
  const mark = `"nodeName":${JSON.stringify(node)}`
  return entries
    .filter((entry) => entry.value.includes(mark))
    .map((entry) => decodeObject(info, entry) as Pod)
    .filter((pod) => pod.spec?.nodeName === node)
}

function selectedName({ name, fieldSelector }: Attributes): string | undefined {
  if (name !== undefined) return name
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
