// Volumes made from objects of the API, beside the recorded cases: updates, modes, keys and objects that are missing, and
// what a fsGroup or a user changes. Expectations are worked out from CONF-*, ATOMIC-*, FSG-*, EMPTY-*.
import type { Case } from './pictures.ts'
import { data, define, emptyDir, pod, together } from './pictures.ts'
import {
  configMap,
  content,
  create,
  event,
  inVolume,
  patch,
  podWith,
  refused,
  remove,
  running,
  secret,
} from './objects.ts'

const failed = (name: string, volume: string, text: string) =>
  `Pod/${name} Warning FailedMount: MountVolume.SetUp failed for volume "${volume}" : ${text}`
const tokenAndMap = {
  name: 'v',
  projected: { sources: [{ serviceAccountToken: { path: 'token' } }, { configMap: { name: 'c' } }] },
}
const one = { pods: ['p'] }

export const apiVolumes: readonly Case[] = [
  define(
    'configmap-update',
    'a key changes, one goes, one comes: one new directory, its links as the keys are (ATOMIC-3).',
    one,
    [
      {
        name: 'mounted',
        do: [configMap('c', { a: '1', b: '2' }), podWith('p', [{ name: 'v', configMap: { name: 'c' } }])],
        wait: running('p'),
        expect: pod('p', data('configmap', 'v', { files: { a: '1', b: '2' } })),
      },
      {
        name: 'updated',
        do: [patch('ConfigMap', 'c', { data: { a: '9', b: null, c: '3' } })],
        wait: [content(inVolume('p', 'configmap', 'v/c'), '3')],
        timeout: 200,
        expect: pod('p', data('configmap', 'v', { files: { a: '9', c: '3' }, stamp: 2 })),
      },
      {
        name: 'emptied',
        do: [patch('ConfigMap', 'c', { data: null })],
        wait: [{ gone: inVolume('p', 'configmap', 'v/a') }],
        timeout: 200,
        expect: pod('p', data('configmap', 'v', { stamp: 3 })),
      },
    ],
  ),
  define('configmap-missing-key', 'a key that is not there is an error until it is there (CONF-6).', one, [
    {
      name: 'failed',
      do: [
        configMap('c', { a: '1' }),
        podWith('p', [
          {
            name: 'v',
            configMap: {
              name: 'c',
              items: [
                { key: 'a', path: 'a' },
                { key: 'late', path: 'x/late' },
              ],
            },
          },
        ]),
      ],
      wait: [event('p', 'FailedMount')],
      expect: { ...pod('p'), events: [failed('p', 'v', 'configmap references non-existent config key: late')] },
    },
    {
      name: 'recovered',
      do: [patch('ConfigMap', 'c', { data: { late: '2' } })],
      wait: running('p'),
      timeout: 180,
      expect: {
        ...pod('p', data('configmap', 'v', { files: { a: '1', 'x/late': '2' } })),
        events: [failed('p', 'v', 'configmap references non-existent config key: late')],
      },
    },
  ]),
  define('configmap-deleted-meanwhile', 'without its object a running pod keeps what it has (CONF-3, REC-9).', one, [
    {
      name: 'mounted',
      do: [
        configMap('c', { a: '1' }),
        configMap('o', { a: '1' }),
        podWith('p', [
          { name: 'v', configMap: { name: 'c' } },
          { name: 'o', configMap: { name: 'o', optional: true } },
        ]),
      ],
      wait: running('p'),
      expect: pod('p', data('configmap', 'v', { files: { a: '1' } }), data('configmap', 'o', { files: { a: '1' } })),
    },
    {
      name: 'objects gone',
      do: [remove('ConfigMap', 'c'), remove('ConfigMap', 'o')],
      wait: [event('p', 'FailedMount'), { gone: inVolume('p', 'configmap', 'o/a') }],
      timeout: 200,
      expect: {
        ...pod('p', data('configmap', 'v', { files: { a: '1' } }), data('configmap', 'o', { stamp: 2 })),
        events: [failed('p', 'v', 'configmap "c" not found')],
      },
    },
  ]),
  define(
    'secret-update',
    'an update of a secret, and one that the API refuses because the object is immutable (ATOMIC-3).',
    one,
    [
      {
        name: 'mounted',
        do: [
          secret('s', { k: 'old' }),
          secret('i', { k: 'same' }, { immutable: true }),
          podWith('p', [
            { name: 'v', secret: { secretName: 's' } },
            { name: 'i', secret: { secretName: 'i' } },
          ]),
        ],
        wait: running('p'),
        expect: pod('p', data('secret', 'v', { files: { k: 'old' } }), data('secret', 'i', { files: { k: 'same' } })),
      },
      {
        name: 'updated',
        do: [
          refused('Secret', 'i', { stringData: { k: 'other' } }),
          patch('Secret', 's', { stringData: { k: 'new' } }),
        ],
        wait: [content(inVolume('p', 'secret', 'v/k'), 'new')],
        timeout: 200,
        expect: pod(
          'p',
          data('secret', 'v', { files: { k: 'new' }, stamp: 2 }),
          data('secret', 'i', { files: { k: 'same' } }),
        ),
      },
    ],
  ),
  define(
    'downward-annotations',
    'all annotations, among them the two that the agent adds; changes follow (CONF-7).',
    one,
    [
      {
        name: 'mounted',
        do: [
          podWith(
            'p',
            [
              {
                name: 'v',
                downwardAPI: {
                  items: [
                    { path: 'annotations', fieldRef: { fieldPath: 'metadata.annotations' } },
                    { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
                  ],
                },
              },
            ],
            {},
            { annotations: { 'b/c': 'two "quoted"\nlines', a: 'x' } },
          ),
        ],
        wait: running('p'),
        expect: pod(
          'p',
          data('downward-api', 'v', {
            files: { annotations: annotations('a="x"', 'b/c="two \\"quoted\\"\\nlines"'), labels: '' },
          }),
        ),
      },
      {
        name: 'changed',
        do: [patch('Pod', 'p', { metadata: { labels: { l: '1' }, annotations: { a: null, d: '' } } })],
        wait: [content(inVolume('p', 'downward-api', 'v/labels'), 'l="1"')],
        timeout: 200,
        expect: pod(
          'p',
          data('downward-api', 'v', {
            files: { annotations: annotations('b/c="two \\"quoted\\"\\nlines"', 'd=""'), labels: 'l="1"' },
            stamp: 2,
          }),
        ),
      },
    ],
  ),
  define(
    'projected-collision',
    'of two sources with one path the later wins; a path can become a directory (CONF-8).',
    one,
    [
      {
        name: 'mounted',
        do: [
          configMap('c', { k: 'first', only: '1' }),
          secret('s', { k: 'second' }),
          podWith('p', [
            {
              name: 'v',
              projected: {
                defaultMode: 0o400,
                sources: [
                  { configMap: { name: 'c' } },
                  { secret: { name: 's' } },
                  { configMap: { name: 'c', items: [{ key: 'only', path: 'd/e/only', mode: 0o666 }] } },
                ],
              },
            },
          ]),
        ],
        wait: running('p'),
        expect: pod(
          'p',
          data('projected', 'v', {
            files: {
              k: { content: 'second', mode: '0400' },
              only: { content: '1', mode: '0400' },
              'd/e/only': { content: '1', mode: '0666' },
            },
          }),
        ),
      },
    ],
  ),
  define(
    'projected-token-owner',
    'a token belongs to the one user of the pod, or to its fsGroup (CONF-9, FSG-6).',
    { pods: ['user', 'group'] },
    [
      {
        name: 'mounted',
        do: [
          create({ kind: 'ServiceAccount', metadata: { name: 'robot' } }),
          configMap('c', { k: '1' }),
          podWith('user', [tokenAndMap], { serviceAccountName: 'robot', securityContext: { runAsUser: 1000 } }),
          podWith('group', [tokenAndMap], { serviceAccountName: 'robot', securityContext: { fsGroup: 2000 } }),
        ],
        wait: running('user', 'group'),
        expect: together(
          pod('user', data('projected', 'v', { files: { token: token('user', '0600', '1000:0'), k: '1' } })),
          pod(
            'group',
            data('projected', 'v', { files: { token: token('group', '0640', '0:2000'), k: '1' }, fsGroup: 2000 }),
          ),
        ),
      },
    ],
  ),
  define('emptydir-fsgroup', 'a group on volumes of disk and of memory (FSG-3, FSG-5).', one, [
    {
      name: 'mounted',
      do: [
        podWith(
          'p',
          [
            { name: 'd', emptyDir: {} },
            { name: 'm', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
          ],
          { securityContext: { fsGroup: 2000, fsGroupChangePolicy: 'OnRootMismatch' } },
        ),
      ],
      wait: running('p'),
      expect: pod('p', emptyDir('d', { fsGroup: 2000 }), emptyDir('m', { fsGroup: 2000, size: '1024k' })),
    },
  ]),
]

function annotations(...own: readonly string[]): string {
  return [...own, 'kubernetes.io/config.seen="<time>"', 'kubernetes.io/config.source="api"'].join('\n')
}

function token(name: string, mode: string, owner: string) {
  const audience = 'aud=["https://kubernetes.default.svc"] seconds=3600'
  const text = `token{${audience} sub=system:serviceaccount:<ns>:robot pod=${name}/<uid:${name}> serviceaccount=robot}`
  return { content: text, mode, owner }
}
