// How do other machines find the server? ConfigMap kube-public/cluster-info says it, as kubeadm's does: a kubeconfig with the
// advertised address and the authority, and without a user.
import { parse, stringify } from 'yaml'
import { ignoreNotFound } from '../api/status-error.ts'
import type { Client } from '../client/client.ts'
import { getIfExists } from '../client/get-if-exists.ts'

export interface ClusterInfo {
  readonly server: string
  /** PEM. */
  readonly authority: string
}

const ref = { namespace: 'kube-public', name: 'cluster-info' }

/** Undefined: there is no address for other machines, and none is told. */
export async function publishClusterInfo(client: Client, info: ClusterInfo | undefined): Promise<void> {
  const known = await getIfExists(client, 'ConfigMap', ref)
  if (info === undefined) {
    if (known) await client.remove('ConfigMap', ref).catch(ignoreNotFound)
    return
  }
  const kubeconfig = textOf(info)
  if (known?.data?.['kubeconfig'] === kubeconfig) return
  const data = { ...known?.data, kubeconfig }
  if (known) await client.update('ConfigMap', { ...known, data })
  else await client.create('ConfigMap', { apiVersion: 'v1', kind: 'ConfigMap', metadata: ref, data })
}

/** Undefined where the server told no address for other machines. */
export async function readClusterInfo(client: Client): Promise<ClusterInfo | undefined> {
  const text = (await getIfExists(client, 'ConfigMap', ref))?.data?.['kubeconfig']
  if (text === undefined) return undefined
  const { clusters } = parse(text) as { clusters?: { cluster?: Readonly<Record<string, string>> }[] }
  const { server, 'certificate-authority-data': data } = clusters?.[0]?.cluster ?? {}
  if (server === undefined || data === undefined) return undefined
  return { server, authority: Buffer.from(data, 'base64').toString('utf8') }
}

function textOf({ server, authority }: ClusterInfo): string {
  const cluster = { 'certificate-authority-data': Buffer.from(authority).toString('base64'), server }
  return stringify({ apiVersion: 'v1', kind: 'Config', clusters: [{ name: '', cluster }] })
}
