import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Advertised } from './addresses.ts'
import { advertisedUrl, certificateNames, localUrl, parseAdvertise } from './addresses.ts'

const machine = { hostName: 'storage', addresses: ['10.0.0.5', '192.168.1.5', '2001:db8::5'] }
const at = (host: string, port = 7443) => ({ host, port })

const cases: readonly [
  what: string,
  facts: { readonly listen: readonly { host: string; port: number }[]; readonly advertise?: readonly Advertised[] },
  local: string,
  advertised: string | undefined,
  names: readonly string[],
][] = [
  ['loopback only', { listen: [at('127.0.0.1')] }, 'https://127.0.0.1:7443', undefined, []],
  ['all addresses', { listen: [at('0.0.0.0')] }, 'https://127.0.0.1:7443', 'https://10.0.0.5:7443', machine.addresses],
  ['all of both kinds', { listen: [at('::')] }, 'https://[::1]:7443', 'https://10.0.0.5:7443', machine.addresses],
  [
    'one address',
    { listen: [at('192.168.1.5')] },
    'https://192.168.1.5:7443',
    'https://192.168.1.5:7443',
    ['192.168.1.5'],
  ],
  [
    'an IPv6 address',
    { listen: [at('2001:db8::5')] },
    'https://[2001:db8::5]:7443',
    'https://[2001:db8::5]:7443',
    ['2001:db8::5'],
  ],
  ['a host name', { listen: [at('db.lan')] }, 'https://db.lan:7443', 'https://db.lan:7443', ['db.lan']],
  [
    'several',
    { listen: [at('192.168.1.5'), at('127.0.0.1', 7000)] },
    'https://127.0.0.1:7000',
    'https://192.168.1.5:7443',
    ['192.168.1.5'],
  ],
  [
    'advertised',
    { listen: [at('0.0.0.0')], advertise: [{ host: 'a.lan' }, { host: 'b.lan', port: 443 }] },
    'https://127.0.0.1:7443',
    'https://a.lan:7443',
    ['a.lan', 'b.lan', ...machine.addresses],
  ],
  [
    'behind a forwarded port',
    { listen: [at('127.0.0.1')], advertise: [{ host: 'a.lan', port: 443 }] },
    'https://127.0.0.1:7443',
    'https://a.lan:443',
    ['a.lan'],
  ],
]

for (const [what, facts, local, advertised, names] of cases) {
  test(`addresses of a server: ${what}`, () => {
    const all = { advertise: [], machine, ...facts }
    const always = ['localhost', '127.0.0.1', '::1', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc']
    assert.deepEqual(
      [localUrl(all), advertisedUrl(all), certificateNames(all)],
      [local, advertised, [...always, 'storage', ...names]],
    )
  })
}

test('what --advertise takes', () => {
  assert.deepEqual(['a.lan', 'a.lan:443', '10.0.0.5', '[::1]:7000', '::1'].map(parseAdvertise), [
    { host: 'a.lan' },
    { host: 'a.lan', port: 443 },
    { host: '10.0.0.5' },
    { host: '::1', port: 7000 },
    { host: '::1' },
  ])
  for (const wrong of ['', 'https://a.lan', 'a lan', 'a.lan:0', 'a.lan:99999', 'a.lan/x', '0.0.0.0', '[::]:1'])
    assert.throws(() => parseAdvertise(wrong), /--advertise takes/, wrong)
})
