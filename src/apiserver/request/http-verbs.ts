// How do HTTP requests become verbs? Parameters and bodies are read here, outcomes become answers; no decisions.
import type { KindInfo } from '../../api/kinds.ts'
import type { Verb } from '../../api/kinds/define-kind.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import { badRequest, isNotFound, methodNotAllowed, notAcceptable, unknownResource } from '../../api/status-error.ts'
import type { Tokens } from '../access/tokens.ts'
import type { Call } from './call.ts'
import type { ListOptions, RemoveOptions } from '../../api/verbs.ts'
import type { OnRepeated } from '../http/codec.ts'
import { decodeBody, MalformedJson } from '../http/codec.ts'
import type { ServerContext } from '../objects/context.ts'
import { parseRevision, readStored, tooLargeRevision } from '../objects/context.ts'
import type { Form } from '../http/negotiate.ts'
import { negotiate, offerOf } from '../http/negotiate.ts'
import type { NodeClient } from './pass-through.ts'
import type { FieldValidation, OptionKind } from './options.ts'
import { parseDryRun, parseFieldManager, parseFieldValidation, parseFlag, parseWhole } from './options.ts'
import { deleteOptions } from './delete-options.ts'
import { checkPatchOptions, patchOf } from './patch-body.ts'
import { createPace } from './pace.ts'
import type { ApiResponse, TableRequest } from '../http/respond.ts'
import { listResponse, objectResponse, uncached, valueResponse } from '../http/respond.ts'
import type { ResourceRoute } from './router.ts'
import { readObject } from '../objects/rules.ts'
import { postSubresource } from '../verbs/subresources.ts'
import { protobufContentType } from '../protobuf/decode.ts'
import { isIncludeObject } from '../table/table.ts'
import { createObject } from '../verbs/create.ts'
import { deleteObject } from '../verbs/delete.ts'
import { listEntries } from '../verbs/list.ts'
import { patchObject } from '../verbs/patch.ts'
import { replaceObject } from '../verbs/update.ts'
import type { WatchRequest } from '../verbs/watch.ts'
import { checkWatch, watchEntries } from '../verbs/watch.ts'
import type { WatchLines } from '../http/watch-stream.ts'
import { watchStream } from '../http/watch-stream.ts'

export interface HttpCall extends Call {
  readonly method: string
  readonly query: URLSearchParams
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Uint8Array
  /** Tells what a creation was called in the end. */
  readonly made: (name: string) => void
}

export interface VerbDeps {
  readonly context: ServerContext
  readonly tokens: Tokens
  readonly lines: WatchLines
  /** How nodes are asked; absent when this server knows none. */
  readonly nodeClient: NodeClient | undefined
}

export async function collectionVerb(deps: VerbDeps, route: ResourceRoute, call: HttpCall): Promise<ApiResponse> {
  switch (call.method) {
    case 'GET':
      return isWatch(route, call) ? watch(deps, route, call) : list(deps, route, call)
    case 'POST':
    case 'DELETE':
      // Across all namespaces one may look, not write.
      if (route.info.namespaced && route.namespace === undefined) throw methodNotAllowed()
      demand(route.info, call.method === 'POST' ? 'create' : 'deletecollection')
      return call.method === 'POST' ? create(deps, route, call) : deleteCollection(deps, route, call)
    default:
      throw methodNotAllowed()
  }
}

export async function objectVerb(
  deps: VerbDeps,
  route: ResourceRoute,
  name: string,
  call: HttpCall,
): Promise<ApiResponse> {
  const { info, subresource } = route
  const ref = refOf(route, name)
  const sub = subresource === undefined ? undefined : info.subresources.find((each) => each.name === subresource)
  if (subresource !== undefined && sub === undefined) throw unknownResource()
  if (sub?.answeredByNode) return passOn(deps, route, ref, sub.name, call)
  switch (call.method) {
    case 'GET':
      demand(sub ?? info, 'get')
      if (route.watch && subresource === undefined) return watch(deps, { ...route, name }, call)
      return get(deps, info, ref, call)
    case 'PUT':
      demand(sub ?? info, 'update')
      return replace(deps, info, ref, subresource, call)
    case 'PATCH':
      demand(sub ?? info, 'patch')
      return patch(deps, info, ref, subresource, call)
    case 'POST':
      if (sub === undefined || !sub.verbs.includes('create')) throw methodNotAllowed()
      return post(deps, info, ref, sub.name, call)
    case 'DELETE':
      if (subresource !== undefined) throw methodNotAllowed()
      demand(info, 'delete')
      return remove(deps, info, ref, call)
    default:
      throw methodNotAllowed()
  }
}

function demand({ verbs }: { readonly verbs: readonly Verb[] }, verb: Verb): void {
  if (!verbs.includes(verb)) throw methodNotAllowed()
}

/** `?watch` is a word about collections; below an object only the old path watches. */
export function isWatch(route: ResourceRoute, call: Pick<HttpCall, 'query'>): boolean {
  return route.watch || (route.name === undefined && parseFlag(call.query.get('watch')))
}

