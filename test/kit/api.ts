// How do tests get an API server without sockets? The real one on a memory store, with the caller's clock and chance.
import { createApiServer } from '../../src/apiserver/start.ts'
import type { ApiServer, ApiServerOptions } from '../../src/apiserver/start.ts'
import type { Client } from '../../src/client/client.ts'
import { createInProcessClient } from '../../src/client/in-process.ts'
import { createMemoryStore } from '../../src/store/memory-store.ts'
import type { Store } from '../../src/store/store.ts'
import { silentLog } from '../../src/telemetry/log.ts'

export interface TestApi extends AsyncDisposable {
  readonly server: ApiServer
  readonly store: Store
  /** What an administrator's requests do. */
  readonly client: Client
}

export type TestApiOptions = Pick<ApiServerOptions, 'clock' | 'random'> & Partial<ApiServerOptions>

export async function createTestApi(options: TestApiOptions): Promise<TestApi> {
  const store = options.store ?? createMemoryStore()
  const signingKey = new Uint8Array(32).fill(7)
  const server = await createApiServer({ log: silentLog, tokens: [], signingKey, ...options, store })
  return {
    server,
    store,
    client: createInProcessClient(server.api()),
    async [Symbol.asyncDispose]() {
      await server.close()
      await store[Symbol.asyncDispose]()
    },
  }
}
