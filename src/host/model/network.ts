// Who answers probes in the simulator? Whoever the script says; without one, everybody is well.
import type { ByteStream } from '../../streams/byte-stream.ts'
import { createStreamPair } from '../../streams/byte-stream.ts'
import { HostError } from '../host-error.ts'
import type { Connect, HttpGet, Network } from '../network.ts'

export interface ModelNetworkDeps {
  /** An HTTP status, or false for nobody there. */
  answer?(request: Connect & Partial<HttpGet>): number | false
}

export function createModelNetwork({ answer = () => 200 }: ModelNetworkDeps = {}): Network {
  const ask = (request: Connect & Partial<HttpGet>): number => {
    const status = answer(request)
    if (status === false) throw new HostError('ECONNREFUSED', `connect ECONNREFUSED ${request.host}:${request.port}`)
    return status
  }
  return {
    httpGet: async (request) => ({ status: ask(request), body: '' }),
    connect: async (request) => void ask(request),
    /** Who is there says what it hears. */
    async open(request) {
      ask({ ...request, timeoutMs: 0 })
      const [ours, theirs] = createStreamPair()
      void echo(theirs)
      return ours
    },
    grpcHealth: async (request) => (ask(request) === 200 ? 'SERVING' : 'NOT_SERVING'),
  }
}

async function echo(stream: ByteStream): Promise<void> {
  try {
    for await (const bytes of stream.input) await stream.write(bytes)
  } catch {
    // the other side has cut it
  }
  await stream.end()
}
