// How are probes sent? Plain sockets with a deadline. Nothing is kept open between two questions.
import { request as httpRequest } from 'node:http'
import { connect as http2Connect } from 'node:http2'
import { request as httpsRequest } from 'node:https'
import { connect as tcpConnect } from 'node:net'
import { streamOfSocket } from '../../streams/socket.ts'
import { HostError } from '../host-error.ts'
import type { Connect, HttpAnswer, HttpGet, Network } from '../network.ts'

const bodyLimit = 10_240
const mostRedirects = 10

export function createLinuxNetwork(): Network {
  return {
    async httpGet(asked, signal) {
      let request = asked
      for (let redirects = 0; ; redirects++) {
        const { answer, location } = await withDeadline(request, signal, (late) => get(request, late))
        const next = location === undefined ? undefined : sameHost(request, location)
        if (next === undefined || redirects === mostRedirects) return answer
        request = next
      }
    },
    connect: (request, signal) => withDeadline(request, signal, (late) => open(request, late)),
    open: ({ host, port }, signal) =>
      new Promise((resolve, reject) => {
        const socket = tcpConnect({ host, port, signal, allowHalfOpen: true, noDelay: true })
        socket.once('error', reject)
        socket.once('connect', () => {
          socket.off('error', reject)
          resolve(streamOfSocket(socket))
        })
      }),
    grpcHealth: (request, signal) =>
      withDeadline(request, signal, (late) => checkHealth(request, request.service, late)),
  }
}

async function withDeadline<T>(
  { host, port, timeoutMs }: Connect,
  signal: AbortSignal,
  call: (late: AbortSignal) => Promise<T>,
): Promise<T> {
  const time = AbortSignal.timeout(timeoutMs)
  try {
    return await call(AbortSignal.any([signal, time]))
  } catch (error) {
    if (time.aborted) throw new HostError('TIMEOUT', `${host}:${port} did not answer within ${timeoutMs / 1000} s`)
    throw error
  }
}

function get(request: HttpGet, signal: AbortSignal): Promise<{ answer: HttpAnswer; location: string | undefined }> {
  return new Promise((resolve, reject) => {
    const send = request.scheme === 'HTTPS' ? httpsRequest : httpRequest
    const { host, port, path, headers } = request
    const options = {
      host,
      port,
      path,
      headers: { ...headers },
      agent: false as const,
      signal,
      rejectUnauthorized: false,
    }
    const sent = send(options, (response) => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        if (body.length < bodyLimit) body += chunk
      })
      response.on('end', () => {
        const status = response.statusCode ?? 0
        const location = status >= 300 && status < 400 ? response.headers.location : undefined
        resolve({ answer: { status, body: body.slice(0, bodyLimit) }, location })
      })
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end()
  })
}

/** A redirect to somebody else is an answer in itself. */
function sameHost(request: HttpGet, location: string): HttpGet | undefined {
  const from = `${request.scheme.toLowerCase()}://${request.host.includes(':') ? `[${request.host}]` : request.host}:${request.port}${request.path}`
  if (!URL.canParse(location, from)) return undefined
  const [was, to] = [new URL(from), new URL(location, from)]
  if (to.hostname !== was.hostname || !/^https?:$/.test(to.protocol)) return undefined
  const scheme = to.protocol === 'https:' ? 'HTTPS' : 'HTTP'
  const port = Number(to.port || (scheme === 'HTTPS' ? 443 : 80))
  return { ...request, scheme, port, path: `${to.pathname}${to.search}` }
}

function open({ host, port }: Connect, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = tcpConnect({ host, port, signal })
    socket.once('connect', () => {
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
  })
}

const healthNames = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN']

/** One unary call, by hand: the message holds one string, the answer one number. */
function checkHealth({ host, port }: Connect, service: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const name = Buffer.from(service)
    const message = name.length === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.from([0x0a, name.length]), name])
    const frame = Buffer.alloc(5)
    frame.writeUInt32BE(message.length, 1)
    const session = http2Connect(`http://${host.includes(':') ? `[${host}]` : host}:${port}`)
    const fail = (error: Error) => {
      session.destroy()
      reject(error)
    }
    session.on('error', fail)
    signal.addEventListener('abort', () => fail(new HostError('ABORTED', 'given up')), { once: true })
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    const parts: Buffer[] = []
    let status = ''
    const note = (headers: { readonly 'grpc-status'?: unknown; readonly 'grpc-message'?: unknown }) => {
      if (headers['grpc-status'] === undefined || headers['grpc-status'] === '0') return
      status = `code ${String(headers['grpc-status'])} ${String(headers['grpc-message'] ?? '')}`.trim()
    }
    stream.on('response', note)
    stream.on('trailers', note)
    stream.on('data', (chunk: Buffer) => void parts.push(chunk))
    stream.on('error', fail)
    stream.on('end', () => {
      session.close()
      if (status !== '') return reject(new HostError('CHILD', `the health service failed: ${status}`))
      const body = Buffer.concat(parts).subarray(5)
      resolve(healthNames[body[0] === 0x08 ? (body[1] ?? 0) : 0] ?? 'UNKNOWN')
    })
    stream.end(Buffer.concat([frame, message]))
  })
}
