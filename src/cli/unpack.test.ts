// Does an archive from a pod stay where it belongs? What GNU tar and busybox write arrives whole, in whatever pieces; what a hostile
// pod writes makes nothing outside of the directory, and nothing in it but files, directories and links that stay inside.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { readTar, TarError } from './tar.ts'
import { unpack } from './unpack.ts'

const base = mkdtempSync(join(tmpdir(), 'hawser-unpack-'))
after(() => rmSync(base, { recursive: true, force: true }))
let made = 0
function fresh(): string {
  const path = join(base, String(made++), 'to')
  mkdirSync(path, { recursive: true })
  return path
}

async function* pieces(bytes: Buffer, size = 10_000): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

interface Made {
  readonly name: string
  readonly type?: string
  readonly target?: string
  readonly text?: string
  readonly mode?: number
  readonly size?: number
}

function archive(...entries: readonly Made[]): Buffer {
  return Buffer.concat([...entries.map(entryBytes), Buffer.alloc(1024)])
}

function entryBytes({ name, type = '0', target = '', text = '', mode = 0o644, size }: Made): Buffer {
  const head = Buffer.alloc(512)
  const octal = (value: number, at: number, length: number) =>
    head.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
  head.write(name, 0)
  octal(mode, 100, 8)
  octal(size ?? text.length, 124, 12)
  octal(1_700_000_000, 136, 12)
  head.write(type, 156)
  head.write(target, 157)
  head.write('ustar\x0000', 257)
  head.write(' '.repeat(8), 148)
  octal(
    head.reduce((sum, byte) => sum + byte, 0),
    148,
    8,
  )
  const body = Buffer.alloc(Math.ceil(text.length / 512) * 512)
  body.write(text)
  return Buffer.concat([head, body])
}

/** Every path below, with what it is; links are not followed. */
function tree(path: string, prefix = ''): Record<string, string> {
  const entries = readdirSync(path, { withFileTypes: true }).map((entry): Record<string, string> => {
    const [name, inside] = [`${prefix}${entry.name}`, join(path, entry.name)]
    if (entry.isSymbolicLink()) return { [name]: `-> ${readlinkSync(inside)}` }
    if (entry.isDirectory()) return { [name]: 'directory', ...tree(inside, `${name}/`) }
    return { [name]: entry.isFile() ? readFileSync(inside, 'utf8').slice(0, 20) : 'something else' }
  })
  return Object.assign({}, ...entries) as Record<string, string>
}

const hasBusybox = spawnSync('busybox', ['tar', '--help']).status === 0
const writers: readonly (readonly [string, readonly string[], boolean])[] = [
  ['GNU tar', ['tar'], true],
  ['GNU tar, POSIX', ['tar', '--format=pax'], true],
  ['GNU tar, ustar', ['tar', '--format=ustar'], false],
  ['busybox', ['busybox', 'tar'], true],
]
for (const [name, [program = '', ...words], longNames] of writers) {
  const skip = program === 'busybox' && !hasBusybox ? 'no busybox' : false
  test(`what ${name} packs is unpacked, in pieces of every kind`, { skip }, async () => {
    const from = fresh()
    mkdirSync(join(from, 'sub', 'x'.repeat(80), 'y'.repeat(80)), { recursive: true })
    writeFileSync(join(from, 'sub', 'x'.repeat(80), 'y'.repeat(80), 'deep'), 'deep')
    if (longNames) writeFileSync(join(from, 'ü'.repeat(120)), 'long')
    writeFileSync(join(from, 'empty'), '')
    writeFileSync(join(from, 'program'), '#!/bin/sh', { mode: 0o755 })
    utimesSync(join(from, 'program'), 1_600_000_000, 1_600_000_000)
    writeFileSync(join(from, 'block'), 'b'.repeat(512))
    symlinkSync('../program', join(from, 'sub', 'link'))
    linkSync(join(from, 'block'), join(from, 'same'))
    const bytes = execFileSync(program, [...words, '-cf', '-', '-C', from, '.'], { maxBuffer: 1e8 })
    for (const size of [1, 511, 100_000]) {
      const to = fresh()
      await unpack(pieces(bytes, size), to, assert.fail)
      assert.deepEqual(tree(to), tree(from))
      const { mode, mtimeMs } = statSync(join(to, 'program'))
      assert.deepEqual([mode & 0o777, mtimeMs], [0o755 & ~process.umask(), 1_600_000_000_000])
    }
  })
}

test('a file from before 1970 is a file like any', async () => {
  const from = fresh()
  writeFileSync(join(from, 'old'), 'old')
  // Node takes a time below zero for now.
  execFileSync('touch', ['-d', '@-1000', join(from, 'old')])
  for (const format of ['gnu', 'pax']) {
    const to = fresh()
    const bytes = execFileSync('tar', [`--format=${format}`, '-cf', '-', '-C', from, '.'])
    await unpack(pieces(bytes), to, assert.fail)
    assert.deepEqual(tree(to), { old: 'old' })
  }
})

