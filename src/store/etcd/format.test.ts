import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decideClaim } from './format.ts'

const move = { cluster: 'u', epoch: 5, from: '/data on host' }
const movingIn = { kind: 'movingIn', ...move } as const
const movedOut = { kind: 'movedOut', to: '/data on host', epoch: 6 } as const
const nothing = { count: 0, first: '' }
const some = { count: 3, first: '/registry/pods/default/a' }
const serve = { kind: 'serve', adopt: false } as const
const moveIn = { kind: 'moveIn', move } as const
const moveOut = { kind: 'moveOut', to: '/data on host' } as const

test('a prefix is used, marked or refused by what lies there and what for', () => {
  const cases = [
    [{ kind: 'none' }, serve, nothing, 'write open'],
    [{ kind: 'none' }, serve, some, /holds 3 keys of another program .*--etcd-adopt/],
    [{ kind: 'none' }, { kind: 'serve', adopt: true }, some, 'write open'],
    [{ kind: 'open' }, serve, nothing, 'use open'],
    [movingIn, serve, nothing, /a part of the objects of \/data on host .*Give the command that moves them again/],
    [movedOut, serve, nothing, /were moved to \/data on host: start Hawser there/],
    [{ kind: 'newer', format: 3 }, serve, nothing, /newer version of Hawser \(format 3/],
    [{ kind: 'unreadable' }, serve, nothing, /a mark that cannot be read/],
    [{ kind: 'none' }, moveIn, nothing, 'write movingIn'],
    [{ kind: 'open' }, moveIn, nothing, 'write movingIn'],
    [{ kind: 'open' }, moveIn, some, /is not empty \(3 keys.*nothing is ever overwritten.*etcdctl del/],
    [{ kind: 'none' }, moveIn, some, /is not empty/],
    [movingIn, moveIn, nothing, 'use movingIn'],
    [{ ...movingIn, cluster: 'other' }, moveIn, nothing, /cluster other\): their move is not finished/],
    [movedOut, moveIn, nothing, /were moved to/],
    [{ kind: 'open' }, moveOut, nothing, 'use open'],
    [{ kind: 'none' }, moveOut, some, /holds no objects of Hawser/],
    [movedOut, moveOut, nothing, 'use movedOut'],
    [movedOut, { kind: 'moveOut', to: '/other' }, nothing, /were moved to \/data on host/],
    [movingIn, moveOut, nothing, /their move is not finished/],
  ] as const
  for (const [mark, use, found, expected] of cases) {
    const claim = decideClaim(mark, use, found, { prefix: '/registry', at: 'http://e:2379' })
    const text = claim.kind === 'refuse' ? claim.sentence : `${claim.kind} ${claim.mark.kind}`
    if (typeof expected === 'string') assert.equal(text, expected)
    else assert.match(text, expected)
  }
})
