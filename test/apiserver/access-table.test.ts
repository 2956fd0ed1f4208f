// Does the server do what docs/reference/access.md says? Every kind × subresource × verb × role goes through the real handler and
// is compared with the grant that the page is printed from; what is limited to certain objects is tried with one that is
// meant and one that is not.
import assert from 'node:assert/strict'
import test from 'node:test'
import { kindNames, kinds } from '../../src/api/kinds.ts'
import type { KindInfo, KindName } from '../../src/api/kinds.ts'
import type { Verb } from '../../src/api/kinds/define-kind.ts'
import { allVerbs } from '../../src/api/kinds/define-kind.ts'
import { grantOf, roles } from '../../src/apiserver/access/grants.ts'
import type { Grant, Role } from '../../src/apiserver/access/grants.ts'
import type { User } from '../../src/apiserver/request/call.ts'
import type { TestServer } from '../kit/api-server.ts'
import { claim, makeServer, paths, pod, storageClass, volume } from '../kit/api-server.ts'

const users: Readonly<Record<Role, User>> = {
  admin: { name: 'admin', groups: ['system:masters'] },
  'read-only': { name: 'rita', groups: ['hawser:read-only'] },
  monitoring: { name: 'mona', groups: ['system:monitoring'] },
  controller: { name: 'carl', groups: ['hawser:controllers'] },
  node: { name: 'system:node:n1', groups: ['system:nodes'] },
  'node-bootstrap': { name: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] },
  none: { name: 'nina', groups: [] },
}

interface Target {
  readonly namespace?: string
  readonly name: string
}

/** Objects of which the first has to do with node n1 (or is named by a class) and the second has not. */
const targets: Readonly<Partial<Record<KindName, readonly [Target, Target]>>> = {
  Node: [{ name: 'n1' }, { name: 'n2' }],
  CSINode: [{ name: 'n1' }, { name: 'n2' }],
  Lease: [
    { namespace: 'kube-node-lease', name: 'n1' },
    { namespace: 'kube-node-lease', name: 'n2' },
  ],
  Pod: [{ name: 'mine' }, { name: 'theirs' }],
  Secret: [{ name: 'used' }, { name: 'unused' }],
  ConfigMap: [{ name: 'used' }, { name: 'unused' }],
  ServiceAccount: [{ name: 'default' }, { name: 'unused' }],
  PersistentVolumeClaim: [{ name: 'used' }, { name: 'unused' }],
  PersistentVolume: [{ name: 'used' }, { name: 'unused' }],
  VolumeAttachment: [{ name: 'used' }, { name: 'unused' }],
  Operation: [{ name: 'mine' }, { name: 'theirs' }],
  Event: [{ name: 'mine' }, { name: 'theirs' }],
  EventsEvent: [{ name: 'mine' }, { name: 'theirs' }],
}

/** What the node's scope does not narrow, or narrows by the body only. */
const unlimited: ReadonlySet<string> = new Set(['readAll'])

async function furnished(): Promise<TestServer> {
  const server = await makeServer()
  await server.clock.settle()
  const created = async (path: string, body: unknown) => {
    const { code, body: answer } = await server.post(path, body)
    assert.equal(code, 201, `${path}: ${answer.message}`)
  }
  for (const name of ['n1', 'n2']) {
    await created('/api/v1/nodes', { metadata: { name } })
    await created('/apis/storage.k8s.io/v1/csinodes', { metadata: { name }, spec: { drivers: [] } })
    await created('/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', { metadata: { name } })
  }
  const volumes = [
    { name: 's', secret: { secretName: 'used' } },
    { name: 'm', configMap: { name: 'used' } },
    { name: 'd', persistentVolumeClaim: { claimName: 'used' } },
  ]
  await created(paths.pods, pod('mine', { nodeName: 'n1', volumes }))
  await created(paths.pods, pod('theirs', { nodeName: 'n2', serviceAccountName: 'unused' }))
  const parameters = {
    'csi.storage.k8s.io/provisioner-secret-name': 'used',
    'csi.storage.k8s.io/provisioner-secret-namespace': 'default',
  }
  await created(paths.classes, storageClass('class', { parameters }))
  await created('/api/v1/namespaces/default/serviceaccounts', { metadata: { name: 'unused' } })
  for (const name of ['used', 'unused']) {
    await created(paths.secrets, { metadata: { name } })
    await created(paths.configMaps, { metadata: { name } })
    await created(paths.claims, claim(name))
    await created(paths.volumes, volume(name, { claimRef: { namespace: 'default', name } }))
    const spec = { attacher: 'd', nodeName: name === 'used' ? 'n1' : 'n2', source: { persistentVolumeName: name } }
    await created('/apis/storage.k8s.io/v1/volumeattachments', { metadata: { name }, spec })
  }
  await created('/apis/hawser.dev/v1/operations', operation('mine', 'n1'))
  await created('/apis/hawser.dev/v1/operations', operation('theirs', 'n2'))
  for (const name of ['mine', 'theirs']) await created('/api/v1/namespaces/default/events', event(name, name))
  return server
}

