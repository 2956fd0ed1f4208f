// What does a store hold, and is it sound? The server of a data directory is stopped for it; etcd is read beside one that runs.
import { createSystemClock } from '../clock/system-clock.ts'
import { openReadDirectory } from '../installation/move-directory.ts'
import type { StoreReport } from '../installation/store-check.ts'
import { checkStore } from '../installation/store-check.ts'
import type { StorePlace } from './move-store.ts'
import { etcdAccess, openSqliteFile, refusing } from './open-store.ts'

export async function checkStoreAt(place: StorePlace): Promise<StoreReport> {
  if (place.kind === 'etcd') {
    const { readEtcd } = await import('../store/etcd-store.ts')
    const { signal } = new AbortController()
    return checkStore(await refusing(() => readEtcd(etcdAccess(place.etcd), createSystemClock(), signal)))
  }
  using directory = openReadDirectory(place.directory)
  return refusing(async () => {
    await using store = openSqliteFile(directory.storeFile)
    const { entries } = await store.list('/', {})
    return checkStore(entries.map(({ key, value, revision }) => ({ kind: 'entry', key, value, revision })))
  })
}
