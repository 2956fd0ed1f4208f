// Does this object exist on the server, and what does it say? A live read that answers undefined for NotFound.
import type { KindMap, KindName } from '../api/kinds.ts'
import type { ObjectRef } from '../api/meta.ts'
import { ignoreNotFound } from '../api/status-error.ts'
import type { Client } from './client.ts'

export async function getIfExists<K extends KindName>(
  client: Pick<Client, 'get'>,
  kind: K,
  ref: ObjectRef,
  signal?: AbortSignal,
): Promise<KindMap[K] | undefined> {
  return client.get(kind, ref, signal).catch(ignoreNotFound)
}
