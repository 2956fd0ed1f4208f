// What do the bytes of SPDY/3.1 mean, and how are they written? A pure codec: fed bytes, it gives frames. Data is passed on as
// it comes, so that a long frame fills no memory; only control frames are collected, and they are short.
import type { SpdyHeaders } from './spdy-headers.ts'
import { createHeaderReader, createHeaderWriter, SpdyError } from './spdy-headers.ts'

export type SpdyFrame =
  | { readonly kind: 'synStream'; readonly stream: number; readonly headers: SpdyHeaders; readonly fin: boolean }
  | { readonly kind: 'synReply'; readonly stream: number; readonly headers: SpdyHeaders; readonly fin: boolean }
  | { readonly kind: 'headers'; readonly stream: number; readonly headers: SpdyHeaders; readonly fin: boolean }
  /** A part of a data frame; `fin` comes with the last one. */
  | { readonly kind: 'data'; readonly stream: number; readonly bytes: Uint8Array; readonly fin: boolean }
  | { readonly kind: 'reset'; readonly stream: number; readonly status: number }
  | { readonly kind: 'ping'; readonly id: number }
  | { readonly kind: 'goAway'; readonly lastStream: number; readonly status: number }
  /** Settings and window updates: upstream's implementation has no flow control, and neither have we. */
  | { readonly kind: 'ignored'; readonly type: number }

export const resetStatus = { protocolError: 1, invalidStream: 2, refused: 3, cancel: 5, internal: 6 } as const

const types = { synStream: 1, synReply: 2, reset: 3, settings: 4, ping: 6, goAway: 7, headers: 8, windowUpdate: 9 }
const headBytes = 8
const version = 3
const finFlag = 0x01
/** Long enough for any headers of exec and port-forward. */
const controlLimit = 65_536
const dataLimit = 0xff_ffff

export interface SpdyDecoder {
  /** Fails with SpdyError on what cannot be understood; then nothing more can be read. */
  feed(bytes: Uint8Array): readonly SpdyFrame[]
}

export function createSpdyDecoder(): SpdyDecoder {
  const readHeaders = createHeaderReader()
  let rest: Buffer = Buffer.alloc(0)
  /** A data frame whose bytes are still coming. */
  let open: { readonly stream: number; readonly fin: boolean; left: number } | undefined
  return {
    feed(bytes) {
      const frames: SpdyFrame[] = []
      let input = rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([rest, bytes])
      for (;;) {
        if (open) {
          const piece = input.subarray(0, open.left)
          input = input.subarray(piece.length)
          open.left -= piece.length
          const last = open.left === 0
          const { stream, fin } = open
          if (last) open = undefined
          if (piece.length > 0 || last) frames.push({ kind: 'data', stream, bytes: piece, fin: fin && last })
          if (!last) break
          continue
        }
        if (input.length < headBytes) break
        const length = input.readUIntBE(5, 3)
        const flags = input[4] ?? 0
        if (((input[0] ?? 0) & 0x80) === 0) {
          open = { stream: input.readUInt32BE(0), fin: (flags & finFlag) !== 0, left: length }
          input = input.subarray(headBytes)
          continue
        }
        if ((input.readUInt16BE(0) & 0x7fff) !== version) throw new SpdyError('only version 3 of SPDY is spoken here')
        if (length > controlLimit) throw new SpdyError(`a control frame of ${length} bytes is too long`)
        if (input.length < headBytes + length) break
        const payload = input.subarray(headBytes, headBytes + length)
        frames.push(controlFrame(input.readUInt16BE(2), flags, payload, readHeaders))
        input = input.subarray(headBytes + length)
      }
      rest = Buffer.from(input)
      return frames
    },
  }
}

function controlFrame(
  type: number,
  flags: number,
  payload: Buffer,
  readHeaders: (block: Uint8Array) => SpdyHeaders,
): SpdyFrame {
  const fin = (flags & finFlag) !== 0
  const number = (at: number): number => {
    if (payload.length < at + 4) throw new SpdyError(`a control frame of type ${type} is too short`)
    return payload.readUInt32BE(at)
  }
  const stream = () => number(0) & 0x7fff_ffff
  switch (type) {
    case types.synStream:
      number(6)
      return { kind: 'synStream', stream: stream(), headers: readHeaders(payload.subarray(10)), fin }
    case types.synReply:
      return { kind: 'synReply', stream: stream(), headers: readHeaders(payload.subarray(4)), fin }
    case types.headers:
      return { kind: 'headers', stream: stream(), headers: readHeaders(payload.subarray(4)), fin }
    case types.reset:
      return { kind: 'reset', stream: stream(), status: number(4) }
    case types.ping:
      return { kind: 'ping', id: number(0) }
    case types.goAway:
      return { kind: 'goAway', lastStream: stream(), status: number(4) }
    case types.settings:
    case types.windowUpdate:
      return { kind: 'ignored', type }
    default:
      throw new SpdyError(`there is no control frame of type ${type}`)
  }
}

export type SpdyEncoder = (frame: SpdyFrame) => Buffer

/** One per connection: header blocks build on one another. */
export function createSpdyEncoder(): SpdyEncoder {
  const pack = createHeaderWriter()
  return (frame) => {
    switch (frame.kind) {
      case 'data': {
        if (frame.bytes.length > dataLimit) throw new SpdyError('a data frame holds less than 16 MiB')
        const head = Buffer.alloc(headBytes)
        head.writeUInt32BE(frame.stream)
        head.writeUInt32BE(frame.bytes.length, 4)
        head[4] = frame.fin ? finFlag : 0
        return Buffer.concat([head, frame.bytes])
      }
      case 'synStream': {
        const ids = Buffer.alloc(10)
        ids.writeUInt32BE(frame.stream)
        return control(types.synStream, frame.fin, ids, pack(frame.headers))
      }
      case 'synReply':
        return control(types.synReply, frame.fin, numbers(frame.stream), pack(frame.headers))
      case 'headers':
        return control(types.headers, frame.fin, numbers(frame.stream), pack(frame.headers))
      case 'reset':
        return control(types.reset, false, numbers(frame.stream, frame.status))
      case 'ping':
        return control(types.ping, false, numbers(frame.id))
      case 'goAway':
        return control(types.goAway, false, numbers(frame.lastStream, frame.status))
      case 'ignored':
        return control(frame.type, false, numbers(0))
      default:
        return frame satisfies never
    }
  }
}

function control(type: number, fin: boolean, ...payload: readonly Buffer[]): Buffer {
  const body = Buffer.concat(payload)
  const head = Buffer.alloc(headBytes)
  head.writeUInt16BE(0x8000 | version)
  head.writeUInt16BE(type, 2)
  head.writeUInt32BE(body.length, 4)
  head[4] = fin ? finFlag : 0
  return Buffer.concat([head, body])
}

function numbers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, index * 4)
  return bytes
}
