// May this request become a stream, and in which language? What the two ways of Kubernetes ask for in their headers:
// `Upgrade: SPDY/3.1` with X-Stream-Protocol-Version, or a WebSocket with its subprotocols.
import type { NodeResponse, NodeRequest } from './node-server.ts'
import { acceptKey } from './websocket-frames.ts'

export interface UpgradeOffer {
  readonly spdy: readonly string[]
  readonly webSocket: readonly string[]
}

export type Upgrade =
  | {
      readonly kind: 'spdy' | 'webSocket'
      readonly protocol: string
      /** Of the answer with status 101. */
      readonly headers: Readonly<Record<string, string>>
    }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }

export function negotiateUpgrade({ headers }: Pick<NodeRequest, 'headers'>, offer: UpgradeOffer): Upgrade {
  const wanted = (headers['upgrade'] ?? '').toLowerCase()
  const isUpgrade = /\bupgrade\b/i.test(headers['connection'] ?? '')
  if (isUpgrade && wanted === 'spdy/3.1') {
    const asked = listOf(headers['x-stream-protocol-version'])
    const protocol = offer.spdy.find((each) => asked.includes(each))
    if (protocol === undefined) return noCommon(asked, offer.spdy)
    const answer = { connection: 'Upgrade', upgrade: 'SPDY/3.1', 'x-stream-protocol-version': protocol }
    return { kind: 'spdy', protocol, headers: answer }
  }
  if (isUpgrade && wanted === 'websocket') {
    const key = headers['sec-websocket-key'] ?? ''
    if (headers['sec-websocket-version'] !== '13' || key === '')
      return refused(400, 'only version 13 of WebSocket is spoken here')
    const asked = listOf(headers['sec-websocket-protocol'])
    const protocol = offer.webSocket.find((each) => asked.includes(each))
    if (protocol === undefined) return noCommon(asked, offer.webSocket)
    const answer = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-accept': acceptKey(key) }
    return { kind: 'webSocket', protocol, headers: { ...answer, 'sec-websocket-protocol': protocol } }
  }
  return refused(400, 'Upgrade request required')
}

/** Does somebody want to upgrade at all? */
export function wantsUpgrade(headers: NodeRequest['headers']): boolean {
  return headers['upgrade'] !== undefined && /\bupgrade\b/i.test(headers['connection'] ?? '')
}

export function textAnswer(status: number, text: string, type = 'text/plain; charset=utf-8'): NodeResponse {
  return { status, headers: { 'content-type': type }, body: Buffer.from(text) }
}

function listOf(header: string | undefined): readonly string[] {
  return (header ?? '').split(',').map((each) => each.trim())
}

function noCommon(asked: readonly string[], accepted: readonly string[]): Upgrade {
  const sides = `client supports [${asked.join(' ')}], server accepts [${accepted.join(' ')}]`
  return refused(403, `unable to negotiate protocol: ${sides}`)
}

function refused(status: number, message: string): Upgrade {
  return { kind: 'refused', status, message }
}
