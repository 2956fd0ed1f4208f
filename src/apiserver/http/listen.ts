// How is an API server offered to the network? `startApiServer` is what `main` calls: one server, one listener.
import type { ApiServer, ApiServerOptions } from '../start.ts'
import { createApiServer } from '../start.ts'
import type { HttpServer, ListenOptions, ServerTls } from './server.ts'
import { listen } from './server.ts'

export interface StartOptions extends ApiServerOptions {
  readonly listen: Pick<ListenOptions, 'host' | 'port' | 'limits'>
  /** Without it the server speaks plain HTTP (tests, private sockets). */
  readonly tls?: ServerTls | undefined
}

export interface StartedApiServer extends Omit<ApiServer, 'close'> {
  readonly url: string
  readonly port: number
  close(): Promise<void>
}

export async function startApiServer(options: StartOptions): Promise<StartedApiServer> {
  const server = await createApiServer(options)
  let http: HttpServer
  try {
    http = await listen(
      {
        handle: server.handle,
        tokens: server.tokens,
        onError: (error) => options.log.warn('a connection failed', { error }),
      },
      { ...options.listen, tls: options.tls },
    )
  } catch (error) {
    await server.close()
    throw error
  }
  return {
    ...server,
    url: http.url,
    port: http.port,
    async close() {
      await http.close()
      await server.close()
    },
  }
}
