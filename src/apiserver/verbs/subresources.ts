// What can be posted to an object? A pod's node, its eviction, and a token for a service account.
import type { JsonObject } from '../../api/json.ts'
import { jsonObjectOf } from '../../api/json.ts'
import { shown } from '../request/shown.ts'
import { invalidObject, notSupported, required } from '../../api/field-errors.ts'
import type { FieldError } from '../../api/field-errors.ts'
import { kinds, versionKind } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef, Typed } from '../../api/meta.ts'
import { badRequest, conflict, notFound, unknownResource } from '../../api/status-error.ts'
import type { Pod } from '../../api/generated/types.ts'
import { validateTokenDuration } from '../../api/validation/common.ts'
import { timestamp } from '../../clock/clock.ts'
import { longestTokenSeconds } from '../access/grants.ts'
import type { Tokens } from '../access/tokens.ts'
import { defaultAudience } from '../access/tokens.ts'
import type { Call } from '../request/call.ts'
import type { ServerContext } from '../objects/context.ts'
import { findObject, readStored } from '../objects/context.ts'
import { deleteObject } from './delete.ts'
import { changeObject } from './update.ts'

export interface PostRequest {
  readonly kind: keyof typeof kinds
  readonly ref: ObjectRef
  readonly subresource: string
  readonly body: unknown
  readonly dryRun: boolean
}

export async function postSubresource(
  context: ServerContext,
  tokens: Tokens,
  request: PostRequest,
  call: Call,
): Promise<Typed> {
  switch (`${request.kind}/${request.subresource}`) {
    case 'Pod/binding':
      return bindPod(context, request, call)
    case 'Pod/eviction':
      return evictPod(context, request, call)
    case 'ServiceAccount/token':
      return requestToken(context, tokens, request, call)
    default:
      throw unknownResource()
  }
}

const success = (code: number): Typed => ({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code })

async function bindPod(context: ServerContext, request: PostRequest, call: Call): Promise<Typed> {
  const { ref } = request
  const binding = jsonObjectOf(request.body)
  const metadata = jsonObjectOf(binding['metadata'])
  checkSame(ref, metadata, 'Binding')
  const { kind = '', name: node } = jsonObjectOf(binding['target'])
  const errors: FieldError[] = []
  if (kind !== '' && kind !== 'Node') errors.push(notSupported('target.kind', kind, ['Node', '<empty>']))
  if (typeof node !== 'string' || node === '') errors.push(required('target.name'))
  if (errors.length > 0) throw invalidObject({ group: '', kind: 'Binding' }, ref.name, errors)
  const now = timestamp(context.clock.now())
  await changeObject(
    context,
    {
      info: kinds.Pod,
      ref,
      subresource: 'binding',
      fieldManager: call.user.name,
      dryRun: request.dryRun,
      change: (current) => boundPod(current as Pod, String(node), metadata, now),
    },
    call,
  )
  return success(201)
}

/** A body that names what it is about names what the path names. */
function checkSame(ref: ObjectRef, { name, namespace }: JsonObject, kind: string): void {
  if (namespace && namespace !== ref.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  if (name !== ref.name) throw badRequest(`name in URL does not match name in ${kind} object`)
}

/** The scheduler may write on the pod why it chose: labels and annotations of the binding become the pod's. */
function boundPod(pod: Pod, node: string, binding: JsonObject, now: string): KubeObject {
  const { name } = pod.metadata
  const refuse = (why: string) => conflict({ group: '', plural: 'pods/binding' }, name, `pod ${name} ${why}`)
  if (pod.metadata.deletionTimestamp) throw refuse('is being deleted, cannot be assigned to a host')
  if (pod.spec?.nodeName) throw refuse(`is already assigned to node "${pod.spec.nodeName}"`)
  if ((pod.spec?.schedulingGates ?? []).length > 0) throw refuse('has non-empty .spec.schedulingGates')
  const added = (['labels', 'annotations'] as const).flatMap((member) => {
    const merged = { ...pod.metadata[member], ...jsonObjectOf(binding[member]) }
    return Object.keys(merged).length > 0 ? [[member, merged] as const] : []
  })
  const { uid } = binding
  const meant = typeof uid === 'string' && uid !== '' ? { uid } : {}
  return {
    ...pod,
    metadata: { ...pod.metadata, ...Object.fromEntries(added), ...meant },
    spec: { ...pod.spec, nodeName: node },
    status: withCondition(pod.status, { type: 'PodScheduled', status: 'True', lastTransitionTime: now }),
  } as KubeObject
}

async function evictPod(context: ServerContext, request: PostRequest, call: Call): Promise<Typed> {
  const { ref, dryRun } = request
  const eviction = jsonObjectOf(request.body)
  checkSame(ref, jsonObjectOf(eviction['metadata']), 'Eviction')
  const options = jsonObjectOf(eviction['deleteOptions'])
  const grace = options['gracePeriodSeconds']
  const { uid, resourceVersion } = jsonObjectOf(options['preconditions'])
  if (!dryRun) await announceEviction(context, ref, call)
  await deleteObject(context, kinds.Pod, ref, {
    dryRun,
    ...(typeof grace === 'number' ? { gracePeriodSeconds: grace } : {}),
    ...(typeof uid === 'string' ? { uid } : {}),
    ...(typeof resourceVersion === 'string' ? { resourceVersion } : {}),
  })
  return success(201)
}

/** Before it goes, a pod is told why. */
function announceEviction(context: ServerContext, ref: ObjectRef, call: Call): Promise<unknown> {
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: timestamp(context.clock.now()),
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  }
  const change = (pod: KubeObject): KubeObject =>
    ({ ...pod, status: withCondition((pod as Pod).status, condition) }) as KubeObject
  const manager = { fieldManager: call.user.name, dryRun: false }
  return changeObject(context, { info: kinds.Pod, ref, subresource: 'status', ...manager, change }, call)
}

