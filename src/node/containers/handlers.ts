// How is a container asked or told something? The handlers that probes and lifecycle hooks share: a command inside the
// container, an HTTP request, a TCP connection, a gRPC health check, a pause. Each answers, or fails with words for people.
import type { PodUid } from '../../api/names.ts'
import type {
  Container,
  ExecAction,
  HTTPGetAction,
  LifecycleHandler,
  Pod,
  ProbeHandler,
} from '../../api/generated/types.ts'
import type { Clock } from '../../clock/clock.ts'
import type { Network } from '../../host/network.ts'
import { errorText } from '../../telemetry/error-text.ts'
import type { ContainerRequestDeps } from './container-request.ts'
import { processSettings } from './container-request.ts'
import type { ProcessSettings, Runtime } from '../runtime/port.ts'

export interface HandlerDeps extends Pick<
  ContainerRequestDeps,
  'client' | 'host' | 'ownNode' | 'hostAddress' | 'manager'
> {
  readonly clock: Clock
  readonly runtime: Runtime
  readonly network: Network
}

/** Whom to ask. */
export interface HandlerTarget {
  readonly pod: Pod
  readonly uid: PodUid
  readonly container: Container
  /** As it was started; read again where that is not known any more. */
  readonly settings?: ProcessSettings | undefined
}

export interface HandlerAnswer {
  readonly ok: boolean
  /** What to tell people when it is not. */
  readonly output: string
}

/** Throws when the question could not be asked at all; a bad answer is an answer. */
export async function callHandler(
  deps: HandlerDeps,
  target: HandlerTarget,
  handler: ProbeHandler & LifecycleHandler,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<HandlerAnswer> {
  const { exec, httpGet, tcpSocket, grpc, sleep } = handler
  if (exec) return await runCommand(deps, target, exec, timeoutMs, signal)
  if (httpGet) return await sendRequest(deps, target, httpGet, timeoutMs, signal)
  if (tcpSocket) {
    const host = tcpSocket.host || addressOf(deps)
    const port = portOf(target.container, tcpSocket.port)
    return await answered(() => deps.network.connect({ host, port, timeoutMs }, signal))
  }
  if (grpc) {
    const request = { host: addressOf(deps), port: grpc.port, service: grpc.service ?? '', timeoutMs }
    return await answered(async () => {
      const status = await deps.network.grpcHealth(request, signal)
      if (status !== 'SERVING') throw new Error(`service unhealthy (responded with "${status}")`)
    })
  }
  if (sleep) {
    await deps.clock.sleep(Math.min(sleep.seconds * 1000, timeoutMs), signal)
    return { ok: true, output: '' }
  }
  throw new Error('it names nothing to do')
}

async function runCommand(
  deps: HandlerDeps,
  { pod, uid, container, settings: known }: HandlerTarget,
  { command = [] }: ExecAction,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<HandlerAnswer> {
  const settings = known ?? (await processSettings(deps, pod, container, signal)).settings
  const request = { ...settings, pod: uid, name: container.name, argv: command, timeoutMs }
  try {
    const { exitCode, output } = await deps.runtime.exec(request, signal)
    return { ok: exitCode === 0, output: output.trim() || `command ended with ${exitCode}` }
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'TIMEOUT') throw error
    return { ok: false, output: `command timed out after ${timeoutMs / 1000}s` }
  }
}

async function sendRequest(
  deps: HandlerDeps,
  { container }: HandlerTarget,
  { host, port, path = '/', scheme = 'HTTP', httpHeaders = [] }: HTTPGetAction,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<HandlerAnswer> {
  const headers = Object.fromEntries(httpHeaders.map(({ name, value }) => [name.toLowerCase(), value]))
  const request = {
    scheme,
    host: host || addressOf(deps),
    port: portOf(container, port),
    path: path.startsWith('/') ? path : `/${path}`,
    headers: { 'user-agent': 'kube-probe/hawser', accept: '*/*', ...headers },
    timeoutMs,
  }
  return await answered(async () => {
    const { status } = await deps.network.httpGet(request, signal)
    if (status < 200 || status >= 400) throw new Error(`HTTP probe failed with statuscode: ${status}`)
  })
}

/** Nobody there, or nobody in time: that is what a probe is for. */
async function answered(call: () => Promise<void>): Promise<HandlerAnswer> {
  try {
    await call()
    return { ok: true, output: '' }
  } catch (error) {
    return { ok: false, output: errorText(error) }
  }
}

/** Containers share the machine's network: its address, or the loopback when it has none. */
const addressOf = ({ hostAddress }: HandlerDeps) => hostAddress || '127.0.0.1'

function portOf({ name, ports = [] }: Container, port: number | string): number {
  const number = Number(port)
  if (Number.isInteger(number) && number > 0) return number
  const named = ports.find((each) => each.name === port)
  if (!named) throw new Error(`container ${name} has no port named "${port}"`)
  return named.containerPort
}
