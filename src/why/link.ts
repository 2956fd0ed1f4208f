// What is one step of the chain from wish to deed? Who does it, how far it is, and what holds it up.
import type { OperationRecord } from '../api/generated/types.ts'
import type { Cause, CauseNames } from './causes.ts'
import { parse } from './facts.ts'
import type { Waited } from './facts.ts'

export interface Link {
  /** 'claim data is bound' */
  readonly name: string
  /** 'binding', 'node a', 'csi local.hawser.dev', 'you' */
  readonly actor: string
  readonly state: 'done' | 'working' | 'blocked' | 'later'
  /** When it was done. */
  readonly at?: number
  readonly tookMs?: number
  readonly detail?: string
  readonly block?: Block
}

export interface Block {
  readonly cause: Cause
  readonly names: CauseNames
  readonly since?: number
  readonly error?: { readonly code?: string; readonly message: string; readonly effect?: string }
  /** The operation's step in which it failed. */
  readonly step?: string
  readonly attempts?: number
  readonly nextTry?: number
  /** It is under way or will end soon by itself: nobody needs to be told that something is wrong. */
  readonly transient?: boolean
}

export type BlockFacts = Omit<Block, 'cause' | 'names'>

export function done(name: string, actor: string, record?: OperationRecord, at?: number): Link {
  const finished = parse(record?.status?.finishedAt) ?? at
  const started = parse(record?.status?.startedAt)
  return {
    name,
    actor,
    state: 'done',
    ...(finished === undefined ? {} : { at: finished }),
    ...(finished !== undefined && started !== undefined && finished > started ? { tookMs: finished - started } : {}),
  }
}

export function later(name: string, actor: string): Link {
  return { name, actor, state: 'later' }
}

export function blocked(name: string, actor: string, cause: Cause, names: CauseNames, more: BlockFacts = {}): Link {
  return { name, actor, state: more.transient === true ? 'working' : 'blocked', block: { cause, names, ...more } }
}

/** What a failed operation tells about the block. */
export function failureFacts(record: OperationRecord, wait?: Waited): BlockFacts {
  const { error, attempts, step, startedAt, failingSince, nextTry } = record.status ?? {}
  const since = parse(failingSince) ?? parse(wait?.since) ?? parse(startedAt)
  const next = parse(nextTry) ?? parse(wait?.until)
  return {
    ...(error === undefined ? {} : { error }),
    ...(attempts === undefined ? {} : { attempts }),
    ...(step === undefined ? {} : { step }),
    ...(since === undefined ? {} : { since }),
    ...(next === undefined ? {} : { nextTry: next }),
  }
}

export function waitFacts(wait: Waited | undefined): BlockFacts {
  const since = parse(wait?.since)
  const until = parse(wait?.until)
  return {
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { nextTry: until }),
  }
}

/** What the one who waits said about it. */
export function wordsOf(wait: Waited | undefined): BlockFacts {
  return wait?.message === undefined ? {} : { error: { message: wait.message } }
}

/** What was said when it failed, as a part of the sentence. */
export function wordsIn({ status }: OperationRecord): CauseNames {
  return status?.error === undefined ? {} : { detail: status.error.message }
}

export function sinceFacts(at: number | undefined): BlockFacts {
  return at === undefined ? {} : { since: at }
}