const operation = (name: string, on: string) => ({
  metadata: { name },
  spec: { actor: 'a', operation: 'mount', node: on },
})

const event = (name: string, about: string) => ({
  metadata: { name },
  involvedObject: { kind: 'Pod', namespace: 'default', name: about },
  reportingInstance: about === 'mine' ? 'n1' : 'n2',
})

interface Try {
  readonly info: KindInfo
  readonly subresource: string | undefined
  readonly verb: Verb
}

const methods: Readonly<Record<Verb, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
}

/** Whether the server lets the request in; what it then says of its content does not matter. */
async function isLetIn(server: TestServer, { info, subresource, verb }: Try, target: Target, user: User) {
  const { name } = target
  const root = info.group === '' ? '/api/v1' : `/apis/${info.group}/v1`
  const place = info.namespaced ? `/namespaces/${target.namespace ?? 'default'}` : ''
  const isNamed = subresource !== undefined || ['get', 'update', 'patch', 'delete'].includes(verb)
  const path = [`${root}${place}/${info.plural}`, ...(isNamed ? [name] : []), ...(subresource ? [subresource] : [])]
  const on = name === 'mine' ? 'n1' : 'n2'
  const selectors: Readonly<Record<string, string>> = { Pod: `spec.nodeName=${on}`, Operation: `spec.node=${on}` }
  const selector = selectors[info.name] ?? `metadata.name=${name}`
  const isRead = methods[verb] === 'GET'
  const response = await server.open(methods[verb], path.join('/'), {
    user,
    query: {
      ...(isRead ? {} : { dryRun: 'All' }),
      ...(verb === 'watch' ? { watch: 'true', timeoutSeconds: '1' } : {}),
      ...(isNamed ? {} : { fieldSelector: selector }),
    },
    ...(verb === 'patch' ? { type: 'application/merge-patch+json', body: {} } : {}),
    ...(verb === 'create' ? { body: await bodyFor(server, { info, subresource, verb }, target) } : {}),
    // As it is: what a role may not change of it is tried elsewhere.
    ...(verb === 'update' ? { body: (await server.get(path.slice(0, 2).join('/'))).body } : {}),
  })
  if (!(response.body instanceof Uint8Array)) await response.body[Symbol.asyncIterator]().return?.()
  return response.status !== 403
}

async function bodyFor(server: TestServer, { info, subresource }: Try, { name }: Target): Promise<object> {
  if (info.name === 'Operation') return operation(name, name === 'mine' ? 'n1' : 'n2')
  if (info.name === 'Event') return event(`${name}-new`, name)
  if (info.name === 'EventsEvent') {
    const { involvedObject: regarding, ...rest } = event(`${name}-new`, name)
    const told = { eventTime: '2026-01-01T00:00:00.000000Z', action: 'x', reason: 'y', type: 'Normal' }
    return { ...rest, regarding, reportingController: 'a/b', ...told }
  }
  // A controller makes volumes of drivers only (access.test.ts).
  if (info.name === 'PersistentVolume') return { metadata: { name }, spec: { csi: {} } }
  if (subresource !== 'token') return { metadata: { name } }
  const bound = name === 'default' ? 'mine' : 'theirs'
  const { uid } = (await server.get(`${paths.pods}/${bound}`)).body.metadata
  return { spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: bound, uid } } }
}

function expected(grant: Grant, tried: 'meant' | 'other'): boolean {
  if (grant.to === 'all' || grant.to === 'nothing') return grant.to === 'all'
  if (grant.to === 'namedSecrets' || tried === 'meant') return tried === 'meant'
  return unlimited.has(grant.rule.may)
}

for (const role of roles) {
  test(`the role ${role} may do what its table says, for every kind and verb`, async () => {
    await using server = await furnished()
    const wrong: string[] = []
    for (const kind of kindNames) {
      const info = kinds[kind]
      for (const subresource of [undefined, ...info.subresources.map((each) => each.name)]) {
        for (const verb of verbsOf(info, subresource)) {
          const attempt: Try = { info, subresource, verb }
          const grant = grantOf(role, { group: info.group, resource: info.plural, subresource, verb })
          const [meant, other] = targets[kind] ?? [{ name: 'x' }, { name: 'y' }]
          for (const [tried, target] of [['meant', meant] as const, ['other', other] as const]) {
            const found = await isLetIn(server, attempt, target, users[role])
            if (found !== expected(grant, tried))
              wrong.push(`${verb} ${info.plural}/${subresource ?? ''} ${tried}: let in ${found}, table ${grant.to}`)
          }
        }
      }
    }
    assert.deepEqual(wrong, [])
  })
}

/** Streams need `create`, whatever the method is; other subresources are asked with the verbs that they have. */
function verbsOf(info: KindInfo, subresource: string | undefined): readonly Verb[] {
  if (subresource === undefined) return allVerbs
  const found = info.subresources.find(({ name }) => name === subresource)
  return found?.answeredByNode === 'stream' ? ['create'] : (found?.verbs ?? [])
}
