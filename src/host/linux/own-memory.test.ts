import assert from 'node:assert/strict'
import { test } from 'node:test'
import { giveBackMemory, untouchedMappings } from './own-memory.ts'

const block = (range: string, mode: string, path: string, dirty: number) =>
  [
    `${range} ${mode} 00001000 fe:00 42                        ${path}`,
    'Rss:                 100 kB',
    'Private_Clean:       100 kB',
    `Private_Dirty:       ${dirty} kB`,
    `Anonymous:           ${dirty} kB`,
    'VmFlags: rd ex mr mw me',
    '',
  ].join('\n')

test('only clean read-only mappings of the program are given back: relocated pages exist nowhere else', () => {
  const smaps = [
    block('1000-3000', 'r-xp', '/opt/node', 0),
    block('3000-4000', 'r--p', '/opt/node', 0),
    block('4000-5000', 'r--p', '/opt/node', 8),
    block('5000-6000', 'rw-p', '/opt/node', 0),
    block('6000-7000', 'r-xp', '/lib/libc.so.6', 0),
    block('7000-8000', 'r-xp', '', 0),
  ].join('')
  assert.deepEqual(untouchedMappings(smaps, '/opt/node'), [
    { start: 0x1000n, length: 0x2000n },
    { start: 0x3000n, length: 0x1000n },
  ])
})

test('the program runs on after its memory was given back, and less of it is resident', () => {
  const before = process.memoryUsage.rss()
  giveBackMemory()
  const after = process.memoryUsage.rss()
  assert.ok(after < before, `${before} -> ${after}`)
  assert.deepEqual(JSON.parse(JSON.stringify({ still: ['works', new Intl.NumberFormat('en').format(1234)] })), {
    still: ['works', '1,234'],
  })
})
