// How is an object changed by description? JSON patch, merge patch, strategic merge patch and server-side apply.
import { shown } from '../request/shown.ts'
import type { KindInfo } from '../../api/kinds.ts'
import type { KubeObject, ObjectRef } from '../../api/meta.ts'
import { badRequest, isAlreadyExists, isNotFound, requestEntityTooLarge } from '../../api/status-error.ts'
import type { Call } from '../request/call.ts'
import type { Patch } from '../../api/verbs.ts'
import type { ServerContext } from '../objects/context.ts'
import { readObject } from '../objects/rules.ts'
import { valuesLimit } from '../http/codec.ts'
import { countValues } from '../patch/json.ts'
import { applyServerSide, checkAppliedType } from '../patch/apply.ts'
import { applyJsonPatch } from '../patch/json-patch.ts'
import { applyMergePatch } from '../patch/merge-patch.ts'
import { applyStrategicMergePatch } from '../patch/strategic-merge.ts'
import type { Written } from './create.ts'
import { createObject } from './create.ts'
import { changeObject, nameless } from './update.ts'

export interface PatchRequest {
  readonly info: KindInfo
  readonly ref: ObjectRef
  readonly subresource: string | undefined
  readonly patch: Patch
  readonly fieldManager: string
  readonly force: boolean
  readonly dryRun: boolean
  /** Checks what the patch made of the object, or the applied configuration: unknown fields, wrong types. */
  read(value: unknown, current: KubeObject | undefined): KubeObject
}

export interface Patched extends Written {
  readonly created: boolean
}

export async function patchObject(context: ServerContext, request: PatchRequest, call: Call): Promise<Patched> {
  if (request.patch.type === 'apply') return apply(context, request, call)
  const change = (current: KubeObject): KubeObject => {
    const wanted = request.read(patched(request, current), current)
    if (!wanted.metadata.name) throw nameless(request.ref)
    checkGrowth(wanted, current)
    return wanted
  }
  const written = await changeObject(context, { ...request, change, patched: true }, call)
  return { ...written, created: false }
}

/** Many small patches do not make what one request may not. What is larger from before may shrink, or stay. */
function checkGrowth(wanted: KubeObject, current: KubeObject): void {
  const values = valuesIn(wanted)
  if (values > valuesLimit && values > valuesIn(current))
    throw requestEntityTooLarge(`limit is ${valuesLimit} fields and items of lists in one object`)
}

function valuesIn({ metadata: { managedFields: _, ...metadata }, ...rest }: KubeObject): number {
  return countValues(rest) + countValues(metadata)
}

function patched({ info, patch }: PatchRequest, current: KubeObject): unknown {
  switch (patch.type) {
    case 'json':
      return applyJsonPatch(current, patch.body)
    case 'merge':
      return applyMergePatch(info.name, current, patch.body)
    case 'strategic':
      return applyStrategicMergePatch(info.name, current, patch.body)
    case 'apply':
      throw badRequest('apply is no patch of this kind')
    default:
      return patch satisfies never
  }
}

/** An object that does not exist is created; two appliers racing to create it meet as an update. */
async function apply(context: ServerContext, request: PatchRequest, call: Call): Promise<Patched> {
  const { info, ref, subresource, fieldManager, force } = request
  checkAppliedType(info, request.patch.body)
  const config = request.read(request.patch.body, undefined)
  const { uid } = checkApplied(config, ref)
  const owned = (live: KubeObject | undefined): KubeObject => {
    const now = context.clock.now()
    const { object } = applyServerSide({
      kind: info.name,
      live,
      config,
      manager: fieldManager,
      force,
      subresource,
      now,
    })
    if (live !== undefined) checkGrowth(object, live)
    // What was applied may lack what every object of the kind has; checks rely on it.
    return object === live ? object : readObject(info, object, 'Ignore', () => {}, { known: live })
  }
  for (;;) {
    try {
      const written = await changeObject(context, { ...request, change: owned, managed: true, patched: true }, call)
      return { ...written, created: false }
    } catch (error) {
      if (!isNotFound(error) || subresource !== undefined || uid) throw error
    }
    try {
      const object = owned(undefined)
      const { namespace } = ref
      const written = await createObject(context, { ...request, namespace, object, managed: true }, call)
      return { ...written, created: true }
    } catch (error) {
      if (!isAlreadyExists(error)) throw error
    }
  }
}

function checkApplied(config: unknown, ref: ObjectRef): { readonly uid: unknown } {
  const { metadata } = (config ?? {}) as { metadata?: Record<string, unknown> | null } // looked at, not trusted
  const { name, namespace, uid } = metadata ?? {}
  if (name && name !== ref.name) {
    throw badRequest(`the name of the object (${shown(name)}) does not match the name on the URL (${ref.name})`)
  }
  if (namespace && ref.namespace && namespace !== ref.namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request')
  }
  return { uid }
}
