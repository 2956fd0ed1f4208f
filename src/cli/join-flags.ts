// With which server does an agent work, and as whom? As the node that it has joined as, or with a kubeconfig.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { UsageError } from '../installation/config.ts'
import { requireTrustedPath } from '../installation/trusted.ts'
import { createSystemClock } from '../clock/system-clock.ts'
import type { Log } from '../telemetry/log.ts'
import { isAway } from '../client/until-answered.ts'
import type { Joined } from '../installation/join.ts'
import { agentKubeconfig, isKnownAt, joinServer, readJoined, useAddress } from '../installation/join.ts'
import type { Context } from './context.ts'
import { Unreachable } from './errors.ts'

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
  join: { ...text, placeholder: 'URL', brief: 'Join the server there; needed once, and when its address changes' },
  token: {
    ...text,
    placeholder: 'TOKEN',
    brief: `Bootstrap token. Other users see it in the list of processes; prefer $${tokenVariable}`,
  },
  tokenFile: { ...text, placeholder: 'FILE', brief: 'File with the bootstrap token; - is the standard input' },
  caHash: { ...text, placeholder: 'sha256:HASH', brief: "Hash of the public key of the server's authority" },
  kubeconfig: {
    ...text,
    placeholder: 'FILE',
    brief: 'Kubeconfig of the server, instead of joining (default: $KUBECONFIG)',
  },
} as const

/** What an agent works with. `joinedAs` is absent where it uses a kubeconfig and never joined. */
export interface ServerOfAgent {
  readonly kubeconfig: string
  readonly joinedAs?: string
}

/** Which server, and as which node; joins first, where that is wanted and not done yet. */
export async function serverOfAgent(
  context: Context,
  flags: JoinFlags & { readonly nodeName?: string },
  where: { readonly dataDirectory: string; readonly log: Log; nodeName(): string },
): Promise<ServerOfAgent> {
  const { env } = context.process
  const { dataDirectory } = where
  const token = flags.join === undefined ? undefined : readToken(flags, env)
  // Neither pods nor the driver's process are to see it.
  delete process.env[tokenVariable]
  if (flags.join === undefined && flags.kubeconfig !== undefined) return { kubeconfig: flags.kubeconfig }
  const joined = readJoined(dataDirectory)
  const ours = (node: string) => ({ kubeconfig: agentKubeconfig(dataDirectory), joinedAs: node })
  if (flags.join === undefined) {
    if (joined === undefined)
      return { kubeconfig: env['HAWSER_KUBECONFIG'] ?? env['KUBECONFIG'] ?? join(dataDirectory, 'kubeconfig') }
    requireName(flags.nodeName, joined, dataDirectory)
    return ours(joined.node)
  }
  const url = checkedUrl(flags.join)
  if (joined && (await keepsPlace(context, { dataDirectory, joined, url, mayJoin: token !== undefined }))) {
    requireName(flags.nodeName, joined, dataDirectory)
    if (joined.url !== url) useAddress(dataDirectory, { node: joined.node, url })
    return ours(joined.node)
  }
  if (token === undefined || flags.caHash === undefined)
    throw new UsageError(
      '--join needs a token and --ca-hash',
      'the whole command, on the server: hawser token join-command',
    )
  const node = flags.nodeName ?? joined?.node ?? where.nodeName()
  const request = { dataDirectory, node, url, token, authorityHash: flags.caHash }
  await joinServer(request, { clock: createSystemClock(), log: where.log }, new AbortController().signal).catch(
    (error: unknown) => {
      if (!isAway(error)) throw error
      throw new Unreachable((error as Error).message, 'correct the address; on the server: hawser token join-command')
    },
  )
  context.note(`node ${node} has joined ${url}`)
  return ours(node)
}

/** Whether the agent goes on with the certificate that it has. False: it must join, and has a token for it. */
async function keepsPlace(
  context: Context,
  asked: { readonly dataDirectory: string; readonly joined: Joined; readonly url: string; readonly mayJoin: boolean },
): Promise<boolean> {
  const { dataDirectory, joined, url, mayJoin } = asked
  const isSame = joined.url === url
  if (isSame && !mayJoin) return true
  const before = `node ${joined.node} has joined the server at ${joined.url}`
  const known = await isKnownAt(dataDirectory, url, new AbortController().signal).catch((error: unknown) => {
    if (!isAway(error)) throw error
    const { message } = error as Error
    if (!isSame) throw new Unreachable(`${before}; ${message}`, 'start without --join, or correct the address')
    context.note(`${message}; starting as node ${joined.node}, which has joined it`)
    return true
  })
  if (known && !isSame) context.note(`node ${joined.node} uses the address ${url} of its server from now on`)
  if (known || mayJoin) return known
  throw new UsageError(
    `${before}; the server at ${url} does not know this node`,
    'start without --join, or join that server; there: hawser token join-command',
  )
}

function requireName(asked: string | undefined, { node }: Joined, dataDirectory: string): void {
  if (asked === undefined || asked === node) return
  throw new UsageError(
    `the agent in ${dataDirectory} has joined as node ${node}, so it cannot be node ${asked}`,
    `leave --node-name out, or join as node ${asked} in another directory (--data-dir DIR); ` +
      `to rename this one, join with a new token; before that, on the server: hawser node rm ${node}`,
  )
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