async function get({ context }: VerbDeps, info: KindInfo, ref: ObjectRef, call: HttpCall): Promise<ApiResponse> {
  const form = formOf(info, call)
  const wanted = parseRevision(call.query.get('resourceVersion') ?? '') ?? 0
  if (wanted > context.store.revision()) throw tooLargeRevision(wanted, context.store.revision())
  return objectResponse(
    context.objects,
    200,
    info,
    await readStored(context, info, ref),
    form,
    tableRequest(context, call),
  )
}

async function list({ context }: VerbDeps, route: ResourceRoute, call: HttpCall): Promise<ApiResponse> {
  const form = formOf(route.info, call)
  const sendInitial = call.query.get('sendInitialEvents')
  const asked = { info: route.info, ...listOptions(route, call) }
  const request = sendInitial === null ? asked : { ...asked, sendInitialEvents: parseFlag(sendInitial) }
  return listResponse(context, route.info, await listEntries(context, request), form, tableRequest(context, call))
}

function listOptions({ namespace }: ResourceRoute, { query }: HttpCall): ListOptions {
  const limit = parseWhole(query.get('limit'))
  parseWhole(query.get('timeoutSeconds'))
  const options: Record<string, string> = {}
  for (const name of ['labelSelector', 'fieldSelector', 'continue', 'resourceVersion', 'resourceVersionMatch']) {
    const value = query.get(name)
    if (value !== null && value !== '') options[name] = value
  }
  return { ...options, ...(namespace === undefined ? {} : { namespace }), ...(limit === undefined ? {} : { limit }) }
}

/** Kubernetes ends watches after 30 to 60 minutes, so that clients spread over servers. */
const watchMinimumMs = 30 * 60_000
const watchTypes = ['application/json;stream=watch', `${protobufContentType};stream=watch`]

async function watch(deps: VerbDeps, route: ResourceRoute, call: HttpCall): Promise<ApiResponse> {
  const { context } = deps
  const form = formOf(route.info, call)
  if (form.media === 'yaml') throw notAcceptable(watchTypes)
  const { query } = call
  const named = route.name === undefined ? undefined : `metadata.name=${route.name}`
  const { limit: _limit, continue: token = '', ...options } = listOptions(route, call)
  const seconds = parseWhole(query.get('timeoutSeconds'))
  const sendInitial = query.get('sendInitialEvents')
  const request: WatchRequest = {
    info: route.info,
    ...options,
    ...(named === undefined ? {} : { fieldSelector: named }),
    allowBookmarks: parseFlag(query.get('allowWatchBookmarks')),
    fromNow: parseFlag(query.get('allowWatchBookmarks')),
    ...(sendInitial === null ? {} : { sendInitialEvents: parseFlag(sendInitial) }),
    timeoutMs: seconds ? seconds * 1000 : watchMinimumMs + context.random.below(watchMinimumMs),
  }
  checkWatch({ ...request, continue: token })
  const events = watchEntries(context, request, call.signal)
  const body = watchStream(route.info, events, deps.lines, form, () => tableRequest(context, call))
  const type = form.media === 'protobuf' ? `${protobufContentType};stream=watch` : 'application/json'
  return { status: 200, headers: { 'content-type': type, 'cache-control': uncached }, body }
}

async function create({ context }: VerbDeps, route: ResourceRoute, call: HttpCall): Promise<ApiResponse> {
  const { info, namespace } = route
  const form = formOf(info, call)
  const options = writeOptions('CreateOptions', call)
  const pace = createPace(context.clock)
  const object = sentObject(info, call, options.validation)
  const rest = pace.rest()
  if (rest) await rest
  const written = await createObject(context, { info, namespace, object, ...options }, call)
  call.made(written.object.metadata.name)
  return objectResponse(context.objects, 201, info, written, form, tableRequest(context, call))
}

async function replace(
  { context }: VerbDeps,
  info: KindInfo,
  ref: ObjectRef,
  subresource: string | undefined,
  call: HttpCall,
): Promise<ApiResponse> {
  const form = formOf(info, call)
  const options = writeOptions('UpdateOptions', call)
  const pace = createPace(context.clock)
  const object = sentObject(info, call, options.validation)
  const rest = pace.rest()
  if (rest) await rest
  const written = await replaceObject(context, { info, ref, subresource, object, ...options }, call)
  return objectResponse(context.objects, written.created ? 201 : 200, info, written, form, tableRequest(context, call))
}

async function patch(
  { context }: VerbDeps,
  info: KindInfo,
  ref: ObjectRef,
  subresource: string | undefined,
  call: HttpCall,
): Promise<ApiResponse> {
  const form = formOf(info, call)
  const options = writeOptions('PatchOptions', call)
  const repeated: string[] = []
  const pace = createPace(context.clock)
  const sent = patchOf(call, options.validation === 'Ignore' ? undefined : (what) => repeated.push(what))
  const rest = pace.rest()
  if (rest) await rest
  const forced = call.query.get('force')
  checkPatchOptions(sent, call.query)
  const written = await patchObject(
    context,
    {
      info,
      ref,
      subresource,
      patch: sent,
      force: parseFlag(forced),
      read: (value, current) =>
        sent.type === 'apply'
          ? readObject(info, value, options.validation, call.warn, { partial: true, repeated })
          : readObject(info, value, options.validation, call.warn, { patched: true, known: current, repeated }),
      ...options,
    },
    call,
  )
  return objectResponse(context.objects, written.created ? 201 : 200, info, written, form, tableRequest(context, call))
}

