// How do kubectl and our own commands find the server? By a kubeconfig file, written here and read here.
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse, stringify } from 'yaml'
import type { HttpConfig } from '../client/http.ts'
import { UsageError } from './config.ts'
import { requireTrustedPath } from './trusted.ts'

export interface Credentials {
  readonly server: string
  readonly certificateAuthority?: string
  readonly token: string
  readonly user?: string
}

export function kubeconfigText(credentials: Credentials): string {
  const { server, certificateAuthority, token, user = 'admin' } = credentials
  const authority = certificateAuthority && {
    'certificate-authority-data': Buffer.from(certificateAuthority).toString('base64'),
  }
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'hawser', cluster: { server, ...authority } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: 'hawser', context: { cluster: 'hawser', user } }],
    'current-context': 'hawser',
  })
}

interface Kubeconfig {
  readonly 'current-context'?: string
  readonly contexts?: readonly {
    readonly name: string
    readonly context: { readonly cluster: string; readonly user: string; readonly namespace?: string }
  }[]
  readonly clusters?: readonly { readonly name: string; readonly cluster: Readonly<Record<string, string | boolean>> }[]
  readonly users?: readonly { readonly name: string; readonly user: Readonly<Record<string, string>> }[]
}

export interface LoadedKubeconfig extends HttpConfig {
  readonly namespace: string
}

/** The connection that a kubeconfig's current context describes. */
export function loadKubeconfig(path: string): LoadedKubeconfig {
  requireTrustedPath(resolve(path), `the kubeconfig ${path}`)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(
      `cannot read the kubeconfig ${path}: ${code}`,
      'start a server with "hawser up", or name its file with --kubeconfig FILE',
    )
  }
  const config = parse(text) as Kubeconfig | null
  const context = config?.contexts?.find(({ name }) => name === config['current-context'])?.context
  const cluster = config?.clusters?.find(({ name }) => name === context?.cluster)?.cluster
  const user = config?.users?.find(({ name }) => name === context?.user)?.user ?? {}
  if (!context || !cluster || typeof cluster['server'] !== 'string')
    throw new UsageError(`the kubeconfig ${path} has no usable current context`)
  const base = dirname(path)
  const pem = (holder: Readonly<Record<string, string | boolean>>, name: string): string | undefined => {
    const data = holder[`${name}-data`]
    if (typeof data === 'string') return Buffer.from(data, 'base64').toString('utf8')
    const file = holder[name]
    if (typeof file !== 'string') return undefined
    requireTrustedPath(resolve(base, file), `the file ${file} that the kubeconfig ${path} names`)
    return readFileSync(resolve(base, file), 'utf8')
  }
  const parts = {
    ca: pem(cluster, 'certificate-authority'),
    cert: pem(user, 'client-certificate'),
    key: pem(user, 'client-key'),
    token: user['token'],
  }
  const known = Object.fromEntries(Object.entries(parts).filter(([, value]) => value !== undefined))
  return { url: cluster['server'], namespace: context.namespace ?? 'default', ...known }
}
