// What can stand at the cursor? Types and names of objects, asked of the server; nothing, rather than an error, when it is silent.
import { allKindNames, findKind } from '../api/kind-names.ts'
import { kinds } from '../api/kinds.ts'
import type { KindName } from '../api/kinds.ts'
import { connect } from './connect.ts'
import type { Context } from './context.ts'

type Propose = (this: Context, partial: string) => Promise<readonly string[]>

/** Names of objects of one kind. */
export function namesOf(kind: KindName): Propose {
  return async function (partial) {
    return (await listNames(this, kind)).filter((name) => name.startsWith(partial))
  }
}

/** `pv` → types; `pvc/da` → claims. */
export const typesAndNames: Propose = async function (partial) {
  const cut = partial.indexOf('/')
  if (cut < 0) return allKindNames().filter((name) => name.startsWith(partial))
  const type = partial.slice(0, cut)
  const kind = findKind(type)
  if (kind === undefined) return []
  return (await listNames(this, kind)).map((name) => `${type}/${name}`).filter((word) => word.startsWith(partial))
}

/** A shell waits for the answer: a server that is slow is not asked again. */
const timeoutMs = 1_500

async function listNames(context: Context, kind: KindName): Promise<readonly string[]> {
  try {
    using connection = connect(context, context.typed ?? {})
    const scope = kinds[kind].namespaced ? { namespace: connection.namespace } : {}
    const { items } = await connection.client.list(kind, scope, AbortSignal.timeout(timeoutMs))
    return items.map(({ metadata }) => metadata.name ?? '')
  } catch {
    return [] // no server, no right, no time: the shell proposes nothing
  }
}

/** What the words before the cursor say about the server and the namespace. */
export function connectionTyped(words: readonly string[]): { kubeconfig?: string; namespace?: string } {
  const after = (...flags: readonly string[]) => {
    const at = words.findLastIndex((word) => flags.includes(word))
    return at < 0 || at + 1 >= words.length - 1 ? undefined : words[at + 1]
  }
  const [kubeconfig, namespace] = [after('--kubeconfig'), after('-n', '--namespace')]
  return { ...(kubeconfig === undefined ? {} : { kubeconfig }), ...(namespace === undefined ? {} : { namespace }) }
}

/** The first argument of most commands about one volume. */
export const claimArgument = {
  parse: String,
  placeholder: 'NAME',
  proposeCompletions: namesOf('PersistentVolumeClaim'),
  brief: 'Name of the claim',
}

/** The arguments of commands about objects of any type. */
export const objectArgument = (brief: string) => ({
  parse: String,
  placeholder: 'TYPE/NAME',
  proposeCompletions: typesAndNames,
  brief,
})

export const storageClassFlag = {
  kind: 'parsed',
  parse: String,
  optional: true,
  placeholder: 'NAME',
  proposeCompletions: namesOf('StorageClass'),
  brief: 'Storage class',
} as const
