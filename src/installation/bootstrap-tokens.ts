// How does an administrator let another machine join? With a bootstrap token, and the command that uses it.
import { randomInt } from 'node:crypto'
import { authorityHash } from '../apiserver/access/certificates.ts'
import {
  bootstrapDigest,
  bootstrapIdOf,
  bootstrapSecret,
  bootstrapSecretType,
  readBootstrap,
} from '../apiserver/access/bootstrap.ts'
import { ignoreNotFound } from '../api/status-error.ts'
import type { Client } from '../client/client.ts'
import { readClusterInfo } from './cluster-info.ts'
import { UsageError } from './config.ts'

export interface TokenOptions {
  readonly hours: number
  /** How many machines it lets in. */
  readonly uses: number
  /** Only the node of this name, which may take the place of an older one. */
  readonly node?: string
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Only its hash is kept: whoever loses the token makes another one. */
export async function createBootstrapToken(client: Client, options: TokenOptions, now: number): Promise<string> {
  await removeOver(client, now)
  const token = `${word(6)}.${word(16)}`
  const { hours, uses, node } = options
  const expiresAt = now + hours * 3600_000
  const bootstrap = { digest: bootstrapDigest(token), expiresAt, uses, admitted: {}, ...(node && { node }) }
  await client.create('Secret', bootstrapSecret(bootstrapIdOf(token) ?? '', bootstrap))
  return token
}

/** To be run on the machine that joins. The token is not among the arguments: everybody on a machine can read those. */
export async function joinCommand(client: Client, options: TokenOptions, now: number): Promise<string> {
  const info = await readClusterInfo(client)
  if (!info)
    throw new UsageError(
      'the server listens on this machine only: no other machine can join',
      'start it with --listen 0.0.0.0:7443, or with --advertise HOST:PORT if others reach it by another way',
    )
  const token = await createBootstrapToken(client, options, now)
  const name = options.node === undefined ? '' : ` --node-name ${options.node}`
  return `HAWSER_JOIN_TOKEN=${token} hawser agent --join ${info.server} --ca-hash ${authorityHash(info.authority)}${name}`
}

async function removeOver(client: Client, now: number): Promise<void> {
  const selected = { namespace: 'kube-system', fieldSelector: `type=${bootstrapSecretType}` }
  for (const secret of (await client.list('Secret', selected)).items) {
    const { expiresAt = 0 } = readBootstrap(secret) ?? {}
    if (expiresAt > now) continue
    const ref = { namespace: 'kube-system', name: secret.metadata.name }
    await client.remove('Secret', ref).catch(ignoreNotFound)
  }
}

function word(length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')
}
