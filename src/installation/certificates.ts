// Which certificates does an installation keep, and when are they made anew? The authority has one key for ever; the certificates
// below it are made anew when their names change or half of their time is over. A clock that is set back is no reason.
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  createAuthority,
  createClientCertificate,
  createServerCertificate,
  isFresh,
  renewAuthority,
} from '../apiserver/access/certificates.ts'
import type { KeyPair } from '../apiserver/access/certificates.ts'
import type { ServerTls } from '../apiserver/http/server.ts'
import { readIfThere, writePrivate } from './private-files.ts'

/** The API server's certificate for these names, and its authority; the administrator's certificate lies beside them. */
export async function loadServerCertificates(
  directory: string,
  names: readonly string[],
  now: number,
): Promise<ServerTls> {
  const authority = await ensureAuthority(directory, now)
  const isKept = hasNames(directory, 'server', names)
  const fresh = async (name: string, make: () => Promise<KeyPair>) => {
    const kept = readPair(directory, name)
    return kept && isKept && isFresh(kept.certificate, now) ? kept : writePair(directory, name, await make())
  }
  await fresh('admin', () => createClientCertificate(authority, { name: 'admin', groups: ['system:masters'] }, now))
  const server = await fresh('server', () => createServerCertificate(authority, { names }, now))
  noteNames(directory, 'server', names)
  // The authority follows the server's own certificate, for agents that know only its hash when they join.
  const certificate = `${server.certificate.trimEnd()}\n${authority.certificate}`
  return { certificate, key: server.key, authority: authority.certificate }
}

/**
 * The certificate of a node's own server. Its authority is thrown away: the API server compares the fingerprint in the Node
 * object.
 */
export async function loadNodeCertificate(directory: string, names: readonly string[], now: number): Promise<KeyPair> {
  const name = 'node-server'
  const kept = readPair(directory, name)
  if (kept && hasNames(directory, name, names) && isFresh(kept.certificate, now)) return kept
  if (!existsSync(directory)) mkdirSync(directory, { recursive: true, mode: 0o711 })
  const pair = await createServerCertificate(await createAuthority(), { names }, now)
  writePair(directory, name, pair)
  noteNames(directory, name, names)
  return pair
}

/** The administrator's certificate, with which the API server asks nodes. */
export function readAdminCertificate(directory: string): KeyPair {
  return readPair(directory, 'admin') ?? { certificate: '', key: '' }
}

/** The authority of this installation, with its key. */
export function readAuthority(directory: string): KeyPair {
  return readPair(directory, 'ca') ?? { certificate: '', key: '' }
}

/** Earlier versions made authorities that end after ten years, or begin when the clock was wrong: those are renewed. */
export async function ensureAuthority(directory: string, now: number): Promise<KeyPair> {
  const kept = readPair(directory, 'ca')
  if (kept && isFresh(kept.certificate, now)) return kept
  return writePair(directory, 'ca', await (kept ? renewAuthority(kept) : createAuthority()))
}

/** The names that a certificate was made for lie beside it. */
function hasNames(directory: string, name: string, names: readonly string[]): boolean {
  return readIfThere(join(directory, `${name}.stamp`)) === JSON.stringify({ names })
}

function noteNames(directory: string, name: string, names: readonly string[]): void {
  if (!hasNames(directory, name, names)) writePrivate(join(directory, `${name}.stamp`), JSON.stringify({ names }))
}

function readPair(directory: string, name: string): KeyPair | undefined {
  const certificate = readIfThere(join(directory, `${name}.crt`))
  const key = readIfThere(join(directory, `${name}.key`))
  return certificate && key ? { certificate, key } : undefined
}

function writePair(directory: string, name: string, { certificate, key }: KeyPair): KeyPair {
  writePrivate(join(directory, `${name}.key`), key)
  writePrivate(join(directory, `${name}.crt`), certificate)
  return { certificate, key }
}
