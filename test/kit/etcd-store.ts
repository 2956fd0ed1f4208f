// A store in a real etcd, for tests: keys and values as they are.
import { createSystemClock } from '../../src/clock/system-clock.ts'
import type { EtcdStoreOptions } from '../../src/store/etcd-store.ts'
import { openEtcdStore } from '../../src/store/etcd-store.ts'
import type { EtcdLayout } from '../../src/store/etcd/layout.ts'
import type { Store } from '../../src/store/store.ts'
import { silentLog } from '../../src/telemetry/log.ts'

const plainLayout: EtcdLayout = {
  path: (key) => key,
  key: (path) => (path.startsWith('/') ? path : undefined),
  encode: (_key, value) => Buffer.from(value),
  decode: (_key, bytes) => Buffer.from(bytes).toString(),
}

export function openTestStore(
  servers: readonly string[],
  prefix: string,
  more: Partial<EtcdStoreOptions> = {},
): Promise<Store> {
  return openEtcdStore({
    servers,
    prefix,
    layout: plainLayout,
    holder: { id: prefix, name: 'test' },
    clock: createSystemClock(),
    log: silentLog,
    onLost: () => {},
    ...more,
  })
}
