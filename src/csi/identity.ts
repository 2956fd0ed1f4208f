// Who is behind this socket, is it ready, and which services does it offer? (SIDE-1)
import type { Clock } from '../clock/clock.ts'
import type { DriverWaitReason } from '../volume/wait-reasons.ts'
import { CsiError } from './codes.ts'
import { createCall, timeouts } from './deadline.ts'
import { PluginCapability_Service_Type } from './generated/csi_pb.ts'
import type { DriverWire } from './service.ts'
import { namesOf } from './values.ts'
import type { PluginCapabilityName, Strings } from './values.ts'

interface PluginInfo {
  readonly name: string
  readonly version: string
  readonly manifest: Strings
}

/** Why a driver that can be reached is not used yet. */
type ProbeWaitReason = Extract<DriverWaitReason, 'driverSilent' | 'driverUnready'>

export interface IdentityCalls {
  /** One Probe: an absent `ready` means ready. */
  probe(signal: AbortSignal): Promise<boolean>
  /**
   * Probes every second; "not ready" and a late answer are retried, any other failure is thrown (SIDE-1). `onWait` hears
   * which of the two it was.
   */
  waitReady(signal: AbortSignal, onWait?: (reason: ProbeWaitReason) => void): Promise<void>
  info(signal: AbortSignal): Promise<PluginInfo>
  capabilities(signal: AbortSignal): Promise<ReadonlySet<PluginCapabilityName>>
}

export function createIdentityCalls(deps: {
  readonly wire: DriverWire
  readonly clock: Clock
  readonly timeoutMs?: number
}): IdentityCalls {
  const { clock } = deps
  const { identity } = deps.wire
  const call = createCall(clock, deps.timeoutMs ?? timeouts.provisioner)
  const probe = async (signal: AbortSignal) => {
    const answer = await call('Probe', (options) => identity.probe({}, options), signal)
    return answer.ready ?? true
  }
  return {
    probe,
    async waitReady(signal, onWait) {
      for (;;) {
        const answer = await probe(signal).catch(silentIfLate)
        if (answer === true) return
        onWait?.(answer === false ? 'driverUnready' : 'driverSilent')
        await clock.sleep(1_000, signal)
      }
    },
    async info(signal) {
      const answer = await call('GetPluginInfo', (options) => identity.getPluginInfo({}, options), signal)
      if (answer.name === '') throw new CsiError('INTERNAL', 'driver name is empty', { rpc: 'GetPluginInfo' })
      return { name: answer.name, version: answer.vendorVersion, manifest: answer.manifest }
    },
    async capabilities(signal) {
      const rpc = 'GetPluginCapabilities'
      const answer = await call(rpc, (options) => identity.getPluginCapabilities({}, options), signal)
      const numbers = answer.capabilities.map(({ type }) => (type.case === 'service' ? type.value.type : undefined))
      return namesOf(numbers, PluginCapability_Service_Type)
    },
  }
}

function silentIfLate(error: unknown): 'silent' {
  if (error instanceof CsiError && error.status === 'DEADLINE_EXCEEDED') return 'silent'
  throw error
}
