// Is the server reached by what it tells? Its certificate is made anew, and its address told anew, when the addresses of the
// machine change or half of the certificate's time is over. The authority stays, so whoever trusts it goes on.
import type { StartedApiServer } from '../apiserver/http/listen.ts'
import type { ServerTls } from '../apiserver/http/server.ts'
import type { Client } from '../client/client.ts'
import type { Clock } from '../clock/clock.ts'
import { advertisedUrl, certificateNames, localUrl, machineAddresses } from '../installation/addresses.ts'
import { loadServerCertificates } from '../installation/certificates.ts'
import { publishClusterInfo } from '../installation/cluster-info.ts'
import { publishService } from '../installation/kubernetes-service.ts'
import type { HawserConfig } from '../installation/config.ts'
import type { Log } from '../telemetry/log.ts'

export interface KeepAddressesDeps {
  readonly config: HawserConfig
  readonly server: Pick<StartedApiServer, 'listening' | 'useCertificate'>
  readonly tls: ServerTls
  readonly client: Client
  readonly clock: Clock
  readonly log: Log
}

/** No event tells of a new address; nobody reaches us by it sooner than he hears of it. */
const lookMs = 60_000

/** Before the server listens: its certificate for what it is about to listen on. */
export function firstCertificates(config: HawserConfig, now: number): Promise<ServerTls> {
  const listen = [config.listen, ...(config.alsoListen ?? [])]
  return loadServerCertificates(config.dataDirectory, certificateNames(factsOf(config, listen)), now)
}

/** The address is told when this resolves; then both are looked at until it is disposed. */
export async function keepAddresses(deps: KeepAddressesDeps): Promise<AsyncDisposable> {
  const { clock, log } = deps
  let shown = deps.tls.certificate
  const look = async () => {
    const facts = factsOf(deps.config, deps.server.listening)
    const tls = await loadServerCertificates(deps.config.dataDirectory, certificateNames(facts), clock.now())
    if (tls.certificate !== shown) {
      deps.server.useCertificate(tls)
      shown = tls.certificate
      log.info('the server has a new certificate', { names: certificateNames(facts) })
    }
    const url = advertisedUrl(facts)
    await publishService(deps.client, url ?? localUrl({ listen: deps.server.listening }))
    await publishClusterInfo(deps.client, url === undefined ? undefined : { server: url, authority: tls.authority })
  }
  await look()
  const stopping = new AbortController()
  const keep = async () => {
    for (;;) {
      await clock.sleep(lookMs, stopping.signal).catch(() => {}) // ended by the signal
      if (stopping.signal.aborted) return
      await look().catch((error: unknown) => log.warn('the addresses of the server could not be told', { error }))
    }
  }
  const running = keep()
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort()
      await running
    },
  }
}

function factsOf(config: HawserConfig, listen: HawserConfig['alsoListen'] = []) {
  return { listen, advertise: config.advertise ?? [], machine: machineAddresses() }
}
