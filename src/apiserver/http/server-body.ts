// How is the body of a request read? Within the limits of its size, of the bytes in flight and of time; what is refused is
// read and dropped, so that the client comes to read the answer.
import type { IncomingMessage } from 'node:http'
import type { Http2ServerRequest } from 'node:http2'
import type { StatusError } from '../../api/status-error.ts'
import { requestEntityTooLarge } from '../../api/status-error.ts'
import type { ByteAccount } from './byte-budget.ts'
import { bodyLimit } from './codec.ts'

const bodyTimeoutMs = 60_000
export const noBody = Buffer.alloc(0)

/** Why the body was not taken, or the body; fails when it does not arrive in time. */
export function readBody(
  incoming: IncomingMessage | Http2ServerRequest,
  account: ByteAccount,
): Promise<Buffer | StatusError> | Buffer {
  if (incoming.method === 'GET' || incoming.method === 'HEAD') return noBody
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    let refused = false
    const fail = (error: Error): void => {
      clearTimeout(timer)
      reject(error)
    }
    const timer = setTimeout(() => {
      const late = new Error('the body did not arrive in time')
      incoming.destroy(late)
      fail(late)
    }, bodyTimeoutMs)
    const finish = (body: Buffer | StatusError): void => {
      clearTimeout(timer)
      resolve(body)
    }
    incoming.on('data', (chunk: Buffer) => {
      if (refused) return
      size += chunk.length
      const refusal = size > bodyLimit ? requestEntityTooLarge(`limit is ${bodyLimit}`) : account.take(chunk.byteLength)
      if (refusal === undefined) return void chunks.push(chunk)
      refused = true
      chunks.length = 0
      finish(refusal)
    })
    incoming.on('end', () => finish(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)))
    incoming.on('error', fail)
    incoming.on('close', () => fail(left))
    // It may have left while we asked who it is.
    if (incoming.destroyed) fail(left)
  })
}

const left = new Error('the client left')

/** Drops what comes: no client is known that may send it. */
export function dropBody(incoming: IncomingMessage | Http2ServerRequest): Buffer {
  incoming.resume()
  return noBody
}
