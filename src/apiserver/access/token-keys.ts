// With which key are tokens of service accounts signed, and how do others verify them? An ES256 key pair that follows from the
// cluster's secret, so that it needs no file of its own; its public half is in the key set that anybody who is known may read.
// Tokens that were signed with the secret itself (HS256), before there was a key pair, are good until they expire.
import { createECDH, createHmac, createPrivateKey, createPublicKey, hash, hkdfSync, sign, verify } from 'node:crypto'
import type { KeyObject } from 'node:crypto'

export interface TokenKeys {
  /** A token with this payload. */
  sign(payload: object): string
  /** The payload of a token that was signed here. */
  read(token: string): unknown
  /** The public keys, as RFC 7517 writes them. */
  readonly keySet: { readonly keys: readonly object[] }
}

export function createTokenKeys(secret: Uint8Array): TokenKeys {
  const pair = keyPairOf(secret)
  const { x, y } = pair.publicKey.export({ format: 'jwk' })
  const kid = hash('sha256', pair.publicKey.export({ format: 'der', type: 'spki' }), 'base64url')
  const header = base64url(JSON.stringify({ alg: 'ES256', kid, typ: 'JWT' }))
  return {
    sign(payload) {
      const text = `${header}.${base64url(JSON.stringify(payload))}`
      const mark = sign('sha256', Buffer.from(text), { key: pair.privateKey, dsaEncoding: 'ieee-p1363' })
      return `${text}.${mark.toString('base64url')}`
    },
    read(token) {
      const [head = '', payload = '', mark = '', ...more] = token.split('.')
      if (more.length > 0 || mark === '') return undefined
      const text = `${head}.${payload}`
      // The header only says which check is made; each check has a key of its own, so a wrong word gains nothing.
      const isGood = head === header ? isSigned(text, mark, pair.publicKey) : isSealed(text, mark, secret)
      // Signed by us, so it is JSON.
      return isGood ? JSON.parse(Buffer.from(payload, 'base64url').toString()) : undefined
    },
    keySet: { keys: [{ use: 'sig', kty: 'EC', kid, crv: 'P-256', alg: 'ES256', x, y }] },
  }
}

function keyPairOf(secret: Uint8Array): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  const curve = createECDH('prime256v1')
  for (let attempt = 0; ; attempt++) {
    const scalar = Buffer.from(hkdfSync('sha256', secret, '', `service account tokens ES256 ${attempt}`, 32))
    try {
      curve.setPrivateKey(scalar)
    } catch {
      continue // beyond the order of the curve: one of 2^32 secrets
    }
    const point = curve.getPublicKey()
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((half) => half.toString('base64url'))
    const jwk = { kty: 'EC', crv: 'P-256', d: scalar.toString('base64url'), x: x ?? '', y: y ?? '' }
    const privateKey = createPrivateKey({ format: 'jwk', key: jwk })
    return { privateKey, publicKey: createPublicKey(privateKey) }
  }
}

function isSigned(text: string, mark: string, key: KeyObject): boolean {
  const bytes = Buffer.from(mark, 'base64url')
  // One signature has one text: what only decodes to it is not accepted.
  if (bytes.length !== 64 || bytes.toString('base64url') !== mark) return false
  return verify('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }, bytes)
}

/** Comparing hashes takes the same time whatever the mark shares with the right one. */
function isSealed(text: string, mark: string, secret: Uint8Array): boolean {
  const right = createHmac('sha256', secret).update(text).digest('base64url')
  return hash('sha256', right) === hash('sha256', mark)
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url')
}
