// What do all walks through a tree share? Entries are read by descriptor, the depth is limited, and a walk can be cancelled.

import * as fs from 'node:fs'
import { HostError } from '../host-error.ts'
import * as libc from './libc.ts'

/** What a walk may ask of its worker: stop if cancelled, report how far it is. */
export interface WalkContext {
  checkCancelled(): void
  progress(done: number): void
}

const maximumDepth = 2000
export const directoryFlags = libc.O_RDONLY | libc.O_DIRECTORY | libc.O_NOFOLLOW

export function entryNames(directory: number): Buffer[] {
  return fs.readdirSync(descriptorPath(directory), { encoding: 'buffer' })
}

export function descriptorPath(descriptor: number): string {
  return `/proc/self/fd/${descriptor}`
}

export function checkDepth(depth: number): void {
  if (depth > maximumDepth) throw new HostError('ELOOP', `the tree is deeper than ${maximumDepth} directories`)
}
