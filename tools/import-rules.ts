// Who may import whom? This table is the answer; tools/tidy.ts enforces it.

/** A folder of src → the folders it may import beside itself. `*` is everything. */
export const mayImport: Readonly<Record<string, readonly string[]>> = {
  clock: [],
  api: [],
  telemetry: ['clock'],
  loop: ['clock', 'telemetry'],
  store: ['clock', 'loop', 'telemetry'],
  host: ['clock', 'streams', 'telemetry'],
  client: ['api', 'clock', 'loop', 'streams', 'telemetry'],
  streams: ['clock', 'telemetry'],
  apiserver: ['api', 'clock', 'store', 'streams', 'telemetry'],
  volume: ['api', 'clock', 'loop', 'telemetry'],
  csi: ['api', 'client', 'clock', 'host', 'loop', 'telemetry', 'volume'],
  plugins: ['api', 'client', 'clock', 'csi', 'host', 'telemetry', 'volume'],
  controllers: ['api', 'client', 'clock', 'loop', 'telemetry', 'volume'],
  node: ['api', 'client', 'clock', 'host', 'loop', 'streams', 'telemetry', 'volume'],
  drivers: ['clock', 'csi', 'host', 'telemetry', 'volume'],
  lab: ['clock', 'csi', 'host', 'telemetry', 'volume'],
  why: ['api', 'client', 'clock', 'volume'],
  installation: ['api', 'apiserver', 'client', 'clock', 'host', 'node', 'plugins', 'store', 'telemetry', 'volume'],
  cli: [
    'api',
    'client',
    'clock',
    'csi',
    'host',
    'installation',
    'lab',
    'main',
    'sim',
    'streams',
    'telemetry',
    'volume',
    'why',
  ],
  sim: [
    'api',
    'apiserver',
    'client',
    'clock',
    'controllers',
    'csi',
    'host',
    'loop',
    'node',
    'plugins',
    'store',
    'telemetry',
    'volume',
  ],
  main: ['*'],
  /** The library's entry. */
  'index.ts': ['*'],
}

/** Inside these folders `host` means the port, never an implementation. */
export const portOnly = ['csi', 'plugins', 'node', 'controllers']

/** Only these may import host/linux; `main` chooses it, the built-in driver is a program of its own. */
export const linuxUsers = ['host', 'main', 'drivers', 'cli', 'installation']

/** Where `node:*` modules that touch the outside may appear (path prefixes under src). */
export const outsideFiles = [
  'clock/system-clock.ts',
  'telemetry/pino-log.ts',
  'store/sqlite-store',
  'store/sqlite',
  'store/etcd/channel.ts',
  'apiserver/http/server',
  'apiserver/access/certificates.ts',
  'telemetry/audit-file.ts',
  'apiserver/request/node-client.ts',
  'client/http',
  'host/linux/',
  'streams/socket.ts',
  'node/server/listener.ts',
  'node/server/container-logs.ts',
  'csi/channel.ts',
  'csi/serve.ts',
  'csi/registration/',
  'drivers/',
  'installation/',
  'cli/',
  'main/',
]

/** Pure helpers of the platform: the simulator does not mind them. */
export const pureModules = [
  'node:path/posix',
  'node:assert',
  'node:assert/strict',
  'node:crypto',
  'node:events',
  'node:buffer',
  'node:zlib',
  'node:util',
]

/** Plugin folders that others may share. */
export const sharedPlugins = ['shared', 'disk', 'projected']
