// How does an object come into being? Name, defaults, admission, server-set fields, validation, field owners, store.
import type { KindInfo } from '../../api/kinds.ts'
import { isDeleting } from '../../api/meta.ts'
import type { KubeObject } from '../../api/meta.ts'
import { alreadyExists, badRequest, generateNameConflict } from '../../api/status-error.ts'
import type { StatusError } from '../../api/status-error.ts'
import { timestamp } from '../../clock/clock.ts'
import type { Entry } from '../../store/store.ts'
import { isStoreError } from '../../store/store.ts'
import { admitCreate } from '../admission/chain.ts'
import type { Call } from '../request/call.ts'
import { createPace } from '../request/pace.ts'
import type { ServerContext } from '../objects/context.ts'
import { requireNamespace, storeFailure } from '../objects/context.ts'
import { omit } from '../../api/members.ts'
import { storeKey } from '../objects/stored-objects.ts'
import { applyDefaults, checkCreate, ownFields, tidyMetadata, warnAbout } from '../objects/rules.ts'
import { prepareForCreate, withoutForeignStatus } from '../objects/strategies.ts'

export interface CreateRequest {
  readonly info: KindInfo
  readonly namespace: string | undefined
  readonly object: KubeObject
  readonly fieldManager: string
  readonly dryRun: boolean
  /** Server-side apply has already said who owns what. */
  readonly managed?: boolean
}

/** What a write left behind; a dry run and an update that ends in removal leave no entry. */
export interface Written {
  readonly object: KubeObject
  readonly entry: Entry | undefined
}

const nameAttempts = 8
/** Kubernetes cuts the prefix so that the whole name fits into a label. */
const generatedPrefixLength = 58

export async function createObject(context: ServerContext, request: CreateRequest, call: Call): Promise<Written> {
  const { info } = request
  const placed = place(info, request.object, request.namespace)
  for (let attempt = 1; ; attempt++) {
    const object = await prepared(context, request, named(context, placed), call)
    const generated = object.metadata.name !== placed.metadata.name
    try {
      return await stored(context, request, object)
    } catch (error) {
      if (!isStoreError(error, 'exists')) throw storeFailure(error)
      if (generated && attempt < nameAttempts) continue
      const { name, generateName } = object.metadata
      throw generateName ? generateNameConflict(info, name) : await takenName(context, info, object)
    }
  }
}

async function prepared(
  context: ServerContext,
  request: CreateRequest,
  object: KubeObject,
  call: Call,
): Promise<KubeObject> {
  const { info } = request
  const now = context.clock.now()
  const writer = { manager: request.fieldManager, now, subresource: undefined }
  const pace = createPace(context.clock)
  const defaulted = applyDefaults(info, tidyMetadata(object))
  // The creator owns what it sent; what admission adds (protection finalizers) belongs to nobody, or the
  // next apply by the creator would take it away.
  const owned = request.managed
    ? defaulted
    : ownFields(context.objects.managedFields, info, undefined, withoutForeignStatus(info, defaulted), writer)
  const rest = pace.rest()
  if (rest) await rest
  const started = prepareForCreate(info, owned, { now: timestamp(now), uid: context.random.uid() })
  const admitted = await admitCreate(context, info, started, call)
  checkCreate(info, admitted)
  warnAbout(info, admitted, call.warn)
  return admitted
}

async function stored(context: ServerContext, request: CreateRequest, object: KubeObject): Promise<Written> {
  const { info } = request
  const { namespace, name } = object.metadata
  const key = storeKey(info, namespace ? { namespace, name } : { name })
  if (request.dryRun) {
    if ((await context.store.get(key)) !== undefined) throw await takenName(context, info, object)
    return { object, entry: undefined }
  }
  const entry = await context.store.create(key, context.objects.encode(info, object))
  return { object: context.objects.remember(info, entry, object), entry }
}

/** Whoever waits for the old object to go is told that it is on its way. */
async function takenName(context: ServerContext, info: KindInfo, { metadata }: KubeObject): Promise<StatusError> {
  const { namespace, name } = metadata
  const entry = await context.store.get(storeKey(info, namespace ? { namespace, name } : { name }))
  return alreadyExists(info, name, entry !== undefined && isDeleting(context.objects.decode(info, entry)))
}

/** Path and body must agree on where the object goes. */
function place(info: KindInfo, object: KubeObject, namespace: string | undefined): KubeObject {
  requireNamespace(info, namespace)
  const said = object.metadata.namespace
  if (info.namespaced && said && said !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  if (object.metadata.resourceVersion) throw badRequest('resourceVersion should not be set on objects to be created')
  const rest = info.namespaced ? object.metadata : omit(object.metadata, ['namespace'])
  const metadata = info.namespaced && namespace ? { ...rest, namespace } : rest
  return { ...object, kind: info.kind, apiVersion: info.apiVersion, metadata }
}

function named(context: ServerContext, object: KubeObject): KubeObject {
  const { name, generateName } = object.metadata
  if (name || !generateName) return object
  const generated = generateName.slice(0, generatedPrefixLength) + context.random.suffix()
  return { ...object, metadata: { ...object.metadata, name: generated } }
}
