// What can be posted to an object? A pod's node, its eviction, and a token for a service account.
import { shown } from './shown.ts'
import { kinds } from '../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../api/meta.ts'
import { badRequest, conflict, invalid, unknownResource } from '../api/status-error.ts'
import type { Pod } from '../api/types.ts'
import { timestamp } from '../clock/clock.ts'
import type { Tokens } from './access/tokens.ts'
import { defaultAudience } from './access/tokens.ts'
import type { Call } from './call.ts'
import type { ServerContext } from './context.ts'
import { findObject, readStored } from './context.ts'
import type { Loose } from './objects.ts'
import { decodeObject } from './objects.ts'
import { deleteObject } from './verbs/delete.ts'
import { changeObject } from './verbs/update.ts'

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
): Promise<object> {
  switch (`${request.kind}/${request.subresource}`) {
    case 'Pod/binding':
      return bindPod(context, request, call)
    case 'Pod/eviction':
      return evictPod(context, request)
    case 'ServiceAccount/token':
      return requestToken(context, tokens, request)
    default:
      throw unknownResource()
  }
}

const success = (code: number): object => ({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code })

async function bindPod(context: ServerContext, request: PostRequest, call: Call): Promise<object> {
  const binding = asMap(request.body)
  const target = asMap(binding['target'])
  const node = target['name']
  if (typeof node !== 'string' || node === '') {
    const cause = { reason: 'FieldValueRequired', message: 'Required value', field: 'target.name' }
    throw invalid({ group: '', kind: 'Binding' }, request.ref.name, [cause], 'target.name: Required value')
  }
  const annotations = asMap(asMap(binding['metadata'])['annotations']) as Record<string, string>
  const now = timestamp(context.clock.now())
  await changeObject(
    context,
    {
      info: kinds.Pod,
      ref: request.ref,
      subresource: 'binding',
      fieldManager: call.user.name,
      dryRun: request.dryRun,
      change: (current) => boundPod(current as Pod, node, annotations, now),
    },
    call,
  )
  return success(201)
}

function boundPod(pod: Pod, node: string, annotations: Readonly<Record<string, string>>, now: string): KubeObject {
  const { name } = pod.metadata
  const subject = { group: '', plural: 'pods/binding' }
  if (pod.metadata.deletionTimestamp)
    throw conflict(subject, name, `pod ${name} is being deleted, cannot be assigned to a host`)
  if (pod.spec?.nodeName)
    throw conflict(subject, name, `pod ${name} is already assigned to node "${pod.spec.nodeName}"`)
  const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== 'PodScheduled')
  const scheduled = { type: 'PodScheduled', status: 'True' as const, lastProbeTime: null, lastTransitionTime: now }
  const merged = { ...pod.metadata.annotations, ...annotations }
  return {
    ...pod,
    metadata: { ...pod.metadata, ...(Object.keys(merged).length > 0 ? { annotations: merged } : {}) },
    spec: { ...pod.spec, nodeName: node },
    status: { ...pod.status, conditions: [...others, scheduled] },
  } as KubeObject
}

async function evictPod(context: ServerContext, request: PostRequest): Promise<object> {
  const options = asMap(asMap(request.body)['deleteOptions'])
  const grace = options['gracePeriodSeconds']
  const { uid, resourceVersion } = asMap(options['preconditions'])
  await deleteObject(context, kinds.Pod, request.ref, {
    dryRun: request.dryRun,
    ...(typeof grace === 'number' ? { gracePeriodSeconds: grace } : {}),
    ...(typeof uid === 'string' ? { uid } : {}),
    ...(typeof resourceVersion === 'string' ? { resourceVersion } : {}),
  })
  return success(201)
}

const hour = 3600
const shortestSeconds = 600

/** TokenRequest: a token for the account, good for a while and, if asked, only while a pod or secret lives. */
async function requestToken(context: ServerContext, tokens: Tokens, request: PostRequest): Promise<object> {
  const { namespace = '' } = request.ref
  const { entry } = await readStored(context, kinds.ServiceAccount, request.ref)
  const account = decodeObject(kinds.ServiceAccount, entry)
  const spec = asMap(asMap(request.body)['spec'])
  const seconds = typeof spec['expirationSeconds'] === 'number' ? spec['expirationSeconds'] : hour
  if (seconds < shortestSeconds) {
    const message = `Invalid value: ${seconds}: may not specify a duration less than 10 minutes`
    const cause = { reason: 'FieldValueInvalid', message, field: 'spec.expirationSeconds' }
    const on = { group: 'authentication.k8s.io', kind: 'TokenRequest' }
    throw invalid(on, '', [cause], `spec.expirationSeconds: ${message}`)
  }
  const asked = Array.isArray(spec['audiences']) ? spec['audiences'].filter((each) => typeof each === 'string') : []
  const audiences = asked.length > 0 ? asked : [defaultAudience]
  const boundTo = await boundObject(context, namespace, spec['boundObjectRef'])
  const issuedAt = context.clock.now()
  const expiresAt = issuedAt + Math.min(seconds, 2 ** 32) * 1000
  const token = tokens.sign({
    namespace,
    serviceAccount: { name: request.ref.name, uid: account.metadata.uid ?? '' },
    ...(boundTo === undefined ? {} : { boundTo }),
    audiences,
    issuedAt,
    expiresAt,
  })
  return {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name: request.ref.name, namespace, creationTimestamp: timestamp(issuedAt) },
    spec: { ...spec, audiences, expirationSeconds: seconds },
    status: { token, expirationTimestamp: timestamp(expiresAt) },
  }
}

async function boundObject(context: ServerContext, namespace: string, ref: unknown) {
  if (ref === undefined || ref === null) return undefined
  const { kind, name, uid } = asMap(ref)
  if ((kind !== 'Pod' && kind !== 'Secret') || typeof name !== 'string') {
    throw badRequest(`cannot bind token to object of type ${shown(kind)}`)
  }
  const info = kind === 'Pod' ? kinds.Pod : kinds.Secret
  const found = await findObject(context, info, { namespace, name })
  const foundUid = found?.metadata.uid ?? ''
  if (found === undefined || (typeof uid === 'string' && uid !== '' && uid !== foundUid)) {
    const why = `the UID in the bound object reference (${shown(uid)}) does not match the UID in record. The object might have been deleted and then recreated`
    throw conflict(info, name, why)
  }
  return { kind, name, uid: foundUid } as const
}

function asMap(value: unknown): Loose {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Loose) : {}
}
