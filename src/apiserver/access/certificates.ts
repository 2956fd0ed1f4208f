// How do client and server trust each other? A certificate authority made at first start, and certificates it signs.
// Only PEM texts here; `main` reads and writes the files. The library is loaded when a certificate must be made.
import type { Extension } from '@peculiar/x509'
import type * as X509Module from '@peculiar/x509'

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

const tenYearsMs = 10 * 365 * 24 * 3600_000
const yearMs = 365 * 24 * 3600_000
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const

/** `now` is in milliseconds since 1970. */
export async function createAuthority(now: number): Promise<KeyPair> {
  const { x509, crypto } = await load()
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(crypto),
    name: 'CN=hawser-ca',
    notBefore: new Date(now - 3600_000),
    notAfter: new Date(now + tenYearsMs),
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  return { certificate: certificate.toString('pem'), key: await exportKey(crypto, keys.privateKey) }
}

export function createServerCertificate(authority: KeyPair, { names }: ServerNames, now: number): Promise<KeyPair> {
  return sign(authority, 'CN=hawser', now, (x509) => [
    new x509.ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.1'], false),
    new x509.SubjectAlternativeNameExtension(
      names.map((name) => (isAddress(name) ? { type: 'ip', value: name } : { type: 'dns', value: name })),
    ),
  ])
}

/** A client is its common name; its organisations are its groups. */
export function createClientCertificate(
  authority: KeyPair,
  user: { readonly name: string; readonly groups: readonly string[] },
  now: number,
): Promise<KeyPair> {
  const subject = [{ CN: [user.name] }, ...user.groups.map((group) => ({ O: [group] }))]
  return sign(authority, subject, now, (x509) => [new x509.ExtendedKeyUsageExtension(['1.3.6.1.5.5.7.3.2'], false)])
}

type X509 = typeof X509Module
type WebCrypto = typeof globalThis.crypto
type Key = Awaited<ReturnType<WebCrypto['subtle']['importKey']>>
type Subject = string | Record<string, string[]>[]

async function sign(
  authority: KeyPair,
  subject: Subject,
  now: number,
  purposes: (x509: X509) => Extension[],
): Promise<KeyPair> {
  const { x509, crypto } = await load()
  const issuer = new x509.X509Certificate(authority.certificate)
  const signingKey = await importKey(crypto, authority.key)
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serial(crypto),
    subject,
    issuer: issuer.subject,
    notBefore: new Date(now - 3600_000),
    notAfter: new Date(now + yearMs),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
      ...purposes(x509),
    ],
  })
  return { certificate: certificate.toString('pem'), key: await exportKey(crypto, keys.privateKey) }
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
