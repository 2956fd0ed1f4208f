// How does a machine become a node of a server elsewhere? It checks the server's authority by its hash, makes a key of its own
// and asks for a certificate with a bootstrap token. Key and certificate lie in the data directory, and the token is not needed again.
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import type { DetailedPeerCertificate } from 'node:tls'
import { stringify } from 'yaml'
import { StatusError } from '../api/status-error.ts'
import { authorityHash, createKey, createRequest } from '../apiserver/access/certificates.ts'
import { createHttpTransport } from '../client/http.ts'
import type { RestTransport } from '../client/rest.ts'
import { untilAnswered } from '../client/until-answered.ts'
import type { Clock } from '../clock/clock.ts'
import type { Log } from '../telemetry/log.ts'
import { UsageError } from './config.ts'
import { loadKubeconfig } from './kubeconfig.ts'
import { readIfThere, replaceFile } from './private-files.ts'

export interface JoinRequest {
  readonly dataDirectory: string
  readonly node: string
  /** `https://HOST:PORT` */
  readonly url: string
  readonly token: string
  /** `sha256:…` of the authority's public key. */
  readonly authorityHash: string
}

const newCommand = 'on the server: hawser token join-command'
const connectMs = 10_000
const credentialName = 'node-client.pem'
const pendingName = 'node-client.pending-key'

/** The kubeconfig of an agent that has joined. */
export const agentKubeconfig = (dataDirectory: string) => join(dataDirectory, 'agent.kubeconfig')

export interface Joined {
  readonly node: string
  readonly url: string
}

/** As which node of which server the data directory has joined; undefined where it has not. */
export function readJoined(dataDirectory: string): Joined | undefined {
  const kubeconfig = agentKubeconfig(dataDirectory)
  if (!existsSync(kubeconfig)) return undefined
  const { subject } = readCertificate(dataDirectory) ?? {}
  const [, node] = /^CN=system:node:(.+)$/m.exec(subject ?? '') ?? []
  if (node === undefined)
    throw new UsageError(
      `${join(dataDirectory, credentialName)} holds no certificate of a node`,
      `remove ${kubeconfig} and join again; on the server: hawser token join-command --node NAME`,
    )
  return { node, url: loadKubeconfig(kubeconfig).url }
}

/** Whether the server at this address takes the certificate in the data directory; rejects if nobody answers there. */
export async function isKnownAt(dataDirectory: string, url: string, signal: AbortSignal): Promise<boolean> {
  using transport = createHttpTransport({
    ...loadKubeconfig(agentKubeconfig(dataDirectory)),
    url,
    timeoutMs: connectMs,
    userAgent: 'hawser-agent',
  })
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' })
  return await transport.request({ method: 'POST', path, body }, signal).then(
    () => true,
    (error: unknown) => {
      if (error instanceof StatusError && error.code === 401) return false
      if (isOtherAuthority(error)) return false
      throw error instanceof StatusError ? error : explained(error, url)
    },
  )
}

/** The certificate of the server is of an authority that is not the one we joined. */
function isOtherAuthority(error: unknown): boolean {
  const { code = '' } = error as NodeJS.ErrnoException
  return typeof code === 'string' && /^(UNABLE_TO_|SELF_SIGNED|DEPTH_ZERO|CERT_SIGNATURE|CERT_UNTRUSTED)/.test(code)
}

/** From now on the agent uses this address of its server. */
export function useAddress(dataDirectory: string, { node, url }: Joined): void {
  const { ca = '' } = loadKubeconfig(agentKubeconfig(dataDirectory))
  replaceFile(agentKubeconfig(dataDirectory), kubeconfigOf(url, ca, node))
}

/**
 * Writes the agent's kubeconfig; throws a UsageError that says what to do. A server that has shown its authority may go away and come
 * back: it is asked until it answers.
 */
