// How do parts in the server's own process talk to it? By a function call: no text, no sockets, frozen objects shared.
// The simulator and tests may slow calls down, refuse them, or lose their answers.
import type { KindName } from '../api/kinds.ts'
import type { ObjectRef } from '../api/meta.ts'
import { refOf } from '../api/meta.ts'
import type { Clock } from '../clock/clock.ts'
import type { Client } from './client.ts'

export interface CallInfo {
  readonly verb: 'get' | 'list' | 'create' | 'update' | 'patch' | 'remove' | 'post' | 'watch'
  readonly kind: KindName
  readonly ref?: ObjectRef
  readonly subresource?: string
}

/** What may go wrong between a part and the server. Each hook may throw; what it throws is what the caller sees. */
export interface Wire {
  readonly clock: Clock
  /** Milliseconds until the call reaches the server. */
  delayMs?(call: CallInfo): number
  /** Called before the server sees the call: throwing means it never happened. */
  before?(call: CallInfo): void
  /** Called after the server has done it: throwing means the answer was lost. */
  after?(call: CallInfo): void
  /** Called for every event of a watch: throwing cuts the watch. */
  onWatchEvent?(call: CallInfo): void
}

const never = new AbortController().signal

/** The server's own functions are the client. */
export function createInProcessClient(server: Client, wire?: Wire): Client {
  return wire === undefined ? server : overWire(server, wire)
}

function overWire(server: Client, wire: Wire): Client {
  const call = async <T>(info: CallInfo, signal: AbortSignal, run: () => Promise<T>): Promise<T> => {
    signal.throwIfAborted()
    const delayMs = wire.delayMs?.(info) ?? 0
    if (delayMs > 0) await wire.clock.sleep(delayMs, signal)
    wire.before?.(info)
    const answer = await run()
    wire.after?.(info)
    return answer
  }
  return {
    get: (kind, ref, signal = never) => call({ verb: 'get', kind, ref }, signal, () => server.get(kind, ref, signal)),
    list: (kind, options, signal = never) =>
      call({ verb: 'list', kind }, signal, () => server.list(kind, options, signal)),
    create: (kind, object, options, signal = never) =>
      call({ verb: 'create', kind, ref: refOf(object) }, signal, () => server.create(kind, object, options, signal)),
    update: (kind, object, options, signal = never) =>
      call({ verb: 'update', kind, ref: refOf(object), ...subresourceOf(options) }, signal, () =>
        server.update(kind, object, options, signal),
      ),
    patch: (kind, ref, patch, options, signal = never) =>
      call({ verb: 'patch', kind, ref, ...subresourceOf(options) }, signal, () =>
        server.patch(kind, ref, patch, options, signal),
      ),
    remove: (kind, ref, options, signal = never) =>
      call({ verb: 'remove', kind, ref }, signal, () => server.remove(kind, ref, options, signal)),
    post: (kind, ref, subresource, body, signal = never) =>
      call({ verb: 'post', kind, ref, subresource }, signal, () => server.post(kind, ref, subresource, body, signal)),
    async *watch(kind, options, signal) {
      const info: CallInfo = { verb: 'watch', kind }
      wire.before?.(info)
      for await (const event of server.watch(kind, options, signal)) {
        const delayMs = wire.delayMs?.(info) ?? 0
        if (delayMs > 0) await wire.clock.sleep(delayMs, signal)
        wire.onWatchEvent?.(info)
        yield event
      }
    },
  }
}

function subresourceOf(options: { readonly subresource?: string } | undefined) {
  return options?.subresource === undefined ? {} : { subresource: options.subresource }
}
