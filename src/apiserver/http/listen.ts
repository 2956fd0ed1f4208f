// How is an API server offered to the network? `startApiServer` is what `main` calls: one server, one listener.
import type { ApiServer, ApiServerOptions } from '../start.ts'
import { createApiServer } from '../start.ts'
import type { HttpServer, ListenOptions, ServerTls } from './server.ts'
import { listen } from './server.ts'

export interface StartOptions extends ApiServerOptions {
  readonly listen: Pick<ListenOptions, 'host' | 'port' | 'limits'>
  /** Further addresses of the same server. */
  readonly alsoListen?: readonly Pick<ListenOptions, 'host' | 'port'>[]
  /** Without it the server speaks plain HTTP (tests, private sockets). */
  readonly tls?: ServerTls | undefined
}

export interface StartedApiServer extends Omit<ApiServer, 'close'> {
  readonly url: string
  /** Of every address that it listens on. */
  readonly urls: readonly string[]
  readonly port: number
  /** Every address with the port that was really opened, the first one first. */
  readonly listening: readonly { readonly host: string; readonly port: number }[]
  /** From the next connection on. */
  useCertificate(tls: ServerTls): void
  close(): Promise<void>
}

export async function startApiServer(options: StartOptions): Promise<StartedApiServer> {
  const server = await createApiServer(options)
  const opened: HttpServer[] = []
  const close = async () => {
    await Promise.all(opened.map((each) => each.close()))
    await server.close()
  }
  const addresses = [options.listen, ...(options.alsoListen ?? [])]
  const deps = {
    handle: server.handle,
    tokens: server.tokens,
    onError: (error: unknown) => options.log.warn('a connection failed', { error }),
  }
  try {
    for (const address of addresses) opened.push(await listen(deps, { ...address, tls: options.tls }))
  } catch (error) {
    await close()
    throw error
  }
  const [first] = opened
  return {
    ...server,
    url: first!.url,
    urls: opened.map(({ url }) => url),
    port: first!.port,
    listening: addresses.map(({ host }, index) => ({ host, port: opened[index]!.port })),
    useCertificate: (tls) => opened.forEach((each) => each.useCertificate(tls)),
    close,
  }
}
