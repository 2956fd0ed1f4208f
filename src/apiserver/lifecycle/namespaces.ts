// How does a namespace come and go? Each gets its default service account and the server's authority; a terminating one is emptied, kind by kind,
// and goes when nothing is left in it.
import type { KindInfo } from '../../api/kinds.ts'
import { kindNames, kinds } from '../../api/kinds.ts'
import type { KubeObject } from '../../api/meta.ts'
import { isAlreadyExists, isConflict, isForbidden, isNotFound } from '../../api/status-error.ts'
import type { ConfigMap, Namespace } from '../../api/generated/types.ts'
import type { Change } from '../../store/store.ts'
import { isStoreError } from '../../store/store.ts'
import type { Call } from '../request/call.ts'
import type { ServerContext } from '../objects/context.ts'
import { findObject } from '../objects/context.ts'
import { prefixOf, sameJson } from '../objects/stored-objects.ts'
import { createObject } from '../verbs/create.ts'
import { deleteObject } from '../verbs/delete.ts'
import { changeObject } from '../verbs/update.ts'
import type { LifecycleDeps } from './garbage.ts'
import { unavailableMs } from './garbage.ts'
import { kindOfKey } from './owners.ts'
import type { Retries } from './retries.ts'
import { createRetries } from './retries.ts'

/** The namespaces every cluster has. */
const standing = ['default', 'kube-node-lease', 'kube-public', 'kube-system']

const namespaced: readonly KindInfo[] = kindNames
  .map((name) => kinds[name])
  .filter((info) => info.namespaced && info.view === undefined)

const rootCertificateName = 'kube-root-ca.crt'

const keeper: Call = {
  user: { name: 'system:serviceaccount:kube-system:namespace-controller', groups: ['system:masters'] },
  signal: new AbortController().signal,
  warn: () => {},
}

/**
 * Must be done before the first request: objects need their namespace. History begins after that, so version 1 names
 * nothing that a client can have seen; a watch from there is told that it is too old, as on any cluster that has run.
 */
export async function ensureNamespaces(context: ServerContext): Promise<void> {
  const isNew = (await context.store.list('/', { limit: 1 })).entries.length === 0
  for (const name of standing) {
    const object = { metadata: { name } }
    await unless(isAlreadyExists, () => create(context, kinds.Namespace, undefined, object))
  }
  if (isNew) await context.store.compact(context.store.revision())
}

/** Runs until the signal aborts. */
export async function keepNamespaces(deps: LifecycleDeps, signal: AbortSignal): Promise<void> {
  const { context, log } = deps
  const retries = createRetries(context.clock, signal)
  while (!signal.aborted) {
    try {
      const { entries, revision } = await context.store.list(prefixOf(kinds.Namespace, undefined), {})
      for (const entry of entries) await attend(deps, entry.key, retries)
      const watch = context.store.watch('/', revision, signal)
      for await (const first of watch) {
        for (let change: Change | undefined = first; change !== undefined; change = watch.take()) {
          const key = namespaceKeyOf(change)
          if (key !== undefined) await attend(deps, key, retries)
        }
      }
    } catch (error) {
      if (signal.aborted) return
      if (isStoreError(error, 'tooOld')) continue
      log.warn('the care for namespaces starts over', { error })
      // A store that cannot answer now may answer later.
      if (isStoreError(error, 'unavailable')) await context.clock.sleep(unavailableMs, signal).catch(() => {})
    }
  }
}

/** The namespace to look at after a change: itself, or the one that lost an object, its default account or its authority. */
function namespaceKeyOf({ type, entry }: Change): string | undefined {
  const info = kindOfKey(entry.key)
  if (info === undefined) return undefined
  if (info.name === 'Namespace') return type === 'removed' ? undefined : entry.key
  if (!info.namespaced) return undefined
  if (type !== 'removed' && !(info.name === 'ConfigMap' && entry.key.endsWith(`/${rootCertificateName}`)))
    return undefined
  const namespace = entry.key.slice(prefixOf(info, undefined).length).split('/', 1)[0] ?? ''
  return prefixOf(kinds.Namespace, undefined) + namespace
}

