// What do the bytes of a WebSocket mean (RFC 6455), and how are they written? A pure codec: fed bytes, it gives frames.
// Messages are passed on as they come, so that a long one fills no memory.
import { createHash } from 'node:crypto'

export type WebSocketFrame =
  /** A part of a message: `first` opens it, `last` ends it. Empty only if the whole message is, or at its end. */
  | { readonly kind: 'data'; readonly bytes: Uint8Array; readonly first: boolean; readonly last: boolean }
  | { readonly kind: 'ping' | 'pong'; readonly bytes: Uint8Array }
  | { readonly kind: 'close'; readonly code: number }

export class WebSocketError extends Error {
  override readonly name = 'WebSocketError'
  /** What the other side is told. */
  readonly closeCode: number
  constructor(message: string, closeCode = 1002) {
    super(message)
    this.closeCode = closeCode
  }
}

const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const
const controlLimit = 125
const noCode = 1005

/** What a server answers to a client's `sec-websocket-key`. */
export function acceptKey(key: string): string {
  return createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
}

interface Head {
  readonly opcode: number
  readonly final: boolean
  readonly mask: Uint8Array | undefined
  readonly length: number
  readonly headBytes: number
}

/** `masked`: a server takes only masked frames, a client only plain ones. */
export function createWebSocketDecoder(masked: boolean): { feed(bytes: Uint8Array): readonly WebSocketFrame[] } {
  let rest: Buffer = Buffer.alloc(0)
  let open: (Head & { done: number }) | undefined
  let inMessage = false
  /** Nothing of the message was passed on yet: its beginning may be empty. */
  let unsaid = true

  /** As much of the open data frame as is here; false when more must come. */
  const passOn = (input: Buffer, frames: WebSocketFrame[]): number => {
    if (!open) return 0
    const piece = Buffer.from(input.subarray(0, open.length - open.done))
    unmask(piece, open.mask, open.done)
    open.done += piece.length
    const complete = open.done === open.length
    const last = complete && open.final
    if (piece.length > 0 || last) {
      frames.push({ kind: 'data', bytes: piece, first: unsaid, last })
      unsaid = last
    }
    if (complete) {
      inMessage = !open.final
      open = undefined
    }
    return piece.length
  }
  const checkOrder = (opcode: number) => {
    const continues = opcode === opcodes.continuation
    if (continues !== inMessage) throw new WebSocketError('a message was interrupted, or continues without a beginning')
  }
  return {
    feed(bytes) {
      const frames: WebSocketFrame[] = []
      let input = rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([rest, bytes])
      for (;;) {
        if (open) {
          input = input.subarray(passOn(input, frames))
          if (open) break
        }
        const head = readHead(input, masked)
        if (!head) break
        if (head.opcode >= opcodes.close) {
          if (input.length < head.headBytes + head.length) break
          const payload = Buffer.from(input.subarray(head.headBytes, head.headBytes + head.length))
          unmask(payload, head.mask, 0)
          frames.push(controlFrame(head.opcode, payload))
          input = input.subarray(head.headBytes + head.length)
          continue
        }
        checkOrder(head.opcode)
        open = { ...head, done: 0 }
        input = input.subarray(head.headBytes)
        if (head.length > 0 && input.length === 0) break
      }
      rest = Buffer.from(input)
      return frames
    },
  }
}

/** Undefined when more must come. */
function readHead(input: Buffer, masked: boolean): Head | undefined {
  if (input.length < 2) return undefined
  const [first = 0, second = 0] = input
  const opcode = first & 0x0f
  if ((first & 0x70) !== 0) throw new WebSocketError('no extensions were agreed on')
  if (![0, 1, 2, 8, 9, 10].includes(opcode)) throw new WebSocketError(`there is no frame of type ${opcode}`)
  if (((second & 0x80) !== 0) !== masked) throw new WebSocketError(masked ? 'clients mask' : 'servers do not mask')
  const final = (first & 0x80) !== 0
  const short = second & 0x7f
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
  const headBytes = 2 + lengthBytes + (masked ? 4 : 0)
  if (opcode >= opcodes.close && (short > controlLimit || !final)) throw new WebSocketError('a control frame is short')
  if (input.length < headBytes) return undefined
  const length =
    lengthBytes === 0 ? short : lengthBytes === 2 ? input.readUInt16BE(2) : Number(input.readBigUInt64BE(2))
  if (!Number.isSafeInteger(length)) throw new WebSocketError('a frame is too long', 1009)
  const mask = masked ? Uint8Array.from(input.subarray(headBytes - 4, headBytes)) : undefined
  return { opcode, final, mask, length, headBytes }
}

function controlFrame(opcode: number, payload: Buffer): WebSocketFrame {
  if (opcode === opcodes.ping) return { kind: 'ping', bytes: payload }
  if (opcode === opcodes.pong) return { kind: 'pong', bytes: payload }
  if (payload.length === 1) throw new WebSocketError('a code to close with has two bytes')
  return { kind: 'close', code: payload.length === 0 ? noCode : payload.readUInt16BE(0) }
}

function unmask(bytes: Uint8Array, mask: Uint8Array | undefined, offset: number): void {
  if (!mask) return
  for (let index = 0; index < bytes.length; index++) bytes[index]! ^= mask[(offset + index) & 3]!
}

/** A whole message or control frame. A client hands in four random bytes to mask with. */
export function encodeWebSocketFrame(
  kind: 'binary' | 'ping' | 'pong' | 'close',
  parts: readonly Uint8Array[],
  mask?: Uint8Array,
): Buffer {
  const payload = Buffer.concat(parts)
  const { length } = payload
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = 0x80 | opcodes[kind]
  head[1] = (mask ? 0x80 : 0) | (length < 126 ? length : length < 65_536 ? 126 : 127)
  if (head.length === 4) head.writeUInt16BE(length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  unmask(payload, mask, 0)
  return mask ? Buffer.concat([head, mask, payload]) : Buffer.concat([head, payload])
}

export function closePayload(code: number, reason = ''): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(code)
  return Buffer.concat([bytes, Buffer.from(reason).subarray(0, controlLimit - 2)])
}
