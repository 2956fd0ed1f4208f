// How are SPDY/3.1 headers packed? Names and values with lengths, through zlib with a dictionary that the protocol fixes,
// as one stream per connection and direction. Two facts make that plain functions:
// 1. every block ends on a byte (a sync flush), so the next one can be unpacked with the last 32 KiB as its dictionary;
// 2. nobody must compress: blocks that are "stored" are a valid stream, and our headers are a few bytes.
import { constants, inflateRawSync } from 'node:zlib'

export type SpdyHeaders = Readonly<Record<string, string>>

export class SpdyError extends Error {
  override readonly name = 'SpdyError'
}

/** The draft's own words, each with its length before it, then one text without. */
const words =
  'options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|accept-ranges|age|allow|' +
  'authorization|cache-control|connection|content-base|content-encoding|content-language|content-length|' +
  'content-location|content-md5|content-range|content-type|date|etag|expect|expires|from|host|if-match|' +
  'if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|location|max-forwards|pragma|' +
  'proxy-authenticate|proxy-authorization|range|referer|retry-after|server|te|trailer|transfer-encoding|upgrade|' +
  'user-agent|vary|via|warning|www-authenticate|method|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|' +
  'keep-alive|origin'
const text =
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505' +
  '203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden' +
  '404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable' +
  'Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT' +
  'chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,' +
  'publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.'

export const spdyDictionary = Buffer.concat([
  ...words.split('|').flatMap((word) => [uint32(word.length), Buffer.from(word)]),
  Buffer.from(text),
])

const windowBytes = 32_768
/** Unpacked; ours are a hundred bytes. */
const blockLimit = 65_536
const storedLimit = 65_535
/** Deflate with a 32 KiB window and a preset dictionary; the check makes the first two bytes a multiple of 31. */
const zlibMark = Buffer.from([0x78, 0xbb])
const adlerLimit = 65_521
/** An empty block, as a compressor ends a flush: Go's reader gives out what came before only when it sees one. */
const flush = Buffer.from([0, 0, 0, 0xff, 0xff])

/** Unpacks the header blocks of one direction, in their order. */
export function createHeaderReader(): (block: Uint8Array) => SpdyHeaders {
  let history: Uint8Array = spdyDictionary
  let begun = false
  return (block) => {
    const packed = begun ? block : withoutPreamble(block)
    begun = true
    let plain: Buffer
    try {
      plain = inflateRawSync(packed, {
        dictionary: history,
        finishFlush: constants.Z_SYNC_FLUSH,
        maxOutputLength: blockLimit,
      })
    } catch (error) {
      throw new SpdyError('headers cannot be unpacked', { cause: error })
    }
    history = Buffer.concat([history, plain]).subarray(-windowBytes)
    return parseHeaders(plain)
  }
}

/** Packs the header blocks of one direction. */
export function createHeaderWriter(): (headers: SpdyHeaders) => Buffer {
  let begun = false
  return (headers) => {
    const plain = formatHeaders(headers)
    if (plain.length > storedLimit) throw new SpdyError('headers are too long')
    const stored = Buffer.alloc(5)
    stored.writeUInt16LE(plain.length, 1)
    stored.writeUInt16LE(plain.length ^ 0xffff, 3)
    const preamble = begun ? [] : [zlibMark, uint32(adler32(spdyDictionary))]
    begun = true
    return Buffer.concat([...preamble, stored, plain, flush])
  }
}

function withoutPreamble(block: Uint8Array): Uint8Array {
  const [method = 0, flags = 0] = block
  const valid = (method & 0x0f) === 8 && (method * 256 + flags) % 31 === 0
  if (block.length < 6 || !valid || (flags & 0x20) === 0) throw new SpdyError('headers are no zlib stream of SPDY')
  return block.subarray(6)
}

function parseHeaders(plain: Buffer): SpdyHeaders {
  let at = 0
  const number = (): number => {
    if (at + 4 > plain.length) throw new SpdyError('headers end too early')
    at += 4
    return plain.readUInt32BE(at - 4)
  }
  const word = (): string => {
    const length = number()
    if (at + length > plain.length) throw new SpdyError('headers end too early')
    at += length
    return plain.toString('utf8', at - length, at)
  }
  const headers: Record<string, string> = Object.create(null) as Record<string, string> // names come from outside
  for (let left = number(); left > 0; left--) {
    const name = word().toLowerCase()
    headers[name] = word()
  }
  return headers
}

function formatHeaders(headers: SpdyHeaders): Buffer {
  const entries = Object.entries(headers)
  const parts = entries.flatMap(([name, value]) =>
    [name.toLowerCase(), value].flatMap((each) => [uint32(Buffer.byteLength(each)), Buffer.from(each)]),
  )
  return Buffer.concat([uint32(entries.length), ...parts])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function adler32(bytes: Uint8Array): number {
  let [low, high] = [1, 0]
  for (const byte of bytes) {
    low = (low + byte) % adlerLimit
    high = (high + low) % adlerLimit
  }
  return high * 65_536 + low
}
