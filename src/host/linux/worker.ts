// What does a host worker thread do? It takes one call after the other, makes it synchronously, and answers.
// If the kernel never returns, this thread is lost; its pool has others.

import * as fs from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import type { DiskUsage } from '../host.ts'
import { HostError } from '../host-error.ts'
import { attachCalls } from './attach-calls.ts'
import { deviceCalls } from './device-calls.ts'
import { callFailure } from './error-text.ts'
import { fileCalls } from './file-calls.ts'
import { mountCalls } from './mount-calls.ts'
import { treeCalls } from './tree-calls.ts'
import type { WalkContext } from './tree-walk.ts'

interface WorkerRequest {
  readonly id: number
  readonly call: string
  readonly parameters: readonly unknown[]
}
export type WorkerAnswer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly id: number; readonly value: unknown }
  | {
      readonly kind: 'failed'
      readonly id: number
      readonly code: string
      readonly message: string
      readonly path: string | undefined
    }
  | { readonly kind: 'progress'; readonly id: number; readonly done: number }

export type HostCalls = ReturnType<typeof createHostCalls>

if (parentPort) serveCalls(parentPort, workerData as Int32Array) // a word of shared memory, see `Thread.cancelled`

function serveCalls(port: MessagePort, cancelled: Int32Array): void {
  let current = 0
  const post = (message: WorkerAnswer) => port.postMessage(message)
  const calls = createHostCalls({
    checkCancelled() {
      if (Atomics.load(cancelled, 0) === current) throw new HostError('ABORTED', 'the walk was given up')
    },
    progress(done) {
      post({ kind: 'progress', id: current, done })
    },
  })
  port.on('message', (request: WorkerRequest) => {
    current = request.id
    post(answer(calls, request))
  })
  post({ kind: 'ready' })
}

function createHostCalls(context: WalkContext) {
  return { ...fileCalls, ...mountCalls, ...deviceCalls, ...attachCalls, ...treeCalls(context), usage }
}

function answer(calls: HostCalls, request: WorkerRequest): WorkerAnswer {
  try {
    const call = calls[request.call as keyof HostCalls] as (...parameters: readonly unknown[]) => unknown
    return { kind: 'done', id: request.id, value: call(...request.parameters) }
  } catch (error) {
    const { code = 'BUG', message, path, syscall } = error as NodeJS.ErrnoException
    // A call on an open file knows no path; the caller named one.
    const [asked] = request.parameters
    const named = path ?? (typeof asked === 'string' ? asked : undefined)
    const text = syscall === undefined || named === undefined ? message : callFailure(syscall, named, code)
    return { kind: 'failed', id: request.id, code, message: text, path }
  }
}

const filesystemNames: ReadonlyMap<bigint, string> = new Map([
  [0x01021994n, 'tmpfs'],
  [0x958458f6n, 'hugetlbfs'],
  [0xef53n, 'ext'],
  [0x58465342n, 'xfs'],
  [0x9123683en, 'btrfs'],
  [0x6969n, 'nfs'],
  [0x794c7630n, 'overlay'],
  [0x65735546n, 'fuse'],
  [0xff534d42n, 'cifs'],
])

function usage(path: string): DiskUsage {
  const answer = fs.statfsSync(path, { bigint: true })
  return {
    capacityBytes: answer.blocks * answer.bsize,
    availableBytes: answer.bavail * answer.bsize,
    usedBytes: (answer.blocks - answer.bfree) * answer.bsize,
    inodes: answer.files,
    inodesFree: answer.ffree,
    inodesUsed: answer.files - answer.ffree,
    type: filesystemNames.get(BigInt.asUintN(32, answer.type)) ?? `0x${BigInt.asUintN(32, answer.type).toString(16)}`,
  }
}
