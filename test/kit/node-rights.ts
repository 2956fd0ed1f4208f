// Is the role node enough for an agent? In tests agents run with its rights: what the role may not do fails as it would over
// HTTP, and is listed.
import { kinds } from '../../src/api/kinds.ts'
import type { KindName } from '../../src/api/kinds.ts'
import { forbidden } from '../../src/api/status-error.ts'
import type { Attributes } from '../../src/apiserver/access/roles.ts'
import { authorize } from '../../src/apiserver/access/roles.ts'
import { createStoredObjects } from '../../src/apiserver/objects/stored-objects.ts'
import type { Client } from '../../src/client/client.ts'
import { createInProcessClient } from '../../src/client/in-process.ts'
import type { Clock } from '../../src/clock/clock.ts'
import type { Random } from '../../src/clock/random.ts'
import type { TestApi } from './api.ts'

export interface NodeRightsDeps extends Pick<TestApi, 'server' | 'store'> {
  readonly clock: Clock
  readonly random: Random
  /** What nodes were refused is added here. */
  readonly refused: string[]
}

type Asked = Partial<Pick<Attributes, 'subresource' | 'namespace' | 'name' | 'fieldSelector' | 'object'>>

export function withNodeRights({ server, store, clock, random, refused }: NodeRightsDeps, node: string): Client {
  const user = { name: `system:node:${node}`, groups: ['system:nodes', 'system:authenticated'] }
  const context = { store, clock, random, objects: createStoredObjects(), mountsTokens: false }
  const client = createInProcessClient(server.api(user))
  const check = async (verb: Attributes['verb'], kind: KindName, asked: Asked): Promise<void> => {
    const { group, plural: resource } = kinds[kind]
    const all = { subresource: undefined, namespace: undefined, name: undefined, fieldSelector: undefined, ...asked }
    const { allowed, reason } = await authorize(context, user, { verb, group, resource, ...all })
    if (allowed) return
    refused.push(`${verb} ${resource} ${asked.fieldSelector ?? asked.name ?? ''}: ${reason}`)
    throw forbidden({ group, plural: resource }, asked.name ?? '', `${verb}: ${reason}`)
  }
  const may = async <T>(verb: Attributes['verb'], kind: KindName, asked: Asked, act: () => Promise<T>): Promise<T> => {
    await check(verb, kind, asked)
    return act()
  }
  return {
    get: (kind, ref, ...rest) => may('get', kind, ref, () => client.get(kind, ref, ...rest)),
    list: (kind, options, ...rest) => may('list', kind, options ?? {}, () => client.list(kind, options, ...rest)),
    create: (kind, object, ...rest) =>
      may('create', kind, { ...object.metadata, object }, () => client.create(kind, object, ...rest)),
    update: (kind, object, options, ...rest) =>
      may('update', kind, { ...object.metadata, ...options, object }, () =>
        client.update(kind, object, options, ...rest),
      ),
    patch: (kind, ref, patch, options, ...rest) =>
      may('patch', kind, { ...ref, ...options }, () => client.patch(kind, ref, patch, options, ...rest)),
    remove: (kind, ref, ...rest) => may('delete', kind, ref, () => client.remove(kind, ref, ...rest)),
    post: (kind, ref, subresource, body, ...rest) =>
      may('create', kind, { ...ref, subresource, object: body }, () =>
        client.post(kind, ref, subresource, body, ...rest),
      ),
    async *watch(kind, options, ...rest) {
      await check('watch', kind, options ?? {})
      yield* client.watch(kind, options, ...rest)
    },
  }
}
