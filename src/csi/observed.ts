// What was said between a caller and a driver? Each call as the caller saw it, without secrets; some may fail on purpose.
import type { JsonValue } from '@bufbuild/protobuf'
import type { Clock } from '../clock/clock.ts'
import { statusFrom } from './codes.ts'
import type { StatusName } from './codes.ts'
import type { ChooseFault, Fault } from './faults.ts'
import { callWithFault, counting } from './faults.ts'
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

interface ObservedDeps {
  readonly transport: Transport
  readonly clock: Clock
  readonly choose: ChooseFault
  /** Called when a call has ended. */
  seen(call: SeenCall): void
  /** Breaks the connection, where there is one. */
  cut?(): void
}

export function observed(deps: ObservedDeps): Transport {
  const { transport, clock, seen } = deps
  const choose = counting(deps.choose)
  const cut = () => deps.cut?.()
  return async (method, request, options) => {
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
      const bytes = await callWithFault({ transport, clock, cut }, fault, method, request, options)
      seen({ ...call(), answer: shownMessage(method.output, bytes) })
      return bytes
    } catch (error) {
      const failed = statusFrom(error, method.name)
      seen({ ...call(), error: { status: failed.status, details: failed.details } })
      throw failed
    }
  }
}
