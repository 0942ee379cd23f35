/** A package in npm's CycloneDX document. */
export interface Component {
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly scope?: string
}
export interface Bom {
  readonly metadata: { readonly component: { name: string } }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn?: readonly string[] }[]
}

/** Packages of a package-lock.json, by their folder. */
export interface Lock {
  readonly packages: Readonly<
    Record<string, { readonly version?: string; readonly dev?: boolean; readonly devOptional?: boolean }>
  >
}

/**
 * The part of a bill of materials that a release consists of: packages that are installed with it, and those that dist/ holds
 * parts of. `npm sbom --omit dev` leaves out both what is bundled and each package that a development dependency needs too.
 */
export function releaseBom<B extends Bom>(bom: B, { packages }: Lock, bundled: ReadonlySet<string>): B {
  const wanted = new Set<string>()
  for (const [folder, { version, dev, devOptional }] of Object.entries(packages)) {
    const name = folder.replace(/^.*node_modules\//, '')
    const isInstalled = dev !== true && devOptional !== true
    if (folder !== '' && (isInstalled || (folder === `node_modules/${name}` && bundled.has(name))))
      wanted.add(`${name}@${version}`)
  }
  const components = bom.components.filter(({ name, version }) => wanted.has(`${name}@${version}`))
  const missing = wanted.size - new Set(components.map(({ name, version }) => `${name}@${version}`)).size
  if (missing > 0) throw new Error(`${missing} packages of the release are not in the bill of materials of npm`)
  const refs = new Set(components.map((component) => component['bom-ref']))
  const isOfRelease = (ref: string): boolean =>
    refs.has(ref) || !bom.components.some((component) => component['bom-ref'] === ref)
  return {
    ...bom,
    // To npm, what is bundled is optional.
    components: components.map((one) => (bundled.has(one.name) ? Object.assign(one, { scope: 'required' }) : one)),
    dependencies: bom.dependencies
      .filter(({ ref }) => isOfRelease(ref))
      .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) })),
  }
}

/** Names of the packages in a file of licenses that the build has written. */
export const bundledIn = (licenses: string): ReadonlySet<string> =>
  new Set([...licenses.matchAll(/^((?:@[\w.-]+\/)?[\w.-]+) \d[\w.+-]* \(.*\)$/gm)].map(([, name = '']) => name))
