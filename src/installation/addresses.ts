// By which addresses is a server reached? From what it listens on, what it was told to advertise and what the machine has: the
// names in its certificate, the address for this machine, and the one for others. Pure, except for machineAddresses.
import { isIPv6 } from 'node:net'
import { hostname, networkInterfaces } from 'node:os'
import type { ListenAddress } from './config.ts'
import { UsageError } from './config.ts'

interface MachineAddresses {
  readonly hostName: string
  /** Of every interface but loopback; those that are good on one link only are left out. */
  readonly addresses: readonly string[]
}

export interface AddressFacts {
  /** At least one; with the ports that were really opened. */
  readonly listen: readonly ListenAddress[]
  readonly advertise: readonly Advertised[]
  readonly machine: MachineAddresses
}

/** Without a port: the one that the server listens on. */
export interface Advertised {
  readonly host: string
  readonly port?: number
}

const everywhere: ReadonlySet<string> = new Set(['0.0.0.0', '::'])
const fixedNames = ['localhost', '127.0.0.1', '::1', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc']

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d+){3}$/.test(host)
}

/** The names and addresses in the server's certificate. Ports do not matter. */
export function certificateNames({ listen, advertise, machine }: AddressFacts): readonly string[] {
  const hosts = listen.map(({ host }) => host)
  const own = hosts.some((host) => everywhere.has(host)) ? machine.addresses : []
  const named = [...hosts.filter((host) => !everywhere.has(host)), ...advertise.map(({ host }) => host)]
  return [...new Set([...fixedNames, machine.hostName, ...named, ...own])]
}

/** For programs on this machine: loopback wherever the server listens there. */
export function localUrl({ listen }: Pick<AddressFacts, 'listen'>): string {
  const inner = listen.find(({ host }) => isLoopback(host)) ?? listen.find(({ host }) => everywhere.has(host))
  const { host, port } = inner ?? listen[0]!
  if (host === '0.0.0.0') return urlOf('127.0.0.1', port)
  return urlOf(host === '::' ? '::1' : host, port)
}

/** For other machines; undefined where the server listens on loopback only and advertises nothing. */
export function advertisedUrl({ listen, advertise, machine }: AddressFacts): string | undefined {
  const outer = listen.find(({ host }) => !isLoopback(host))
  const [told] = advertise
  if (told) return urlOf(told.host, told.port ?? (outer ?? listen[0]!).port)
  if (!outer) return undefined
  if (!everywhere.has(outer.host)) return urlOf(outer.host, outer.port)
  const chosen = machine.addresses.find((address) => !isIPv6(address)) ?? machine.addresses[0]
  return chosen === undefined ? undefined : urlOf(chosen, outer.port)
}

/** `HOST` or `HOST:PORT`, and `[::1]:PORT` or a plain IPv6 address. */
export function parseAdvertise(text: string): Advertised {
  const [, inner, plain, digits] = /^(?:\[([^\]]+)\]|([^\s:/[\]]+))(?::(\d+))?$/.exec(text) ?? []
  const host = isIPv6(text) ? text : (inner ?? plain)
  if (host === undefined || Number(digits ?? 1) > 65_535 || Number(digits ?? 1) === 0)
    throw new UsageError(`--advertise takes HOST or HOST:PORT, not "${text}"`, '--advertise storage.example:7443')
  if (everywhere.has(host))
    throw new UsageError(`--advertise takes an address that others reach, not "${text}"`, '--advertise HOST:PORT')
  return digits === undefined || isIPv6(text) ? { host } : { host, port: Number(digits) }
}

export function machineAddresses(): MachineAddresses {
  const all = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
  const addresses = all.filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
  return { hostName: hostname(), addresses: addresses.map(({ address }) => address).toSorted() }
}

function urlOf(host: string, port: number): string {
  return `https://${isIPv6(host) ? `[${host}]` : host}:${port}`
}
