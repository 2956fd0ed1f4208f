// Does every pod get the token of its account, as in Kubernetes, where the server is told to give it?
import assert from 'node:assert/strict'
import test from 'node:test'
import { makeServer, paths } from '../kit/api-server.ts'

const mountPath = '/var/run/secrets/kubernetes.io/serviceaccount'
const own = { name: 'own', mountPath }
const pod = (name: string, more: object = {}, containers: object[] = [{ name: 'c', image: 'x' }]) => ({
  metadata: { name },
  spec: { containers, ...more },
})

async function makePods(...pods: readonly object[]) {
  await using server = await makeServer({ mountsTokens: true })
  await server.clock.settle()
  const accounts = '/api/v1/namespaces/default/serviceaccounts'
  await server.post(accounts, { metadata: { name: 'quiet' }, automountServiceAccountToken: false })
  const answers = []
  for (const each of pods) answers.push(await server.post(paths.pods, each))
  return answers
}
const seen = ({ body }: Awaited<ReturnType<typeof makePods>>[number]) => ({
  volumes: (body.spec.volumes ?? []).map((each: { name: string }) => each.name.replace(/-\w{5}$/, '-*')),
  mounts: [...(body.spec.initContainers ?? []), ...body.spec.containers].map((container) =>
    (container.volumeMounts ?? []).map((each: { name: string }) => each.name.replace(/-\w{5}$/, '-*')),
  ),
})

test('each container gets the token, the authority and the namespace at one path', async () => {
  const init = { initContainers: [{ name: 'i', image: 'x' }] }
  const [made] = await makePods(pod('p', init))
  assert.deepEqual(seen(made!), {
    volumes: ['kube-api-access-*'],
    mounts: [['kube-api-access-*'], ['kube-api-access-*']],
  })
  const { volumes, containers } = made!.body.spec
  assert.deepEqual(containers[0].volumeMounts, [{ name: volumes[0].name, readOnly: true, mountPath }])
  assert.deepEqual(volumes[0].projected, {
    sources: [
      { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      {
        downwardAPI: {
          items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
        },
      },
    ],
    defaultMode: 420,
  })
})

test('the pod may say no, the account may say no, and the pod has the last word', async () => {
  const answers = await makePods(
    pod('no', { automountServiceAccountToken: false }),
    pod('quiet', { serviceAccountName: 'quiet' }),
    pod('loud', { serviceAccountName: 'quiet', automountServiceAccountToken: true }),
  )
  assert.deepEqual(
    answers.map((each) => seen(each).volumes),
    [[], [], ['kube-api-access-*']],
  )
})

test('a container with a volume of its own at that path keeps it', async () => {
  const mine = { name: 'mine', image: 'x', volumeMounts: [own] }
  const volumes = { volumes: [{ name: 'own', emptyDir: {} }] }
  const [one, both] = await makePods(
    pod('one', volumes, [mine]),
    pod('both', volumes, [mine, { name: 'c', image: 'x' }]),
  )
  assert.deepEqual(seen(one!), { volumes: ['own'], mounts: [['own']] })
  assert.deepEqual(seen(both!), { volumes: ['own', 'kube-api-access-*'], mounts: [['own'], ['kube-api-access-*']] })
})

test('a pod of an account that does not exist is refused', async () => {
  const [answer] = await makePods(pod('p', { serviceAccountName: 'nobody' }))
  assert.equal(answer!.code, 403)
  const why = 'error looking up service account default/nobody: serviceaccount "nobody" not found'
  assert.equal(answer!.body.message, `pods "p" is forbidden: ${why}`)
})

test('without the option nothing is added, and an account need not exist', async () => {
  await using server = await makeServer()
  const answer = await server.post(paths.pods, pod('p', { serviceAccountName: 'nobody' }))
  assert.deepEqual([answer.code, answer.body.spec.volumes], [201, undefined])
})
