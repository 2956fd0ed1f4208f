// Is it done yet? Follows one object until a pure look at it says so, telling what is waited for after a second.
import { kinds } from '../api/kinds.ts'
import type { KindMap, KindName } from '../api/kinds.ts'
import type { ObjectRef } from '../api/meta.ts'
import { isTooOld } from '../api/status-error.ts'
import type { Client } from '../client/client.ts'
import { UsageError } from '../installation/config.ts'
import type { Context } from './context.ts'
import { StillWaiting } from './errors.ts'
import { askAbout } from './hints.ts'
import { catchInterrupts } from './interrupts.ts'
import { duration, paint } from './output.ts'
import { terminalText } from './terminal-text.ts'
import { watchCause } from './wait-cause.ts'

/** What a look at the object (undefined: it is not there) says. */
export type Look<T> =
  | { readonly done: true; readonly value: T }
  | { readonly done: false; readonly waiting: string }
  | { readonly done: 'failed'; readonly message: string; readonly hint?: string }

export interface WaitRequest<K extends KindName> {
  readonly kind: K
  readonly ref: ObjectRef
  /** Absent: as long as it takes. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** What to say of the object on Ctrl-C or SIGTERM; absent: that it stays. `handled`: whoever waits takes the signals itself. */
  readonly left?: string
  readonly interrupts?: 'handled'
}

export const timeoutFlag = {
  kind: 'parsed',
  parse: secondsFrom,
  default: '120',
  placeholder: 'SECONDS',
  brief: 'Timeout of --wait',
} as const

export const waitFlag = { kind: 'boolean', default: true, brief: 'Wait for completion' } as const

export async function waitUntil<K extends KindName, T>(
  context: Context,
  client: Client,
  request: WaitRequest<K>,
  look: (object: KindMap[K] | undefined) => Look<T>,
): Promise<T> {
  using progress = startProgress(context)
  const { timeoutMs, signal } = request
  using interrupts = request.interrupts === 'handled' ? undefined : catchInterrupts()
  using causes = watchCause(client, request.kind, request.ref, (text) => progress.cause(text))
  const stop = AbortSignal.any([
    causes.inVain,
    ...(interrupts === undefined ? [] : [interrupts.signal]),
    ...(timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)]),
    ...(signal === undefined ? [] : [signal]),
  ])
  const judge = (object: KindMap[K] | undefined): { readonly value: T } | undefined => {
    const seen = look(object)
    if (seen.done === 'failed') throw new StillWaiting(seen.message, seen.hint ?? askAbout(request.kind, request.ref))
    if (seen.done) return { value: seen.value }
    progress.say(seen.waiting)
    return undefined
  }
  while (!stop.aborted) {
    const result = await followOnce(client, request, stop, judge)
    if (result) return result.value
  }
  signal?.throwIfAborted()
  if (interrupts?.signal.aborted)
    throw interrupts.error(request.left ?? stays(request), askAbout(request.kind, request.ref))
  causes.inVain.throwIfAborted()
  const last = progress.last()
  throw new StillWaiting(
    `not done after ${duration(timeoutMs ?? 0)}${last ? `: ${last}` : ''}`,
    askAbout(request.kind, request.ref),
  )
}

const stays = ({ kind, ref }: { readonly kind: KindName; readonly ref: ObjectRef }) =>
  `no longer waiting; ${kinds[kind].singular}/${ref.name} stays, and the server goes on with it`

/** For those who wait for a deletion. */
export const stillDeleted = ({ kind, ref }: { readonly kind: KindName; readonly ref: ObjectRef }) =>
  `no longer waiting; ${kinds[kind].singular}/${ref.name} is still being deleted`

/** One list and one watch after it; undefined when the watch ended before the answer. */
async function followOnce<K extends KindName, R>(
  client: Client,
  { kind, ref }: WaitRequest<K>,
  stop: AbortSignal,
  judge: (object: KindMap[K] | undefined) => R | undefined,
): Promise<R | undefined> {
  const { name, ...scope } = ref
  const options = { ...scope, fieldSelector: `metadata.name=${name}` }
  try {
    const { items, resourceVersion } = await client.list(kind, options, stop)
    const now = judge(items[0])
    if (now !== undefined) return now
    for await (const event of client.watch(kind, { ...options, resourceVersion }, stop)) {
      if (event.type === 'bookmark') continue
      const found = judge(event.type === 'deleted' ? undefined : event.object)
      if (found !== undefined) return found
    }
  } catch (error) {
    if (!stop.aborted && !isTooOld(error)) throw error
  }
  return undefined
}

export interface Progress extends Disposable {
  say(text: string): void
  /** Why it takes long; told beside what is waited for. */
  cause(text: string): void
  last(): string
}

/** Silent in the first second; then a line per change, or one live line on a terminal. */
export function startProgress(context: Context): Progress {
  const start = performance.now()
  const live = process.stderr.isTTY && context.color
  let [asked, because] = ['', '']
  let text = ''
  let told = ''
  const show = () => {
    if (text === '') return
    // A live line is rewritten in place; anywhere else only news is worth a line.
    if (live) {
      const line = terminalText(`${text} (${duration(performance.now() - start)})`, false)
      process.stderr.write(`\r\u001b[K${paint(context, 'dim', line)}`)
    } else if (text !== told) context.note(text)
    told = text
  }
  const timer = setInterval(show, 1_000)
  return {
    say(next) {
      asked = next
      text = both(asked, because)
      if (told !== '') show()
    },
    cause(next) {
      if (next === because) return
      because = next
      text = both(asked, because)
      show()
    },
    last: () => text,
    [Symbol.dispose]() {
      clearInterval(timer)
      if (live && told !== '') process.stderr.write('\r\u001b[K')
    },
  }
}

/** What is waited for, and why it takes long; either may be unknown. */
const both = (asked: string, because: string) => [asked, because].filter((part) => part !== '').join(': ')

export function secondsFrom(text: string): number {
  const seconds = Number(text)
  if (!(seconds > 0)) throw new UsageError(`"${text}" is not a number of seconds above 0`)
  return seconds
}
