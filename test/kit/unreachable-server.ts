// An API server that is away now and then: calls fail before they arrive; watches go on.
import type { Client } from '../../src/client/client.ts'

export function shakyClient(client: Client, isAway: () => boolean): Client {
  return new Proxy(client, {
    get(target, name, receiver) {
      const value: unknown = Reflect.get(target, name, receiver)
      if (typeof value !== 'function' || name === 'watch') return value
      return (...parameters: unknown[]) =>
        isAway() ? Promise.reject(new Error('the API server is away')) : value.apply(target, parameters)
    },
  })
}
