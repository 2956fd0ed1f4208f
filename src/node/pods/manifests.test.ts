// Are manifests read as an API server would read them, and told without their contents where they are wrong?
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeName } from '../../api/names.ts'
import { parseManifests } from './manifests.ts'

const origin = { node: 'n1' as NodeName, source: 'file', seen: '2026-01-01T00:00:00Z' } as const
const parse = (text: string) => parseManifests(text, origin)
const good =
  'kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}], volumes: [{name: v, configMap: {name: m}}]}\n'

test('a pod gets its node, its uid and the defaults of the API; documents and lists count alike', () => {
  const [pod] = parse(good).pods
  assert.deepEqual(
    [pod?.metadata.name, pod?.metadata.namespace, pod?.spec?.nodeName, pod?.spec?.restartPolicy],
    ['a-n1', 'default', 'n1', 'Always'],
  )
  assert.equal(pod?.spec?.volumes?.[0]?.configMap?.defaultMode, 0o644)
  assert.match(pod?.metadata.uid ?? '', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
  assert.equal(parse(`${good}---\n${good.replace('name: a', 'name: b')}`).pods.length, 2)
  const list = JSON.stringify({ kind: 'PodList', items: [pod, pod] })
  assert.equal(parse(list).pods.length, 2)
  assert.notEqual(parse(good.replace('image: i', 'image: j')).pods[0]?.metadata.uid, pod?.metadata.uid)
})

test('what is wrong is told by its place, without a word of the text; the other documents count', () => {
  const { pods, problems } = parse(`${good}---\nkind: Pod\nenv: [hunter2\n  password: hunter2\n---\n${good}`)
  assert.equal(pods.length, 2)
  assert.deepEqual(
    problems.map(({ message }) => [/^line \d+: /.test(message), message.includes('hunter2')]),
    [[true, false]],
  )
})

test('names that would lead elsewhere, fields that do not exist and foreign kinds are refused', () => {
  const wrong = [
    good.replace('name: v', 'name: ../v'),
    good.replace('name: c,', 'name: ../c,'),
    good.replace('{name: a}', '{name: ../a}'),
    good.replace('{name: a}', '{name: a, uid: ../u}'),
    good.replace('image: i', 'image: [1]'),
    'kind: Secret\nmetadata: {name: a}\n',
    'kind: Pod\nmetadata: {name: a}\nspec: {containers: [null]}\n',
    '5',
  ]
  for (const text of wrong) assert.deepEqual([parse(text).pods.length, parse(text).problems.length], [0, 1], text)
})
