// Which certificates does an installation keep, and when are they made anew? The authority is made once; the certificates
// below it are made anew when their names change or half of their time is over.
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createAuthority, createClientCertificate, createServerCertificate } from '../apiserver/access/certificates.ts'
import type { KeyPair } from '../apiserver/access/certificates.ts'
import type { ServerTls } from '../apiserver/http/server.ts'
import { readIfThere, writePrivate } from './private-files.ts'

const serverPeriodMs = 180 * 86_400_000
const nodePeriodMs = 90 * 86_400_000

/** The API server's certificate for these names, and its authority; the administrator's certificate lies beside them. */
export async function loadServerCertificates(
  directory: string,
  names: readonly string[],
  now: number,
): Promise<ServerTls> {
  const authority = await loadPair(directory, 'ca', () => createAuthority(now))
  const stamp = JSON.stringify({ names, year: Math.floor(now / serverPeriodMs) })
  if (readIfThere(join(directory, 'server.stamp')) !== stamp) {
    writePair(directory, 'server', await createServerCertificate(authority, { names }, now))
    const admin = { name: 'admin', groups: ['system:masters'] }
    writePair(directory, 'admin', await createClientCertificate(authority, admin, now))
    writePrivate(join(directory, 'server.stamp'), stamp)
  }
  const server = await loadPair(directory, 'server', () => createServerCertificate(authority, { names }, now))
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
  const stampFile = join(directory, `${name}.stamp`)
  const stamp = JSON.stringify({ names, period: Math.floor(now / nodePeriodMs) })
  const kept = readPair(directory, name)
  if (kept && readIfThere(stampFile) === stamp) return kept
  if (!existsSync(directory)) mkdirSync(directory, { recursive: true, mode: 0o711 })
  const pair = await createServerCertificate(await createAuthority(now), { names }, now)
  writePair(directory, name, pair)
  writePrivate(stampFile, stamp)
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

async function loadPair(directory: string, name: string, make: () => Promise<KeyPair>): Promise<KeyPair> {
  return readPair(directory, name) ?? writePair(directory, name, await make())
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
