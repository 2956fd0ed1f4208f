// Is a failed mount told as users know it, and without its secrets? MOUNT-2, TP-19.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mountArguments, mountFailureText, refusalText } from './mount-failure.ts'

const request = { source: '//s/x', target: '/t', type: 'cifs', options: ['vers=3'], secretOptions: ['password=hush'] }

test('one mark stands for each secret option; the program itself gets them (MOUNT-2, TP-19)', () => {
  assert.equal(
    mountFailureText(request, 'mount error(13)', 1),
    'mount failed: exit status 1\nMounting command: mount\nMounting arguments: -t cifs -o vers=3,<masked> //s/x /t\nOutput: mount error(13)\n',
  )
  assert.deepEqual(mountArguments(request, request.secretOptions), [
    '-t',
    'cifs',
    '-o',
    'vers=3,password=hush',
    '//s/x',
    '/t',
  ])
})

test('without options there is no -o, and a refusal of the kernel has the exit status of mount(8)', () => {
  const plain = { ...request, options: [], secretOptions: [] }
  assert.match(
    mountFailureText(plain, refusalText('/t', 'EINVAL')),
    /^mount failed: exit status 32\n[^]*: -t cifs \/\/s/,
  )
  assert.equal(refusalText('/t', 'EPERM'), 'mount: /t: EPERM')
})
