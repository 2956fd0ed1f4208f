// How does a driver grow what is mounted here, and what does it say about its use? NodeExpandVolume and
// NodeGetVolumeStats (CSI-60, CSI-61, CSI-70).
import { VolumeError } from '../../volume/effect.ts'
import type { NodePlugin } from '../../volume/plugin.ts'
import { hasNotGrown, withoutEffect } from './effects.ts'
import { findDriver, persistent } from './mount.ts'
import { capabilityOf, readSecret, sourceOf } from './source.ts'
import type { CsiNodeDeps } from './source.ts'

const operationMs = 120_000
/** One hung driver must not stall the round of all others (WART-28). */
const statsMs = 15_000
const measureMs = 5_000

export function createExpander(
  deps: CsiNodeDeps,
): Required<Pick<NodePlugin, 'expand' | 'requiresResize' | 'usage' | 'health'>> {
  return {
    requiresResize: (spec) => sourceOf(spec).lifecycle === 'Persistent',
    async expand({ spec, oldBytes, newBytes, path, stagingPath, devicePath }, outer) {
      using deadline = deps.clock.deadline(operationMs, outer)
      const { signal } = deadline
      const source = persistent(spec)
      const driver = findDriver(deps, source.driver, 'Expander.NodeExpand failed to create CSI client')
      const capabilities = await driver.nodeCapabilities(signal)
      if (!capabilities.has('EXPAND_VOLUME')) {
        throw notSupported(
          `kubernetes.io/csi: Expander.NodeExpand: driver ${source.driver} does not support node expansion`,
        )
      }
      const secrets = await readSecret(deps.client, source.nodeExpandSecretRef, 'NodeExpandSecretRef', signal)
      const request = {
        volumeId: source.volumeHandle,
        volumePath: (spec.mode === 'Block' ? devicePath : path) ?? path ?? '',
        stagingPath: capabilities.has('STAGE_UNSTAGE_VOLUME') ? (stagingPath ?? '') : '',
        sizeBytes: newBytes,
        capability: capabilityOf(spec, capabilities, undefined),
        secrets,
      }
      const measure = () => capacityOf(deps, spec.mode === 'Block' ? undefined : path, signal)
      const before = await measure()
      await driver.node.expand(request, signal)
      const after = await measure()
      if (before !== undefined && after !== undefined && hasNotGrown({ before, after }, { oldBytes, newBytes }))
        throw withoutEffect('NodeExpandVolume', `the filesystem at ${path} still has ${after} bytes, not ${newBytes}`)
      // The size in the answer is ignored (CSI-61): the PersistentVolume says how large the volume is.
      return newBytes
    },
    async usage({ spec, path }, outer) {
      using deadline = deps.clock.deadline(statsMs, outer)
      const { signal } = deadline
      if (sourceOf(spec).lifecycle !== 'Persistent') throw notSupported('an inline volume has no figures')
      const source = persistent(spec)
      const driver = deps.drivers.require(source.driver)
      if (!(await driver.nodeCapabilities(signal)).has('GET_VOLUME_STATS')) {
        throw notSupported(`driver ${source.driver} does not support GET_VOLUME_STATS`)
      }
      const { condition, ...usage } = await driver.node.stats(source.volumeHandle, path, signal)
      const abnormal = condition?.abnormal ? { abnormal: { message: condition.message } } : {}
      return { time: deps.clock.now(), ...usage, ...abnormal }
    },
    async health({ spec, path, stagingPath }, outer) {
      const source = sourceOf(spec)
      if (source.lifecycle !== 'Persistent') return undefined
      using deadline = deps.clock.deadline(statsMs, outer)
      const { signal } = deadline
      const driver = deps.drivers.require(source.value.driver)
      if (!(await driver.nodeCapabilities(signal)).has('GET_VOLUME_HEALTH')) return undefined
      return await driver.node.health({ volumeId: source.value.volumeHandle, publishPath: path, stagingPath }, signal)
    },
  }
}

/** Undefined where it cannot be told: then the driver is believed. */
async function capacityOf(
  { clock, host }: CsiNodeDeps,
  path: string | undefined,
  outer: AbortSignal,
): Promise<bigint | undefined> {
  if (path === undefined) return undefined
  using deadline = clock.deadline(measureMs, outer)
  try {
    return (await host.filesystems.usage(path, deadline.signal)).capacityBytes
  } catch (error) {
    if (outer.aborted) throw error
    return undefined
  }
}

function notSupported(message: string): VolumeError {
  return new VolumeError('NotSupported', message, { effect: 'none', tags: ['notSupported'] })
}
