// Where do programs look for the API server? Service default/kubernetes has its address: on a cluster a virtual one, here the real one.
import { isIP } from 'node:net'
import type { Service } from '../api/generated/types.ts'
import type { Client } from '../client/client.ts'
import { getIfExists } from '../client/get-if-exists.ts'

const ref = { namespace: 'default', name: 'kubernetes' }

export async function publishService(client: Client, url: string): Promise<void> {
  const spec = specOf(new URL(url))
  const known = await getIfExists(client, 'Service', ref)
  if (known === undefined) {
    const labels = { component: 'apiserver', provider: 'kubernetes' }
    await client.create('Service', { apiVersion: 'v1', kind: 'Service', metadata: { ...ref, labels }, spec })
  } else if (JSON.stringify(known.spec) !== JSON.stringify(spec)) await client.update('Service', { ...known, spec })
}

/** A server that is known by a name has no address that one could write down: such services are called headless. */
function specOf({ hostname, port: text }: URL): NonNullable<Service['spec']> {
  const host = hostname.replace(/^\[|\]$/g, '')
  const clusterIP = isIP(host) === 0 ? 'None' : host
  const port = Number(text || 443)
  return {
    ports: [{ name: 'https', protocol: 'TCP', port, targetPort: port }],
    clusterIP,
    type: 'ClusterIP',
    sessionAffinity: 'None',
    ipFamilyPolicy: 'SingleStack',
    clusterIPs: [clusterIP],
    ipFamilies: [isIP(host) === 6 ? 'IPv6' : 'IPv4'],
    internalTrafficPolicy: 'Cluster',
  }
}
