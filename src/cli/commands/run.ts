// `hawser run`: a command with volumes, as one pod; its output is ours, its exit code is ours, nothing of it stays.
import { randomBytes } from 'node:crypto'
import { buildCommand } from '@stricli/core'
import { hasEnded } from '../../api/pod-claims.ts'
import type { Pod } from '../../api/generated/types.ts'
import { createSystemClock } from '../../clock/system-clock.ts'
import { ignoreNotFound, isNotFound } from '../../api/status-error.ts'
import { getIfExists } from '../../client/get-if-exists.ts'
import { namesOf } from '../completions.ts'
import type { ConnectFlags, Connection } from '../connect.ts'
import { connect, connectFlags } from '../connect.ts'
import type { Context } from '../context.ts'
import { Failed, Interrupted, Missing, StillWaiting } from '../errors.ts'
import { signalCodes } from '../exit-codes.ts'
import type { StopSignal } from '../exit-codes.ts'
import { askAbout, inNamespace } from '../hints.ts'
import { runRemote } from '../remote.ts'
import { catchStops, confirmMs } from '../run-stops.ts'
import type { Look } from '../wait.ts'
import { timeoutFlag, waitUntil } from '../wait.ts'
import { explain } from '../../why/explain.ts'
import { gatherFacts } from '../../why/gather.ts'
import { printLogs } from './logs.ts'

interface Flags extends ConnectFlags {
  readonly claim?: readonly ClaimMount[]
  readonly name?: string
  readonly node?: string
  readonly env?: readonly EnvironmentValue[]
  readonly workdir?: string
  readonly stdin: boolean
  readonly grace: number
  readonly timeout: number
}

export interface ClaimMount {
  readonly claim: string
  readonly path: string
  readonly readOnly: boolean
}

interface EnvironmentValue {
  readonly name: string
  readonly value: string
}

/** As shells say it: killed by signal n is 128 + n. */

export const run = buildCommand<Flags, string[], Context>({
  docs: {
    brief: 'Run a command with volumes mounted',
    fullDescription: [
      'Runs a command as a pod, with claims mounted at the given paths. The pod is a process on the node with its own mounts.',
      'Prints its output and exits with its exit code. The pod is deleted at the end.',
      'If a pipe or a file is connected to stdin, the command reads it.',
      'SIGINT, SIGTERM and SIGHUP stop the command: it gets SIGTERM and, after --grace seconds, SIGKILL.',
      '',
      'Examples:',
      "  hawser run --claim data:/data -- sh -c 'date > /data/when; ls -la /data'",
      '  hawser run --claim data:/data:ro --claim other:/other -- cp -a /data/. /other/',
      '  hawser run --claim data:/data --node n2 --env LEVEL=3 -- ./job.sh',
      '  hawser run --claim data:/data -- tar -xf - -C /data < backup.tar',
    ].join('\n'),
  },
  parameters: {
    flags: {
      ...connectFlags,
      claim: {
        kind: 'parsed',
        parse: mountFrom,
        optional: true,
        variadic: true,
        placeholder: 'CLAIM:PATH[:ro]',
        brief: 'Mount this claim at this path',
      },
      name: { kind: 'parsed', parse: String, optional: true, placeholder: 'NAME', brief: 'Name of the pod' },
      node: {
        kind: 'parsed',
        parse: String,
        optional: true,
        placeholder: 'NODE',
        proposeCompletions: namesOf('Node'),
        brief: 'Run on this node',
      },
      env: {
        kind: 'parsed',
        parse: environmentFrom,
        optional: true,
        variadic: true,
        placeholder: 'NAME=VALUE',
        brief: 'Set an environment variable',
      },
      workdir: { kind: 'parsed', parse: String, optional: true, placeholder: 'DIR', brief: 'Working directory' },
      stdin: {
        kind: 'boolean',
        default: true,
        brief: 'Pass a pipe or a file on stdin to the command',
      },
      grace: {
        kind: 'parsed',
        parse: Number,
        default: '10',
        placeholder: 'SECONDS',
        brief: 'Time between SIGTERM and SIGKILL',
      },
      timeout: { ...timeoutFlag, brief: 'Timeout until the command starts' },
    },
    aliases: { n: 'namespace', e: 'env', w: 'workdir' },
    positional: {
      kind: 'array',
      parameter: { parse: String, placeholder: 'COMMAND', brief: 'The command, after --' },
      minimum: 1,
    },
  },
  async func(flags, ...command) {
    using connection = connect(this, flags)
    const name = flags.name ?? `run-${randomBytes(4).toString('hex')}`
    await requireClaims(connection, flags.claim ?? [])
    const input = flags.stdin ? this.pipedInput() : undefined
    const pod = podOf({ ...flags, name, command, stdin: input !== undefined }, connection.namespace)
    await connection.client.create('Pod', pod)
    this.exitLike(await attend(this, connection, { ...flags, name, input }))
  },
})

