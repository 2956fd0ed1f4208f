// How are protobuf bytes written without copying them? From the end to the beginning: when a nested message is done, its
// length is known, and goes in front of it. Whoever calls this writes the last field first.

export class BackwardWriter {
  #bytes: Buffer
  /** Everything from here to the end is written. */
  #start: number

  constructor(expectedLength = 4096) {
    this.#bytes = Buffer.allocUnsafe(expectedLength)
    this.#start = expectedLength
  }

  get length(): number {
    return this.#bytes.length - this.#start
  }

  number(field: number, value: number): void {
    this.#varint(value)
    this.#tag(field, 0)
  }

  text(field: number, value: string): void {
    const length = Buffer.byteLength(value)
    this.#start = this.#room(length)
    this.#bytes.write(value, this.#start, length, 'utf8')
    this.close(field, this.length - length)
  }

  bytes(field: number, value: Uint8Array): void {
    this.raw(value)
    this.close(field, this.length - value.length)
  }

  raw(value: Uint8Array): void {
    this.#start = this.#room(value.length)
    this.#bytes.set(value, this.#start)
  }

  /** Ends, that is begins, a nested message whose fields are written; `lengthBefore` was the length without them. */
  close(field: number, lengthBefore: number): void {
    this.#varint(this.length - lengthBefore)
    this.#tag(field, 2)
  }

  finish(): Buffer {
    return this.#bytes.subarray(this.#start)
  }

  #tag(field: number, type: 0 | 2): void {
    this.#varint(field * 8 + type)
  }

  #varint(value: number): void {
    if (value >= 0 && value < 0x80) {
      this.#start = this.#room(1)
      this.#bytes[this.#start] = value
      return
    }
    // Negative numbers take ten bytes, as 64 bits.
    let rest = BigInt.asUintN(64, BigInt(value))
    let count = 1
    for (let left = rest >> 7n; left > 0n; left >>= 7n) count++
    this.#start = this.#room(count)
    for (let at = this.#start; at < this.#start + count; at++) {
      const isLast = at === this.#start + count - 1
      this.#bytes[at] = Number(rest & 0x7fn) | (isLast ? 0 : 0x80)
      rest >>= 7n
    }
  }

  /** Where `count` more bytes begin; grows the buffer to the front when they do not fit. */
  #room(count: number): number {
    if (this.#start < count) {
      const written = this.length
      const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, written + count))
      this.#bytes.copy(larger, larger.length - written, this.#start)
      this.#bytes = larger
      this.#start = larger.length - written
    }
    return this.#start - count
  }
}
