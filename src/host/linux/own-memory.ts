// How does this process give memory back to the machine? The allocator's free pages, and the parts of the program that
// only ran at the start: the kernel maps them again, from its cache, when they are needed.
import { readFileSync } from 'node:fs'
import koffi from 'koffi'

const MADV_DONTNEED = 4

const libc = koffi.load('libc.so.6')
const natives = {
  mallocTrim: libc.func('malloc_trim', 'int', ['size_t']),
  madvise: libc.func('madvise', 'int', ['uintptr_t', 'size_t', 'int']),
}

export function giveBackMemory(): void {
  natives.mallocTrim(0)
  for (const { start, length } of untouchedMappings(readFileSync('/proc/self/smaps', 'utf8'), process.execPath)) {
    natives.madvise(start, length, MADV_DONTNEED)
  }
}

export interface Mapping {
  readonly start: bigint
  readonly length: bigint
}

/**
 * Read-only mappings of the program file in which no page was ever written. Any other one must stay: what the loader
 * wrote into it (relocations) is nowhere but in memory.
 */
export function untouchedMappings(smaps: string, program: string): readonly Mapping[] {
  const found: Mapping[] = []
  for (const block of smaps.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
    const head = /^([0-9a-f]+)-([0-9a-f]+) r-[-x]p \S+ \S+ \S+ +(.*)$/m.exec(block)
    if (head === null || head[3] !== program) continue
    if (!/^Private_Dirty: +0 kB$/m.test(block) || !/^Anonymous: +0 kB$/m.test(block)) continue
    const [start, end] = [BigInt(`0x${head[1]}`), BigInt(`0x${head[2]}`)]
    found.push({ start, length: end - start })
  }
  return found
}
