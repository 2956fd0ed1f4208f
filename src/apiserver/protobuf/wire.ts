// How are numbers, texts and nested messages laid out in protobuf? The wire format alone: reading with bounds
// checked at every step (the bytes come from strangers), and writing.
import { badRequest } from '../../api/status-error.ts'

export type WireType = 0 | 1 | 2 | 5

/** One part of the bytes, read front to back; sub-messages share the bytes. */
export class WireReader {
  readonly #bytes: Uint8Array
  readonly #end: number
  #position: number

  constructor(bytes: Uint8Array, start = 0, end: number = bytes.length) {
    this.#bytes = bytes
    this.#position = start
    this.#end = end
  }

  get done(): boolean {
    return this.#position >= this.#end
  }

  tag(): { readonly number: number; readonly type: WireType } {
    const tag = Number(this.varint())
    const number = Math.floor(tag / 8)
    const type = tag % 8
    if (number < 1 || number > 536_870_911) throw malformed('illegal field number')
    if (type !== 0 && type !== 1 && type !== 2 && type !== 5) throw malformed(`illegal wire type ${type}`)
    return { number, type }
  }

  /** Unsigned, at most 64 bits. */
  varint(): bigint {
    let low = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte()
      low |= (byte & 0x7f) << shift
      if (byte < 0x80) return BigInt(low)
    }
    let value = BigInt(low)
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
    throw malformed('integer overflow')
  }

  bytes(): Uint8Array {
    const start = this.#skipLength()
    return this.#bytes.subarray(start, this.#position)
  }

  text(): string {
    try {
      return strictUtf8.decode(this.bytes())
    } catch (error) {
      throw error instanceof TypeError ? malformed('invalid UTF-8') : error
    }
  }

  message(): WireReader {
    const start = this.#skipLength()
    return new WireReader(this.#bytes, start, this.#position)
  }

  skip(type: WireType): void {
    if (type === 0) this.varint()
    else if (type === 2) this.#skipLength()
    else this.#advance(type === 1 ? 8 : 4)
  }

  #byte(): number {
    const byte = this.#position < this.#end ? this.#bytes[this.#position] : undefined
    if (byte === undefined) throw malformed('unexpected EOF')
    this.#position += 1
    return byte
  }

  #skipLength(): number {
    const length = this.varint()
    if (length > BigInt(this.#end - this.#position)) throw malformed('unexpected EOF')
    const start = this.#position
    this.#advance(Number(length))
    return start
  }

  #advance(count: number): void {
    if (count > this.#end - this.#position) throw malformed('unexpected EOF')
    this.#position += count
  }
}

/** Collects fields; zero values are written only when asked for by calling. */
export class WireWriter {
  readonly #parts: Uint8Array[] = []

  number(field: number, value: number | bigint): this {
    this.#parts.push(varintBytes(BigInt(field) << 3n), varintBytes(BigInt.asUintN(64, BigInt(value))))
    return this
  }

  bytes(field: number, value: Uint8Array): this {
    this.#parts.push(varintBytes((BigInt(field) << 3n) | 2n), varintBytes(BigInt(value.length)), value)
    return this
  }

  text(field: number, value: string): this {
    return this.bytes(field, utf8.encode(value))
  }

  message(field: number, message: WireWriter): this {
    return this.bytes(field, message.finish())
  }

  finish(): Uint8Array {
    let length = 0
    for (const part of this.#parts) length += part.length
    const all = new Uint8Array(length)
    let position = 0
    for (const part of this.#parts) {
      all.set(part, position)
      position += part.length
    }
    return all
  }
}

export function malformed(why: string): Error {
  return badRequest(`the body of the request is not valid protobuf: ${why}`)
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const utf8 = new TextEncoder()

function varintBytes(value: bigint): Uint8Array {
  const bytes: number[] = []
  let rest = value
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80)
    rest >>= 7n
  }
  bytes.push(Number(rest))
  return Uint8Array.from(bytes)
}
