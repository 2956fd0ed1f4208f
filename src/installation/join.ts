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

export const hasJoined = (dataDirectory: string) => existsSync(agentKubeconfig(dataDirectory))

/** Whether the server still takes the certificate in the data directory; rejects if the server does not answer. */
export async function isStillKnown(dataDirectory: string, signal: AbortSignal): Promise<boolean> {
  using transport = createHttpTransport({
    ...loadKubeconfig(agentKubeconfig(dataDirectory)),
    userAgent: 'hawser-agent',
  })
  const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
  const body = JSON.stringify({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' })
  return await transport.request({ method: 'POST', path, body }, signal).then(
    () => true,
    (error: unknown) => {
      if (error instanceof StatusError && error.code === 401) return false
      throw error
    },
  )
}

/** Writes the agent's kubeconfig; throws a UsageError that says what to do. */
export async function joinServer(request: JoinRequest, signal: AbortSignal): Promise<void> {
  const { dataDirectory, node, url, token } = request
  if (!existsSync(dataDirectory)) mkdirSync(dataDirectory, { recursive: true, mode: 0o711 })
  const authority = await fetchAuthority(url, request.authorityHash)
  using transport = createHttpTransport({ url, ca: authority, token, userAgent: 'hawser-agent' })
  // Kept until the answer is on disk: if it is lost, the same machine asks again with the same key.
  const pending = join(dataDirectory, pendingName)
  let key = readIfThere(pending)
  if (key === undefined) replaceFile(pending, (key = await createKey()))
  const certificate = await requestCertificate(transport, node, key, signal).catch((error: unknown) => {
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

/** When the certificate in the data directory begins and ends; undefined where the agent has not joined. */
export function certificateTimes(dataDirectory: string): { readonly from: number; readonly until: number } | undefined {
  const text = readIfThere(join(dataDirectory, credentialName))
  if (text === undefined) return undefined
  const { validFrom, validTo } = new X509Certificate(text.slice(text.indexOf('-----BEGIN CERTIFICATE-----')))
  return { from: Date.parse(validFrom), until: Date.parse(validTo) }
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
