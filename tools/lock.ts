// What is installed with Hawser? package-lock.json as data: the packages that a user gets, as a lock of their own and as a bill
// of materials (CycloneDX).

export interface LockedPackage {
  readonly version?: string
  readonly integrity?: string
  readonly license?: string
  readonly dev?: boolean
  readonly devOptional?: boolean
  readonly optional?: boolean
  readonly os?: string | readonly string[]
  readonly cpu?: string | readonly string[]
  readonly libc?: string | readonly string[]
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

export interface Lock {
  readonly name: string
  readonly version: string
  readonly lockfileVersion: number
  readonly packages: Readonly<Record<string, LockedPackage>>
}

/** The lock of what users install: npm takes a package's own npm-shrinkwrap.json, never its package-lock.json. */
export function shrinkwrap(lock: Lock): Lock {
  const packages = Object.entries(lock.packages).flatMap(([path, found]) => {
    if (path !== '') return isShipped(found) ? [[path, found] as const] : []
    const { devDependencies: _, ...root } = found
    return [['', root] as const]
  })
  return { ...lock, packages: Object.fromEntries(packages) }
}

/** Whether npm installs it on the machines that Hawser runs on. */
export function isForLinux({ os, cpu, libc }: LockedPackage): boolean {
  const allows = (given: string | readonly string[] | undefined, wanted: readonly string[]) => {
    const list = given === undefined ? [] : [given].flat()
    const named = list.filter((name) => !name.startsWith('!'))
    if (list.some((name) => name.startsWith('!') && wanted.every((each) => name === `!${each}`))) return false
    return named.length === 0 || named.some((name) => wanted.includes(name))
  }
  return allows(os, ['linux']) && allows(cpu, ['x64', 'arm64']) && allows(libc, ['glibc'])
}

/** A CycloneDX document: who made it and when is left out, so that the same lock gives the same bytes. */
export function billOfMaterials(lock: Lock): object {
  const components = Object.entries(lock.packages)
    .filter(([path, found]) => path !== '' && isShipped(found) && isForLinux(found))
    .map(([path, found]) => componentOf(nameOf(path), found))
    .toSorted((a, b) => (a.purl < b.purl ? -1 : 1))
  const { name, version } = lock
  const purl = `pkg:npm/${name}@${version}`
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', 'bom-ref': purl, name, version, purl } },
    components,
  }
}

function componentOf(name: string, { version = '', integrity, license, optional }: LockedPackage) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  const [, base64] = /^sha512-(.+)$/.exec(integrity ?? '') ?? []
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    scope: optional === true ? 'optional' : 'required',
    ...(base64 === undefined
      ? {}
      : { hashes: [{ alg: 'SHA-512', content: Buffer.from(base64, 'base64').toString('hex') }] }),
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
  }
}

const isShipped = ({ dev, devOptional }: LockedPackage) => dev !== true && devOptional !== true

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}
