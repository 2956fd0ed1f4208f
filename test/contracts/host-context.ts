// What does a question of the host contract need? A fresh place, a host, and the code of a failure.

import assert from 'node:assert/strict'
import type { Host } from '../../src/host/host.ts'
import { HostError } from '../../src/host/host-error.ts'

export interface HostUnderTest extends AsyncDisposable {
  readonly host: Host
  /** An empty directory on a filesystem that is not a mount of its own. */
  readonly root: string
  /** A sparse file that may back a loop device. */
  makeDiskFile(path: string, sizeBytes: number): Promise<void>
}

export interface HostContext {
  readonly place: () => Promise<string>
  readonly write: (path: string, text: string) => Promise<void>
  readonly signal: AbortSignal
  readonly host: () => Host
  readonly world: () => HostUnderTest
}

export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call
  } catch (error) {
    assert.ok(error instanceof HostError, `expected a HostError, got ${String(error)}`)
    return error.code
  }
  return 'none'
}
