// What stands between a caller and a driver? A socket of our own: it passes each call on, tells what it saw, and can
// fail calls on purpose. The driver and its caller need not know.
import type { JsonValue } from '@bufbuild/protobuf'
import type { Clock } from '../clock/clock.ts'
import { statusFrom } from './codes.ts'
import type { StatusName } from './codes.ts'
import type { ChooseFault, Fault } from './faults.ts'
import { callWithFault, counting } from './faults.ts'
import type { ServedSocket, UnaryAnswerer } from './serve.ts'
import type { Transport } from './service.ts'
import { shownMessage } from './shown-message.ts'

/** One call as the caller saw it, without secrets. */
export interface SeenCall {
  readonly service: string
  readonly rpc: string
  readonly startedAt: number
  readonly ms: number
  readonly request: JsonValue
  /** Absent after an error. */
  readonly answer?: JsonValue
  readonly error?: { readonly status: StatusName; readonly details: string }
  /** What was done to this call on purpose. */
  readonly fault?: Fault
}

interface ProxyDeps {
  readonly clock: Clock
  readonly driver: Transport
  /** Listens on the proxy's socket; called again after the connection was cut. */
  listen(answer: UnaryAnswerer): Promise<ServedSocket>
  readonly choose: ChooseFault
  /** Called when a call has ended. */
  seen(call: SeenCall): void
}

export async function startProxy(deps: ProxyDeps): Promise<AsyncDisposable> {
  const { clock, driver: transport, listen, seen } = deps
  const choose = counting(deps.choose)
  let closed = false
  const answer: UnaryAnswerer = async (method, request, signal) => {
    const fault = choose(method.name)
    const startedAt = clock.now()
    const begun = clock.steady()
    const call = () => ({
      service: method.parent.name,
      rpc: method.name,
      startedAt,
      ms: clock.steady() - begun,
      request: shownMessage(method.input, request),
      ...(fault === undefined ? {} : { fault }),
    })
    try {
      const bytes = await callWithFault({ transport, clock, cut }, fault, method, request, { signal })
      seen({ ...call(), answer: shownMessage(method.output, bytes) })
      return bytes
    } catch (error) {
      const failed = statusFrom(error, method.name)
      seen({ ...call(), error: { status: failed.status, details: failed.details } })
      throw failed
    }
  }
  let served = listen(answer)
  const cut = () => {
    served = served.then((socket) => {
      socket.kill()
      return closed ? socket : listen(answer)
    })
  }
  await served
  return {
    async [Symbol.asyncDispose]() {
      closed = true
      await (await served)[Symbol.asyncDispose]()
    },
  }
}