test('names that lead out of the directory are left out, and told', async () => {
  const to = fresh()
  const notes: string[] = []
  const names = ['../up', '/abs', 'a/../../up', './../up', '..']
  const bytes = archive(...names.map((name) => ({ name, text: 'evil' })), { name: 'good', text: 'good' })
  await unpack(pieces(bytes), to, (text) => notes.push(text))
  assert.deepEqual(tree(join(to, '..')), { to: 'directory', 'to/good': 'good' })
  assert.equal(existsSync('/abs'), false)
  assert.deepEqual(
    notes,
    names.map((name) => `left out "${name}": its path leads out of the directory`),
  )
})

test('links to elsewhere are left out; nothing is written through a link, new or old', async () => {
  const to = fresh()
  const outside = join(to, '..', 'outside')
  mkdirSync(outside)
  writeFileSync(join(outside, 'f'), 'untouched')
  const links = ['/etc', '../outside', 'x/../../outside', '..', '', 'in/..']
  const bytes = archive(
    { name: 'in', type: '5' },
    ...links.map((target, index) => ({ name: `l${index}`, type: '2', target })),
    { name: 'in/back', type: '2', target: '../in' },
    { name: 'in/out', type: '2', target: '../../outside' },
  )
  const notes: string[] = []
  await unpack(pieces(bytes), to, (text) => notes.push(text))
  assert.deepEqual(tree(to), { in: 'directory', 'in/back': '-> ../in' })
  assert.equal(notes.length, links.length + 1)
  // A link that was here before, and one of the archive's own.
  symlinkSync(outside, join(to, 'here'))
  const through = [
    { name: 'here/f', text: 'evil' },
    { name: 'in/back/f', text: 'evil' },
    { name: 'here', type: '5' },
  ]
  for (const entry of through)
    await assert.rejects(unpack(pieces(archive(entry)), to, assert.fail), /is no directory here/)
  await unpack(pieces(archive({ name: 'h', type: '1', target: 'here/f' })), to, (text) => notes.push(text))
  assert.match(notes.at(-1)!, /^left out "h": it is a link to "here\/f", which is not here$/)
  // A file in the place of a link replaces it.
  symlinkSync(join(outside, 'f'), join(to, 'file'))
  await unpack(pieces(archive({ name: 'file', text: 'new' })), to, assert.fail)
  assert.equal(readFileSync(join(to, 'file'), 'utf8'), 'new')
  assert.deepEqual(tree(outside), { f: 'untouched' })
})

test('no devices, no pipes, no set-user bits', async () => {
  const to = fresh()
  const notes: string[] = []
  const bytes = archive(
    { name: 'disk', type: '4' },
    { name: 'tty', type: '3' },
    { name: 'pipe', type: '6' },
    { name: 'sparse', type: 'S', text: 'x' },
    { name: 'su', text: 'x', mode: 0o6755 },
    { name: 'sticky', type: '5', mode: 0o7777 },
  )
  await unpack(pieces(bytes), to, (text) => notes.push(text))
  assert.deepEqual(tree(to), { sticky: 'directory', su: 'x' })
  assert.equal(notes.length, 4)
  for (const name of ['su', 'sticky']) assert.equal(statSync(join(to, name)).mode & 0o7000, 0)
})

test('what is no archive, or half of one, is said to be so', async () => {
  const whole = archive({ name: 'f', text: 'x'.repeat(1000) })
  const read = async (bytes: Buffer) => {
    for await (const { content } of readTar(pieces(bytes))) for await (const piece of content) void piece
  }
  for (const length of [0, 100, 512, 700, 1500, 1536]) {
    await assert.rejects(read(whole.subarray(0, length)), TarError, `cut at ${length}`)
  }
  await assert.rejects(read(Buffer.alloc(2_000, 'no archive')), /is no tar archive/)
  await assert.rejects(read(archive({ name: 'x', type: 'L', size: 2 ** 30 })), /a name of 1073741824 bytes/)
  for (const text of ['99 path=x\n', 'path=x\n', '6 =x\n', '8 size=-1', '9 size=-1\n']) {
    await assert.rejects(read(archive({ name: 'x', type: 'x', text }, { name: 'f' })), TarError, text)
  }
})

test('a file that cannot be made is named', async () => {
  const to = fresh()
  mkdirSync(join(to, 'taken'))
  await assert.rejects(
    unpack(pieces(archive({ name: 'taken', text: 'x' })), to, assert.fail),
    /taken is a directory here, but none in the pod/,
  )
  const name = 'n'.repeat(300)
  const records = `${name.length + 10} path=${name}\n`
  await assert.rejects(
    unpack(pieces(archive({ name: 'x', type: 'x', text: records }, { name: 'f' })), to, assert.fail),
    /^Failed: "n+" cannot be made here: ENAMETOOLONG/,
  )
})

test('names that are not UTF-8 are told and left out: two of them would become one file', async () => {
  const from = fresh()
  for (const byte of [0xfe, 0xff])
    writeFileSync(Buffer.concat([Buffer.from(`${from}/a`), Buffer.from([byte])]), String(byte))
  writeFileSync(join(from, 'ä'), 'text')
  for (const format of ['gnu', 'posix']) {
    const to = fresh()
    const notes: string[] = []
    const bytes = execFileSync('tar', [`--format=${format}`, '-cf', '-', '-C', from, '.'])
    await unpack(pieces(bytes), to, (text) => notes.push(text))
    assert.deepEqual(readdirSync(to), ['ä'])
    assert.equal(notes.filter((text) => /is not valid UTF-8/.test(text)).length, 2, notes.join('\n'))
  }
})