async function post(
  deps: VerbDeps,
  info: KindInfo,
  ref: ObjectRef,
  subresource: string,
  call: HttpCall,
): Promise<ApiResponse> {
  const { dryRun } = writeOptions('CreateOptions', call)
  const body = bodyOf(info, call)
  const answer = await postSubresource(
    deps.context,
    deps.tokens,
    { kind: info.name, ref, subresource, body, dryRun },
    call,
  )
  return valueResponse(201, answer, negotiate(call.headers['accept'], offerOf(answer)))
}

async function remove({ context }: VerbDeps, info: KindInfo, ref: ObjectRef, call: HttpCall): Promise<ApiResponse> {
  const form = formOf(info, call)
  const outcome = await deleteObject(context, info, ref, deleteOptions(call))
  if (outcome.kind === 'held' || info.strategy.deleteAnswersObject) {
    const entry = outcome.kind === 'held' ? outcome.entry : undefined
    return objectResponse(
      context.objects,
      200,
      info,
      { object: outcome.object, entry },
      form,
      tableRequest(context, call),
    )
  }
  const { uid } = outcome.object.metadata
  const details = { name: ref.name, ...(info.group === '' ? {} : { group: info.group }), kind: info.plural, uid }
  return valueResponse(200, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }, form)
}

async function deleteCollection({ context }: VerbDeps, route: ResourceRoute, call: HttpCall): Promise<ApiResponse> {
  const { info } = route
  const form = formOf(info, call)
  const options: RemoveOptions = deleteOptions(call)
  const found = await listEntries(context, { info, ...listOptions(route, call) })
  for (const entry of found.entries) {
    const { namespace, name } = context.objects.decode(info, entry).metadata
    try {
      await deleteObject(context, info, namespace ? { namespace, name } : { name }, options)
    } catch (error) {
      if (!isNotFound(error)) throw error
    }
  }
  return listResponse(context, info, found, form, tableRequest(context, call))
}

/** What only the node of a pod can tell. Loaded when first asked for: a server without nodes never is. */
async function passOn(
  deps: VerbDeps,
  { rest = '/' }: ResourceRoute,
  ref: ObjectRef,
  subresource: string,
  call: HttpCall,
): Promise<ApiResponse> {
  const { nodeProxy, podLogs, podStream } = await import('./pass-through.ts')
  if (subresource === 'proxy') return nodeProxy(deps, ref.name, rest, call)
  if (subresource !== 'log') return podStream(deps, ref, subresource, call)
  if (call.method !== 'GET') throw methodNotAllowed()
  return podLogs(deps, ref, call)
}

function writeOptions(kind: OptionKind, { query, headers, user }: HttpCall) {
  const manager = parseFieldManager(kind, query.get('fieldManager'))
  return {
    dryRun: parseDryRun(kind, query.getAll('dryRun')),
    validation: parseFieldValidation(kind, query.get('fieldValidation')) satisfies FieldValidation,
    // Without a name of its own a client is called like its user agent.
    fieldManager: manager ?? ((headers['user-agent'] ?? '').split('/', 1)[0] || user.name || 'unknown').slice(0, 128),
  }
}

function sentObject(info: KindInfo, call: HttpCall, validation: FieldValidation): KubeObject {
  const repeated: string[] = []
  const value = bodyOf(info, call, validation === 'Ignore' ? undefined : (what) => repeated.push(what))
  return readObject(info, value, validation, call.warn, { repeated })
}

function bodyOf(info: KindInfo, { headers, body }: HttpCall, onRepeated?: OnRepeated): unknown {
  try {
    return decodeBody(headers['content-type'], body, onRepeated)
  } catch (error) {
    if (!(error instanceof MalformedJson)) throw error
    const why = `couldn't get version/kind; json parse error: ${error.message} (${error.text})`
    throw badRequest(`the object provided is unrecognized (must be of type ${info.kind}): ${why}`)
  }
}

function refOf({ info, namespace }: ResourceRoute, name: string): ObjectRef {
  return info.namespaced && namespace ? { namespace, name } : { name }
}

function formOf(info: KindInfo, { headers }: HttpCall): Form {
  return negotiate(headers['accept'], offerOf(info))
}

function tableRequest(context: ServerContext, { query }: HttpCall): TableRequest {
  const asked = query.get('includeObject') || 'Metadata'
  if (!isIncludeObject(asked)) {
    const why = `Invalid value: ${JSON.stringify(asked)}: must be 'Metadata', 'Object', 'None', or empty`
    throw badRequest(`Unable to convert to Table as requested: includeObject: ${why}`)
  }
  return { now: context.clock.now(), includeObject: asked }
}
