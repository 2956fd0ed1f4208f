// Which keys does a server on etcd use? Those that lie beside the objects, so that every server of the cluster accepts the same
// tokens and certificates. The first server brings its own; a directory that nobody has used takes what it finds; other keys are
// refused. They are no objects: the API does not show them.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseJsonObject } from '../api/json.ts'
import { ensureAuthority } from './certificates.ts'
import { UsageError } from './config.ts'
import { ensureTokens } from './data-directory.ts'
import { otherDirectory } from './identity.ts'
import { directoryRecordName } from './outer-root.ts'
import { readIfThere, writePrivate } from './private-files.ts'
import { readDirectoryRecord } from './records.ts'

/** What all servers of a cluster share. The authority's certificate may be renewed; its key stays. */
const keyNames = ['admin.token', 'token.key', 'ca.key'] as const
const sharedNames = [...keyNames, 'ca.crt'] as const
/** Made with the keys above, and made anew without them. */
const derivedNames = ['admin.crt', 'admin.key', 'server.crt', 'server.key', 'server.stamp']

export type Keys = Readonly<Record<(typeof sharedNames)[number], string>>

/** Where the keys lie beside the objects. */
export interface KeyPlace {
  /** In words. */
  readonly where: string
  /** Puts the text there unless there is one already; answers what is there. */
  keepKeys(text: string): Promise<string>
  readKeys(): Promise<string | undefined>
}

export type KeyDecision =
  | { readonly kind: 'share' }
  | { readonly kind: 'proceed' }
  | { readonly kind: 'take'; readonly keys: Keys }
  | { readonly kind: 'refuse'; readonly names: readonly string[] }

/** Pure. `isUsed`: a durable cluster has worked with the keys of the directory. */
export function decideKeys(own: Partial<Keys>, shared: Keys | undefined, isUsed: boolean): KeyDecision {
  if (shared === undefined) return { kind: 'share' }
  const missing = keyNames.filter((name) => own[name] === undefined)
  const other = keyNames.filter((name) => own[name] !== undefined && own[name].trim() !== shared[name].trim())
  if (other.length > 0 && isUsed) return { kind: 'refuse', names: other }
  return other.length > 0 || missing.length > 0 ? { kind: 'take', keys: shared } : { kind: 'proceed' }
}

/** The directory has the keys of the cluster when this resolves; throws a UsageError where it has others. */
export async function shareKeys(directory: string, place: KeyPlace, now: number): Promise<void> {
  const found = await place.readKeys()
  const decision = decideKeys(
    readOwn(directory),
    found === undefined ? undefined : parse(found, place),
    isUsed(directory),
  )
  switch (decision.kind) {
    case 'proceed':
      return
    case 'share': {
      ensureTokens(directory)
      await ensureAuthority(directory, now)
      const mine = JSON.stringify({ format, keys: readOwn(directory) })
      // Another server may have been faster: then its keys count.
      if ((await place.keepKeys(mine)) !== mine) await shareKeys(directory, place, now)
      return
    }
    case 'take':
      return take(directory, decision.keys)
    case 'refuse':
      throw new UsageError(
        `the keys in ${directory} (${decision.names.join(', ')}) are not those of the cluster in ${place.where}: ` +
          'its agents and users would not accept this server',
        `correct --etcd-servers and --etcd-prefix, or ${otherDirectory}`,
      )
    default:
      return decision satisfies never
  }
}

const format = 1

function take(directory: string, keys: Keys): void {
  for (const name of derivedNames) rmSync(join(directory, name), { force: true })
  for (const name of sharedNames) writePrivate(join(directory, name), keys[name])
}

function readOwn(directory: string): Partial<Keys> {
  return Object.fromEntries(
    sharedNames.flatMap((name) => {
      const text = readIfThere(join(directory, name))
      return text === undefined ? [] : [[name, text]]
    }),
  )
}

function isUsed(directory: string): boolean {
  const found = readDirectoryRecord(join(directory, directoryRecordName))
  return found.kind === 'read' && found.record.store === 'durable'
}

function parse(text: string, { where }: KeyPlace): Keys {
  const fields = parseJsonObject(text)
  const keys = (fields?.['keys'] ?? {}) as Partial<Keys> // checked here
  if (typeof fields?.['format'] === 'number' && fields['format'] > format)
    throw new UsageError(`the keys in ${where} were written by a newer Hawser (format ${fields['format']})`)
  if (sharedNames.every((name) => typeof keys[name] === 'string' && keys[name] !== '')) return keys as Keys
  // The text itself is not shown: it holds secrets.
  throw new UsageError(
    `the keys in ${where} cannot be read`,
    'delete them in etcd: the next server to start puts its own there',
  )
}
