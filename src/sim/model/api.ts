// Which API does a simulated cluster have? The real one, on the given store, without sockets.
import { createTokens } from '../../apiserver/access/tokens.ts'
import { createObjectApi } from '../../apiserver/objects/object-api.ts'
import { createStoredObjects } from '../../apiserver/objects/stored-objects.ts'
import type { Client } from '../../client/client.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Random } from '../../clock/random.ts'
import type { Store } from '../../store/store.ts'

export async function createModelApi(store: Store, clock: Clock, random: Random): Promise<Client> {
  const context = { store, clock, random, objects: createStoredObjects() }
  const tokens = createTokens(context, [], random.bytes(32))
  const api = createObjectApi({ context, tokens }, { name: 'simulator', groups: ['system:masters'] })
  await api.create('Namespace', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } })
  return api
}