export interface RunRequest {
  readonly name: string
  readonly command: readonly string[]
  readonly claim?: readonly ClaimMount[]
  readonly node?: string
  readonly env?: readonly EnvironmentValue[]
  readonly workdir?: string
  readonly stdin?: boolean
}

/** The pod of a run. Image names mean nothing to the process runtime. */
export function podOf(request: RunRequest, namespace: string): Pod {
  const mounts = request.claim ?? []
  return {
    metadata: { name: request.name, namespace, labels: { 'app.kubernetes.io/managed-by': 'hawser-run' } },
    spec: {
      restartPolicy: 'Never',
      ...(request.node === undefined ? {} : { nodeSelector: { 'kubernetes.io/hostname': request.node } }),
      containers: [
        {
          name: 'run',
          image: 'none',
          command: [...request.command],
          // With stdinOnce, the command sees the end of our input.
          ...(request.stdin === true ? { stdin: true, stdinOnce: true } : {}),
          ...(request.workdir === undefined ? {} : { workingDir: request.workdir }),
          ...(request.env === undefined ? {} : { env: [...request.env] }),
          volumeMounts: mounts.map(({ path, readOnly }, index) => ({
            name: `claim-${index}`,
            mountPath: path,
            ...(readOnly ? { readOnly } : {}),
          })),
        },
      ],
      volumes: mounts.map(({ claim }, index) => ({
        name: `claim-${index}`,
        persistentVolumeClaim: { claimName: claim },
      })),
    },
  }
}

interface Attended {
  readonly name: string
  readonly grace: number
  readonly timeout: number
  readonly claim?: readonly ClaimMount[]
  readonly input: NodeJS.ReadableStream | undefined
}

/** From the start to the end of the pod; answers the exit code. */
async function attend(context: Context, connection: Connection, request: Attended): Promise<number> {
  const { client, namespace } = connection
  const ref = { name: request.name, namespace }
  const remove = (gracePeriodSeconds: number) => client.remove('Pod', ref, { gracePeriodSeconds }).catch(ignoreNotFound)
  const stop = catchStops(request.grace, (grace) => void remove(grace).catch(() => {}))
  const { signal } = stop
  try {
    const starting = { kind: 'Pod', ref, timeoutMs: request.timeout * 1_000, signal, interrupts: 'handled' } as const
    await waitUntil(context, client, starting, started)
    stop.isStarted()
    const code = await followToEnd(context, connection, request, signal)
    await remove(0)
    return code ?? (stop.received === undefined ? 1 : signalCodes[stop.received])
  } catch (error) {
    // The node may run it by now: only the node can tell that the command has ended.
    await remove(request.grace)
    if (signal.aborted && stop.received) throw await interrupted(connection, request, stop.received)
    throw error instanceof StillWaiting ? await withCause(connection, request, error) : error
  } finally {
    stop[Symbol.dispose]()
  }
}

async function interrupted(connection: Connection, { name }: Attended, received: StopSignal): Promise<Interrupted> {
  const fate = await fateOf(connection, name)
  const hint = fate.isGone ? undefined : askAbout('Pod', { name, namespace: connection.namespace })
  return new Interrupted(received, fate.text, hint)
}

/** What became of a pod that was told to go. */
async function fateOf({ client, namespace }: Connection, name: string): Promise<Fate> {
  const clock = createSystemClock()
  const { signal } = new AbortController()
  const end = clock.steady() + confirmMs
  for (;;) {
    const pod = await getIfExists(client, 'Pod', { name, namespace })
    if (pod === undefined) return { isGone: true, text: `pod ${name} was deleted` }
    const node = pod.spec?.nodeName
    const text = `pod ${name} is still being deleted${node === undefined ? '' : `: node ${node} has not confirmed it`}`
    if (clock.steady() > end) return { isGone: false, text }
    await clock.sleep(100, signal)
  }
}

interface Fate {
  readonly isGone: boolean
  readonly text: string
}

/** Passes on input and output until the command has ended; answers its exit code, if it left one. */
async function followToEnd(
  context: Context,
  connection: Connection,
  { name, input }: Attended,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { client, namespace } = connection
  const logging = new AbortController()
  const feeding = new AbortController()
  const wait = { kind: 'Pod', ref: { name, namespace }, signal, interrupts: 'handled' } as const
  const ended = waitUntil(context, client, wait, exitOf)
  const fed = input === undefined ? undefined : feed(connection, { pod: name, input, ended }, feeding.signal)
  const printed = printLogs(context, connection, { name, follow: true }, logging.signal).catch((error: unknown) => {
    if (!isNotFound(error)) context.note(`cannot read its output: ${(error as Error).message}`)
  })
  try {
    const code = await (fed === undefined ? ended : Promise.race([ended, neverUnlessFailed(fed)]))
    // What was written last may still be on its way, but a follower that never ends must not hold us.
    const timer = setTimeout(() => logging.abort(), 2_000)
    await printed
    clearTimeout(timer)
    return code
  } finally {
    logging.abort()
    feeding.abort()
  }
}

