// What stands between a caller and a driver? A socket of our own: it passes each call on, tells what it saw, and can
// fail calls on purpose. The driver and its caller need not know.
import type { Clock } from '../clock/clock.ts'
import type { ChooseFault } from './faults.ts'
import type { SeenCall } from './observed.ts'
import { observed } from './observed.ts'
import type { ServedSocket, UnaryAnswerer } from './serve.ts'
import type { Transport } from './service.ts'

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
  const { listen } = deps
  let closed = false
  const transport = observed({ ...deps, transport: deps.driver, cut: () => cut() })
  const answer: UnaryAnswerer = (method, request, signal) => transport(method, request, { signal })
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
