// With which server does an agent work, and as whom? As the node that it has joined as, or with a kubeconfig.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { UsageError } from '../installation/config.ts'
import { requireTrustedPath } from '../installation/trusted.ts'
import { agentKubeconfig, hasJoined, isStillKnown, joinServer } from '../installation/join.ts'
import type { Context } from './context.ts'

export interface JoinFlags {
  readonly join?: string
  readonly token?: string
  readonly tokenFile?: string
  readonly caHash?: string
  readonly kubeconfig?: string
}

const text = { kind: 'parsed', parse: String, optional: true } as const
const tokenVariable = 'HAWSER_JOIN_TOKEN'

export const joinFlags = {
  join: { ...text, placeholder: 'URL', brief: 'Join the server there; needed once' },
  token: {
    ...text,
    placeholder: 'TOKEN',
    brief: `Bootstrap token; seen in the list of processes: better $${tokenVariable}`,
  },
  tokenFile: { ...text, placeholder: 'FILE', brief: 'File with the bootstrap token; - is the standard input' },
  caHash: { ...text, placeholder: 'sha256:HASH', brief: "Hash of the public key of the server's authority" },
  kubeconfig: {
    ...text,
    placeholder: 'FILE',
    brief: 'Kubeconfig of the server, instead of joining (default: $KUBECONFIG)',
  },
} as const

/** The kubeconfig to use; joins first, where that is wanted and not done yet. */
export async function kubeconfigOfAgent(
  context: Context,
  flags: JoinFlags,
  where: { readonly dataDirectory: string; readonly node: string },
): Promise<string> {
  const { env } = context.process
  const { dataDirectory, node } = where
  const token = flags.join === undefined ? undefined : readToken(flags, env)
  // Neither pods nor the driver's process are to see it.
  delete process.env[tokenVariable]
  if (flags.join !== undefined) {
    const { signal } = new AbortController()
    if (hasJoined(dataDirectory) && (token === undefined || (await isStillKnown(dataDirectory, signal))))
      return agentKubeconfig(dataDirectory)
    if (token === undefined || flags.caHash === undefined)
      throw new UsageError(
        '--join needs a token and --ca-hash',
        'the whole command, on the server: hawser token join-command',
      )
    await joinServer({ dataDirectory, node, url: checkedUrl(flags.join), token, authorityHash: flags.caHash }, signal)
    context.note(`node ${node} has joined ${flags.join}`)
    return agentKubeconfig(dataDirectory)
  }
  if (flags.kubeconfig !== undefined) return flags.kubeconfig
  if (hasJoined(dataDirectory)) return agentKubeconfig(dataDirectory)
  return env['HAWSER_KUBECONFIG'] ?? env['KUBECONFIG'] ?? join(dataDirectory, 'kubeconfig')
}

function readToken(flags: JoinFlags, env: Readonly<Partial<Record<string, string>>>): string | undefined {
  if (flags.token !== undefined) return flags.token.trim()
  if (flags.tokenFile === undefined) return env[tokenVariable]?.trim()
  if (flags.tokenFile !== '-') requireTrustedPath(resolve(flags.tokenFile), `the token file ${flags.tokenFile}`)
  try {
    return readFileSync(flags.tokenFile === '-' ? 0 : flags.tokenFile, 'utf8').trim()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new UsageError(`cannot read the token from ${flags.tokenFile}: ${code}`)
  }
}

function checkedUrl(url: string): string {
  if (URL.canParse(url) && /^https:\/\/[^/]+\/?$/.test(url)) return url.replace(/\/$/, '')
  throw new UsageError(`--join takes https://HOST:PORT, not "${url}"`, 'on the server: hawser token join-command')
}
