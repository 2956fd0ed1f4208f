// How do client and server trust each other? A certificate authority made at first start, and certificates it signs.
// Only PEM texts here; `main` reads and writes the files. The library is loaded when a certificate must be made.
import { createPublicKey, hash, X509Certificate } from 'node:crypto'
import type { Extension } from '@peculiar/x509'
import type * as X509Module from '@peculiar/x509'
import type { NodeSigner } from './node-certificates.ts'

export interface KeyPair {
  /** PEM. */
  readonly certificate: string
  /** PEM, PKCS#8. */
  readonly key: string
}

export interface ServerNames {
  /** DNS names and addresses that clients reach us by. */
  readonly names: readonly string[]
}

const yearMs = 365 * 24 * 3600_000
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/**
 * Certificates count from the beginning of time: a machine whose clock runs behind, or has not been set yet, is no reason to
 * distrust one. They end a year after they were made.
 */
const begin = new Date(0)
/** The authority ends never; this date says so (RFC 5280, 4.1.2.5). Made in 1970, it must count when the clock has been set. */
const never = new Date('9999-12-31T23:59:59Z')

export async function createAuthority(): Promise<KeyPair> {
  const { crypto } = await load()
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  return { certificate: await signAuthority(keys), key: await exportKey(crypto, keys.privateKey) }
}

/** The same authority with a new certificate: whoever has one that it signed keeps it, and so does its hash. */
export async function renewAuthority({ key }: KeyPair): Promise<KeyPair> {
  return { certificate: await signAuthority(await keysOf(key)), key }
}

async function signAuthority(keys: CryptoKeyPair): Promise<string> {
  const { x509, crypto } = await load()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(crypto),
    name: 'CN=hawser-ca',
    notBefore: begin,
    notAfter: never,
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return certificate.toString('pem')
}

/** Whether a certificate counts now, and for at least half a year more. */
export function isFresh(certificate: string, now: number): boolean {
  const { validFromDate, validToDate } = new X509Certificate(certificate)
  return validFromDate.getTime() <= now && now < validToDate.getTime() - yearMs / 2
}

export function createServerCertificate(authority: KeyPair, { names }: ServerNames, now: number): Promise<KeyPair> {
  return sign(authority, 'CN=hawser', now, (x509) => [
    new x509.ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.1'], false),
    new x509.SubjectAlternativeNameExtension(
      names.map((name) => (isAddress(name) ? { type: 'ip', value: name } : { type: 'dns', value: name })),
    ),
  ])
}

/** The key in it is known to nobody else: proof that whoever asks has it. */
export async function createRequest(name: string, key: string): Promise<string> {
  const { x509 } = await load()
  const keys = await keysOf(key)
  const subject = [{ CN: [name] }]
  const made = await x509.Pkcs10CertificateRequestGenerator.create({ name: subject, keys, signingAlgorithm: algorithm })
  return made.toString('pem')
}

async function keysOf(key: string): Promise<CryptoKeyPair> {
  const { crypto } = await load()
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' })
  const publicKey = await crypto.subtle.importKey('spki', spki, algorithm, true, ['verify'])
  return { privateKey: await importKey(crypto, key), publicKey }
}

/** PEM. */
export async function createKey(): Promise<string> {
  const { crypto } = await load()
  return exportKey(crypto, (await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])).privateKey)
}

/** Signs requests of nodes as this authority. */
export function createNodeSigner(authority: () => KeyPair): NodeSigner {
  return {
    async read(text) {
      const { x509 } = await load()
      const request = await Promise.try(() => new x509.Pkcs10CertificateRequest(text)).catch(() => undefined)
      if (!request || !(await request.verify().catch(() => false))) return undefined
      const publicKey = await request.publicKey.export()
      return {
        key: hash('sha256', Buffer.from(request.publicKey.rawData), 'hex'),
        async sign(user, now, lifetimeMs) {
          const certificate = await signFor(authority(), publicKey, subjectOf(user), { now, lifetimeMs }, clientOnly)
          return { certificate, fingerprint: new X509Certificate(certificate).fingerprint256 }
        },
      }
    },
  }
}

/** What an agent compares before it trusts an authority: the hash of its public key, as kubeadm has it. */
export function authorityHash(certificate: string): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' })
  return `sha256:${hash('sha256', key, 'hex')}`
}

/** A client is its common name; its organisations are its groups. */
export function createClientCertificate(
  authority: KeyPair,
  user: { readonly name: string; readonly groups: readonly string[] },
  now: number,
): Promise<KeyPair> {
  return sign(authority, subjectOf(user), now, clientOnly)
}

type X509 = typeof X509Module
type WebCrypto = typeof globalThis.crypto
type Key = Awaited<ReturnType<WebCrypto['subtle']['importKey']>>

interface CryptoKeyPair {
  readonly privateKey: Key
  readonly publicKey: Key
}
type Subject = string | Record<string, string[]>[]
type Purposes = (x509: X509) => Extension[]

const clientOnly: Purposes = (x509) => [new x509.ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.2'], false)]

function subjectOf(user: { readonly name: string; readonly groups: readonly string[] }): Subject {
  return [{ CN: [user.name] }, ...user.groups.map((group) => ({ O: [group] }))]
}

async function sign(authority: KeyPair, subject: Subject, now: number, purposes: Purposes): Promise<KeyPair> {
  const { crypto } = await load()
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const time = { now, lifetimeMs: yearMs }
  const certificate = await signFor(authority, keys.publicKey, subject, time, purposes)
  return { certificate, key: await exportKey(crypto, keys.privateKey) }
}

async function signFor(
  authority: KeyPair,
  publicKey: Key,
  subject: Subject,
  { now, lifetimeMs }: { readonly now: number; readonly lifetimeMs: number },
  purposes: Purposes,
): Promise<string> {
  const { x509, crypto } = await load()
  const issuer = new x509.X509Certificate(authority.certificate)
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(crypto),
    subject,
    issuer: issuer.subject,
    notBefore: begin,
    notAfter: new Date(now + lifetimeMs),
    publicKey,
    signingKey: await importKey(crypto, authority.key),
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
      ...purposes(x509),
    ],
  })
  return certificate.toString('pem')
}

async function load() {
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  return { x509, crypto: globalThis.crypto }
}

function serial(crypto: WebCrypto): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16))
  bytes[0] = (bytes[0] ?? 0) & 0x7f // a positive number
  return Buffer.from(bytes).toString('hex')
}

async function exportKey(crypto: WebCrypto, key: Key): Promise<string> {
  const bytes = Buffer.from(await crypto.subtle.exportKey('pkcs8', key))
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n`
}

function importKey(crypto: WebCrypto, pem: string): Promise<Key> {
  const bytes = Buffer.from(pem.replace(/-----[^-]+-----/g, ''), 'base64')
  return crypto.subtle.importKey('pkcs8', bytes, algorithm, true, ['sign'])
}

function isAddress(name: string): boolean {
  return /^\d+\.\d+\.\d+\.\d+$/.test(name) || name.includes(':')
}