interface Fed {
  readonly pod: string
  readonly input: NodeJS.ReadableStream
  readonly ended: Promise<unknown>
}

/** The node knows that a command has ended before the server does. */
const longestReportMs = 5_000

/** Sends our input to the command. A command that has ended by then needs none. */
async function feed(connection: Connection, { pod, input, ended }: Fed, signal: AbortSignal): Promise<void> {
  const nothing = async () => {}
  const request = { pod, verb: 'attach', command: [], tty: false } as const
  const stdin = input as AsyncIterable<Buffer>
  try {
    await runRemote(connection, request, { stdin, stdout: nothing, stderr: nothing }, signal)
  } catch (error) {
    const isOver = ended.then(
      () => true,
      () => true,
    )
    const late = createSystemClock()
      .sleep(longestReportMs, signal)
      .then(
        () => false,
        () => true,
      )
    if (await Promise.race([isOver, late])) return
    throw new Failed(`the command cannot read stdin: ${(error as Error).message}; without stdin: --no-stdin`)
  } finally {
    // An input that is still open would keep this program.
    if ('destroy' in input) (input as NodeJS.ReadStream).destroy()
  }
}

const neverUnlessFailed = (promise: Promise<unknown>) =>
  new Promise<never>((_resolve, reject) => {
    promise.catch(reject)
  })

/** The pod is deleted now, so what it waited for is told here, and the hint names what stays. */
async function withCause(
  connection: Connection,
  { name, claim = [] }: Attended,
  error: StillWaiting,
): Promise<StillWaiting> {
  const { client, namespace } = connection
  const facts = await gatherFacts(client, { kind: 'Pod', name, namespace }, Date.now())
  const { blocked } = explain(facts)
  const cause = blocked === undefined || error.message.includes(blocked.sentence) ? '' : `: ${blocked.sentence}`
  const fate = await fateOf(connection, name)
  if (!fate.isGone)
    return new StillWaiting(`${error.message}${cause} (${fate.text})`, askAbout('Pod', { name, namespace }))
  const [first] = claim
  const hint = first && askAbout('PersistentVolumeClaim', { name: first.claim, namespace })
  return new StillWaiting(`${error.message}${cause} (the pod was deleted)`, hint)
}

export function started(pod: Pod | undefined): Look<undefined> {
  if (!pod) return { done: true, value: undefined }
  const { state } = pod.status?.containerStatuses?.[0] ?? {}
  if (state?.running || state?.terminated) return { done: true, value: undefined }
  if (hasEnded(pod)) return { done: true, value: undefined }
  const { reason, message } = state?.waiting ?? {}
  if (reason === 'CreateContainerError' || reason === 'RunContainerError')
    return { done: 'failed', message: `it cannot be started: ${message ?? reason}` }
  if (!pod.spec?.nodeName) return { done: false, waiting: `pod ${pod.metadata.name} waits for a node` }
  return { done: false, waiting: `pod ${pod.metadata.name} waits for its volumes on ${pod.spec.nodeName}` }
}

/** Undefined: the pod is gone and took its exit code with it. */
export function exitOf(pod: Pod | undefined): Look<number | undefined> {
  if (!pod) return { done: true, value: undefined }
  const code = pod.status?.containerStatuses?.[0]?.state?.terminated?.exitCode
  if (code !== undefined) return { done: true, value: code }
  if (pod.status?.phase === 'Failed')
    return { done: 'failed', message: pod.status.message ?? pod.status.reason ?? 'the pod failed' }
  // The command talks now; we keep silent.
  return { done: false, waiting: '' }
}

async function requireClaims({ client, namespace }: Connection, mounts: readonly ClaimMount[]): Promise<void> {
  for (const { claim } of mounts) {
    await client.get('PersistentVolumeClaim', { name: claim, namespace }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error
      throw new Missing(
        `there is no claim "${claim}" in namespace ${namespace}`,
        `hawser volume create ${claim} --size 1Gi${inNamespace(namespace)}`,
      )
    })
  }
}

export function mountFrom(text: string): ClaimMount {
  const [claim = '', path = '', option, ...rest] = text.split(':')
  if (
    !claim ||
    !path.startsWith('/') ||
    rest.length > 0 ||
    (option !== undefined && option !== 'ro' && option !== 'rw')
  )
    throw new SyntaxError(`"${text}" is not of the form CLAIM:/PATH or CLAIM:/PATH:ro`)
  return { claim, path, readOnly: option === 'ro' }
}

function environmentFrom(text: string): EnvironmentValue {
  const cut = text.indexOf('=')
  if (cut <= 0) throw new SyntaxError(`"${text}" is not of the form NAME=VALUE`)
  return { name: text.slice(0, cut), value: text.slice(cut + 1) }
}
