// Is the role controller enough for the controllers and the CSI jobs? In tests they run with its rights: what the role may not
// do fails as it would over HTTP.
import { kinds } from '../../src/api/kinds.ts'
import type { KindName } from '../../src/api/kinds.ts'
import type { Verb } from '../../src/api/kinds/define-kind.ts'
import { forbidden } from '../../src/api/status-error.ts'
import { grantOf } from '../../src/apiserver/access/grants.ts'
import type { Client } from '../../src/client/client.ts'

export function withControllerRights(client: Client): Client {
  const may = <T>(verb: Verb, kind: KindName, subresource: string | undefined, act: () => Promise<T>): Promise<T> => {
    const refusal = refusalOf(verb, kind, subresource)
    return refusal ? Promise.reject(refusal) : act()
  }
  return {
    get: (kind, ...rest) => may('get', kind, undefined, () => client.get(kind, ...rest)),
    list: (kind, ...rest) => may('list', kind, undefined, () => client.list(kind, ...rest)),
    create: (kind, ...rest) => may('create', kind, undefined, () => client.create(kind, ...rest)),
    update: (kind, object, options, ...rest) =>
      may('update', kind, options?.subresource, () => client.update(kind, object, options, ...rest)),
    patch: (kind, ref, patch, options, ...rest) =>
      may('patch', kind, options?.subresource, () => client.patch(kind, ref, patch, options, ...rest)),
    remove: (kind, ...rest) => may('delete', kind, undefined, () => client.remove(kind, ...rest)),
    post: (kind, ref, subresource, ...rest) =>
      may('create', kind, subresource, () => client.post(kind, ref, subresource, ...rest)),
    watch(kind, ...rest) {
      const refusal = refusalOf('watch', kind, undefined)
      if (refusal) throw refusal
      return client.watch(kind, ...rest)
    },
  }
}

function refusalOf(verb: Verb, kind: KindName, subresource: string | undefined): Error | undefined {
  // The recycler's pods read and empty a volume: the role must not make pods, so only the server's own process recycles.
  if (kind === 'Pod' && subresource === undefined && (verb === 'create' || verb === 'delete')) return undefined
  const { group, plural: resource } = kinds[kind]
  const grant = grantOf('controller', { group, resource, subresource, verb })
  return grant.to === 'nothing' ? forbidden({ group, plural: resource }, '', `${verb}: ${grant.reason}`) : undefined
}