export async function joinServer(
  request: JoinRequest,
  deps: { readonly clock: Clock; readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  const { dataDirectory, node, url, token } = request
  if (!existsSync(dataDirectory)) mkdirSync(dataDirectory, { recursive: true, mode: 0o711 })
  const authority = await fetchAuthority(url, request.authorityHash)
  using transport = createHttpTransport({ url, ca: authority, token, userAgent: 'hawser-agent' })
  // Kept until the answer is on disk: if it is lost, the same machine asks again with the same key.
  const pending = join(dataDirectory, pendingName)
  const key = readIfThere(pending) ?? (await createKey())
  replaceFile(pending, key)
  const ask = () => requestCertificate(transport, node, key, signal)
  const asked = `the certificate of node ${node}`
  const certificate = await untilAnswered(deps, asked, ask, signal).catch((error: unknown) => {
    throw explained(error, url)
  })
  replaceFile(join(dataDirectory, credentialName), `${key.trimEnd()}\n${certificate}`)
  replaceFile(agentKubeconfig(dataDirectory), kubeconfigOf(url, authority, node))
  rmSync(pending, { force: true })
}

/** A new key and a certificate for it, from the server that knows us by the present one. */
export async function renewCertificate(
  transport: RestTransport,
  { dataDirectory, node }: Pick<JoinRequest, 'dataDirectory' | 'node'>,
  signal: AbortSignal,
): Promise<{ readonly cert: string; readonly key: string }> {
  const key = await createKey()
  const cert = await requestCertificate(transport, node, key, signal)
  replaceFile(join(dataDirectory, credentialName), `${key.trimEnd()}\n${cert}`)
  return { cert, key }
}

/** When the certificate in the data directory ends; undefined where the agent has not joined. */
export function certificateEnd(dataDirectory: string): number | undefined {
  const certificate = readCertificate(dataDirectory)
  return certificate && Date.parse(certificate.validTo)
}

function readCertificate(dataDirectory: string): X509Certificate | undefined {
  const text = readIfThere(join(dataDirectory, credentialName)) ?? ''
  const start = text.indexOf('-----BEGIN CERTIFICATE-----')
  return start < 0 ? undefined : new X509Certificate(text.slice(start))
}

async function requestCertificate(
  transport: RestTransport,
  node: string,
  key: string,
  signal: AbortSignal,
): Promise<string> {
  const spec = { node, request: await createRequest(`system:node:${node}`, key) }
  const body = JSON.stringify({ apiVersion: 'hawser.dev/v1', kind: 'NodeCertificate', spec })
  const asked = { method: 'POST', path: '/apis/hawser.dev/v1/nodecertificates', body } as const
  const { status } = (await transport.request(asked, signal)) as { status: { certificate: string } }
  return status.certificate
}

/** What the server shows is believed only if its hash is the one that we were told. */
async function fetchAuthority(url: string, wanted: string): Promise<string> {
  const { hostname, port } = new URL(url)
  const host = hostname.replace(/^\[|\]$/g, '')
  // Nothing is sent on this connection: it only shows the chain, and the next one checks it.
  const socket = connect({
    host,
    port: Number(port || 443),
    rejectUnauthorized: false,
    ...(isIP(host) ? {} : { servername: host }),
  })
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(connectMs) })
    let shown: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
    for (
      const seen = new Set<unknown>();
      shown?.raw !== undefined && !seen.has(shown);
      shown = shown.issuerCertificate
    ) {
      seen.add(shown)
      const pem = new X509Certificate(shown.raw).toString()
      if (authorityHash(pem) === wanted.toLowerCase()) return pem
    }
  } catch (error) {
    throw explained(error, url)
  } finally {
    socket.destroy()
  }
  throw new UsageError(
    `the server at ${url} does not have the authority ${wanted}: it is another server, or somebody is in between`,
    `compare with the command that the server prints: ${newCommand}`,
  )
}

function explained(error: unknown, url: string): unknown {
  if (error instanceof StatusError && error.code === 401)
    return new UsageError(`the server at ${url} does not take the token: it is wrong, or its time is over`, newCommand)
  if (error instanceof StatusError) return new UsageError(`the server at ${url} refuses: ${error.message}`)
  const { code = (error as Error).message } = error as NodeJS.ErrnoException
  if (/ALTNAME/.test(code))
    return new UsageError(
      `the certificate of the server at ${url} is for other names`,
      'start the server with --advertise and the name in this address',
    )
  return Object.assign(new Error(`the server at ${url} cannot be reached: ${code}`), { code, cause: error })
}

function kubeconfigOf(server: string, authority: string, node: string): string {
  const user = `system:node:${node}`
  const data = Buffer.from(authority).toString('base64')
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'hawser', cluster: { server, 'certificate-authority-data': data } }],
    users: [{ name: user, user: { 'client-certificate': credentialName, 'client-key': credentialName } }],
    contexts: [{ name: 'hawser', context: { cluster: 'hawser', user } }],
    'current-context': 'hawser',
  })
}