async function attend(deps: LifecycleDeps, key: string, retries: Retries): Promise<void> {
  const { context, log } = deps
  try {
    const entry = await context.store.get(key)
    if (entry === undefined) return
    const namespace = context.objects.decode(kinds.Namespace, entry) as Namespace
    if (namespace.metadata.deletionTimestamp === undefined) {
      await ensureAccount(context, namespace.metadata.name)
      await ensureRootCertificate(deps, namespace.metadata.name)
    } else await empty(context, namespace)
    retries.succeeded(key)
  } catch (error) {
    log.warn('the care for a namespace failed, will retry', { key, error })
    retries.later(key, () => void attend(deps, key, retries))
  }
}

async function ensureAccount(context: ServerContext, namespace: string): Promise<void> {
  if ((await findObject(context, kinds.ServiceAccount, { namespace, name: 'default' })) !== undefined) return
  const object = { metadata: { name: 'default' } }
  await unless(
    (error) => isAlreadyExists(error) || isNotFound(error) || isForbidden(error),
    () => create(context, kinds.ServiceAccount, namespace, object),
  )
}

/** Programs in pods verify the server by it. Whoever changes it is corrected. */
async function ensureRootCertificate({ context, rootCertificate }: LifecycleDeps, namespace: string): Promise<void> {
  if (rootCertificate === undefined) return
  const ref = { namespace, name: rootCertificateName }
  const data = { 'ca.crt': rootCertificate }
  const found = (await findObject(context, kinds.ConfigMap, ref)) as ConfigMap | undefined
  if (found !== undefined && sameJson(found.data, data)) return
  const annotations = { 'kubernetes.io/description': 'The authority that signed the certificate of this API server.' }
  const info = kinds.ConfigMap
  const change = (current: KubeObject): KubeObject => ({ ...current, data }) as KubeObject
  const request = { info, ref, subresource: undefined, fieldManager: 'root-ca-cert-publisher', dryRun: false, change }
  await unless(
    (error) => isAlreadyExists(error) || isNotFound(error) || isForbidden(error) || isConflict(error),
    () =>
      found === undefined
        ? create(context, info, namespace, { metadata: { name: ref.name, annotations }, data } as KubeObject)
        : changeObject(context, request, keeper),
  )
}

/** Deletes what is there; what waits (finalizers, running pods) wakes us again when it is gone. */
async function empty(context: ServerContext, namespace: Namespace): Promise<void> {
  const { name } = namespace.metadata
  let left = 0
  for (const info of namespaced) {
    const { entries } = await context.store.list(prefixOf(info, name), {})
    for (const entry of entries) {
      const object = context.objects.decode(info, entry)
      if (object.metadata.deletionTimestamp !== undefined) {
        left++
        continue
      }
      await unless(isNotFound, async () => {
        const outcome = await deleteObject(context, info, { namespace: name, name: object.metadata.name }, {})
        if (outcome.kind === 'held') left++
      })
    }
  }
  if (left > 0 || (namespace.spec?.finalizers ?? []).length === 0) return
  const change = (current: KubeObject): KubeObject => ({ ...current, spec: { finalizers: [] } }) as KubeObject
  const request = {
    info: kinds.Namespace,
    ref: { name },
    subresource: 'finalize',
    fieldManager: 'namespace-controller',
    dryRun: false,
    change,
  }
  await unless(
    (error) => isNotFound(error) || isConflict(error),
    () => changeObject(context, request, keeper),
  )
}

function create(
  context: ServerContext,
  info: KindInfo,
  namespace: string | undefined,
  object: KubeObject,
): Promise<unknown> {
  return createObject(context, { info, namespace, object, fieldManager: 'namespace-controller', dryRun: false }, keeper)
}

async function unless(expected: (error: unknown) => boolean, act: () => Promise<unknown>): Promise<void> {
  try {
    await act()
  } catch (error) {
    if (!expected(error)) throw error
  }
}