function withCondition(status: Pod['status'], condition: { readonly type: string } & JsonObject): object {
  const others = (status?.conditions ?? []).filter(({ type }) => type !== condition.type)
  return { ...status, conditions: [...others, { ...condition, lastProbeTime: null }] }
}

const hour = 3600
const year = 365 * 24 * hour
/**
 * The number that a pod's own token volume asks for. Programs that read the file only once are forgiven: such a token is
 * renewed every hour and good for a year, as long as its pod lives (upstream's default).
 */
const defaultPodSeconds = 3607

/** TokenRequest: a token for the account, good for a while and, if asked, only while a pod or secret lives. */
async function requestToken(
  context: ServerContext,
  tokens: Tokens,
  request: PostRequest,
  { user }: Call,
): Promise<Typed> {
  const { namespace = '' } = request.ref
  const { entry } = await readStored(context, kinds.ServiceAccount, request.ref)
  const account = context.objects.decode(kinds.ServiceAccount, entry)
  const spec = jsonObjectOf(jsonObjectOf(request.body)['spec'])
  const wanted = typeof spec['expirationSeconds'] === 'number' ? spec['expirationSeconds'] : hour
  const errors = validateTokenDuration(wanted, 'spec.expirationSeconds')
  if (errors.length > 0) throw invalidObject({ group: 'authentication.k8s.io', kind: 'TokenRequest' }, '', errors)
  // Shortened, not refused: the answer says how long it is good, as with Kubernetes' own upper limit.
  const seconds = Math.min(wanted, longestTokenSeconds(user))
  const asked = Array.isArray(spec['audiences']) ? spec['audiences'].filter((each) => typeof each === 'string') : []
  const audiences = asked.length > 0 ? asked : [defaultAudience]
  const boundTo = await boundObject(context, namespace, spec['boundObjectRef'])
  const issuedAt = context.clock.now()
  const expiresAt = issuedAt + seconds * 1000
  const forgiven =
    seconds === defaultPodSeconds && boundTo?.kind === 'Pod' && audiences.every((each) => each === defaultAudience)
  const token = tokens.sign({
    namespace,
    serviceAccount: { name: request.ref.name, uid: account.metadata.uid ?? '' },
    ...(boundTo === undefined ? {} : { boundTo }),
    audiences,
    issuedAt,
    ...(forgiven ? { expiresAt: issuedAt + year * 1000, warnAfter: expiresAt } : { expiresAt }),
  })
  return {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: {
      name: request.ref.name,
      namespace,
      uid: account.metadata.uid,
      creationTimestamp: timestamp(issuedAt),
    },
    spec: { boundObjectRef: null, ...spec, audiences, expirationSeconds: seconds },
    status: { token, expirationTimestamp: timestamp(expiresAt) },
  }
}

async function boundObject(context: ServerContext, namespace: string, ref: unknown) {
  if (ref === undefined || ref === null) return undefined
  const { apiVersion = '', kind, name, uid } = jsonObjectOf(ref)
  if ((kind !== 'Pod' && kind !== 'Secret') || typeof name !== 'string') {
    throw badRequest(`cannot bind token to object of type ${versionKind(shown(apiVersion), shown(kind))}`)
  }
  const info = kind === 'Pod' ? kinds.Pod : kinds.Secret
  const found = await findObject(context, info, { namespace, name })
  if (found === undefined) throw notFound(info, name)
  const foundUid = found.metadata.uid ?? ''
  if (typeof uid === 'string' && uid !== '' && uid !== foundUid) {
    const why = `the UID in the bound object reference (${shown(uid)}) does not match the UID in record. The object might have been deleted and then recreated`
    throw conflict(info, name, why)
  }
  return { kind, name, uid: foundUid } as const
}
