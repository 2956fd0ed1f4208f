// Which objects exist? Lists at a revision, in pages, filtered by selectors; the answer is entries, not yet text.
import type { KindInfo } from '../../api/kinds.ts'
import type { StatusError } from '../../api/status-error.ts'
import { badRequest, expired } from '../../api/status-error.ts'
import type { Entry, Page, Revision } from '../../store/store.ts'
import { isStoreError } from '../../store/store.ts'
import type { ListOptions } from '../../api/verbs.ts'
import type { ServerContext } from '../objects/context.ts'
import { parseRevision, storeFailure, tooLargeRevision } from '../objects/context.ts'
import { jsonProblem } from '../http/json-problem.ts'
import type { StoredObjects } from '../objects/stored-objects.ts'
import { prefixOf } from '../objects/stored-objects.ts'
import { checkVersions } from '../request/options.ts'
import { createPace } from '../request/pace.ts'
import { shown } from '../request/shown.ts'
import type { Selection } from '../objects/selection.ts'
import { selectionOf } from '../objects/selection.ts'

export interface EntryList {
  readonly entries: readonly Entry[]
  readonly revision: Revision
  readonly continue?: string
  readonly remaining?: number
}

export interface ListRequest extends ListOptions {
  readonly info: KindInfo
  /** Only watches may ask for this; said here to be refused. */
  readonly sendInitialEvents?: boolean
}

/** With selectors a page is filled from as many pages of the store as it takes, but never from more than this many entries. */
const scanLimit = 500

export async function listEntries(context: ServerContext, request: ListRequest): Promise<EntryList> {
  const selection = selectionOf(request.info, request)
  const start = startOf(context, request)
  const prefix = prefixOf(request.info, request.namespace)
  // Version 0 is answered from memory, whole: informers that page do not mean it.
  const limit = request.limit && request.limit > 0 && request.resourceVersion !== '0' ? request.limit : undefined
  try {
    if (selection.everything || limit === undefined) {
      const whole = await context.store.list(prefix, pageRequest(start, limit))
      return answer(whole, await chosen(context, request.info, whole.entries, selection), selection, prefix)
    }
    return await filteredPage(context, request.info, prefix, start, limit, selection)
  } catch (error) {
    if (isStoreError(error, 'tooOld')) throw tooOld(context, request)
    throw storeFailure(error)
  }
}

interface Start {
  readonly after?: string
  readonly at?: Revision
}

function startOf(context: ServerContext, request: ListRequest): Start {
  const match = request.resourceVersionMatch
  checkVersions({ watch: false, ...request })
  if (request.continue) {
    if (request.resourceVersion && request.resourceVersion !== '0') {
      throw badRequest('specifying resource version is not allowed when using continue')
    }
    const from = continueFrom(prefixOf(request.info, request.namespace), request.continue)
    if ((from.at ?? 0) > context.store.revision()) throw tooLargeRevision(from.at ?? 0, context.store.revision())
    return from
  }
  const revision = parseRevision(request.resourceVersion, 'invalid resource version: ')
  if (revision === undefined || revision === 0) return {}
  if (revision > context.store.revision()) throw tooLargeRevision(revision, context.store.revision())
  // Kubernetes reads "at least this new" unless told otherwise, but a limit without a match means "exactly".
  const exact = match === 'Exact' || (!match && (request.limit ?? 0) > 0)
  return exact ? { at: revision } : {}
}

async function filteredPage(
  context: ServerContext,
  info: KindInfo,
  prefix: string,
  start: Start,
  limit: number,
  selection: Selection,
): Promise<EntryList> {
  const found: Entry[] = []
  const pace = createPace(context.clock)
  let position: Start = start
  for (;;) {
    const page: Page = await context.store.list(prefix, pageRequest(position, scanLimit))
    for (const entry of page.entries) {
      const rest = pace.rest()
      if (rest) await rest
      if (!matches(context.objects, info, entry, selection)) continue
      if (found.length === limit) {
        const last = found[limit - 1]
        return { entries: found, revision: page.revision, continue: token(page.revision, last?.key ?? '', prefix) }
      }
      found.push(entry)
    }
    const last = page.entries.at(-1)
    if (page.remaining === 0 || last === undefined) return { entries: found, revision: page.revision }
    position = { at: page.revision, after: last.key }
  }
}

function pageRequest(start: Start, limit: number | undefined): { after?: string; at?: Revision; limit?: number } {
  return { ...start, ...(limit === undefined ? {} : { limit }) }
}

function answer(page: Page, entries: readonly Entry[], selection: Selection, prefix: string): EntryList {
  const last = page.entries.at(-1)
  if (page.remaining === 0 || last === undefined) return { entries, revision: page.revision }
  const remaining = selection.everything ? { remaining: page.remaining } : {}
  return { entries, revision: page.revision, continue: token(page.revision, last.key, prefix), ...remaining }
}

async function chosen(
  { clock, objects }: ServerContext,
  info: KindInfo,
  entries: readonly Entry[],
  selection: Selection,
): Promise<readonly Entry[]> {
  if (selection.everything) return entries
  const pace = createPace(clock)
  const found: Entry[] = []
  for (const entry of entries) {
    if (matches(objects, info, entry, selection)) found.push(entry)
    const rest = pace.rest()
    if (rest) await rest
  }
  return found
}

export function matches(objects: StoredObjects, info: KindInfo, entry: Entry, selection: Selection): boolean {
  return selection.key(entry.key) && (selection.keyDecides || selection.object(objects.decode(info, entry)))
}

function token(revision: Revision, lastKey: string, prefix: string): string {
  const text = JSON.stringify({ v: 'meta.k8s.io/v1', rv: revision, start: `${lastKey.slice(prefix.length)}\u0000` })
  return Buffer.from(text).toString('base64url')
}

function continueFrom(prefix: string, text: string): Start {
  const parsed = parseToken(text)
  const start = parsed.start.endsWith('\u0000') ? parsed.start.slice(0, -1) : parsed.start
  const after = prefix + start
  return parsed.rv > 0 ? { after, at: parsed.rv } : { after }
}

function parseToken(text: string): { readonly rv: number; readonly start: string } {
  const bad = /[^A-Za-z0-9_-]/.exec(text)
  const position = bad?.index ?? (text.length % 4 === 1 ? text.length - 1 : undefined)
  const invalid = (why: string): StatusError => badRequest(`invalid continue token: continue key is not valid: ${why}`)
  if (position !== undefined) throw invalid(`illegal base64 data at input byte ${position}`)
  const json = Buffer.from(text, 'base64url').toString()
  let value: unknown
  try {
    value = JSON.parse(json)
  } catch {
    throw invalid(jsonProblem(json))
  }
  const { v = '', rv = 0, start = '' } = (value ?? {}) as { v?: unknown; rv?: unknown; start?: unknown } // checked below
  if (v !== 'meta.k8s.io/v1') throw invalid(`server does not recognize this encoded version ${shown(v)}`)
  if (typeof rv !== 'number' || rv === 0 || !Number.isSafeInteger(rv)) {
    throw invalid('incorrect encoded start resourceVersion (version meta.k8s.io/v1)')
  }
  if (typeof start !== 'string' || start === '') throw invalid('encoded start key empty (version meta.k8s.io/v1)')
  if (start.includes('..')) throw invalid(start)
  return { rv, start }
}

function tooOld(context: ServerContext, request: ListRequest): StatusError {
  if (!request.continue) return expired('The resourceVersion for the provided list is too old.')
  const prefix = prefixOf(request.info, request.namespace)
  const { start } = parseToken(request.continue)
  const inconsistent = token(-1, prefix + start.slice(0, -1), prefix)
  const error = expired(
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without ' +
      'the continue parameter, or use the continue token in this response to retrieve the remainder of the results. ' +
      'Continuing with the provided token results in an inconsistent list - objects that were created, modified, or ' +
      'deleted between the time the first chunk was returned and now may show up in the list.',
  )
  return Object.assign(error, { continueToken: inconsistent })
}
