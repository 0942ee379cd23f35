import path from 'node:path'
import type { AuthSection } from './auth-section.ts'
import type { ExternalAuthSpec } from './external-auth.ts'

/** A path of a document as an absolute one: relative to the file that names it (decisions §7). */
export function besides(file: string, name: string): string {
  return path.resolve(path.dirname(file), name)
}

/** The section with the paths of its files made absolute. */
export function anchorAuthSection(section: AuthSection, file: string): AuthSection {
  if (section.mode === 'anonymous') return section
  const providers = section.oauth.providers.map((provider) => ({
    ...provider,
    ...anchored(provider, ['caCertPath', 'clientSecretFile', 'authTokenFile'], file),
  }))
  return { mode: 'oauth', oauth: { ...section.oauth, providers } }
}

/** The spec with the paths of its files made absolute. */
export function anchorSpec(spec: ExternalAuthSpec, file: string): ExternalAuthSpec {
  if (spec.type !== 'tokenExchange') return spec
  return { ...spec, tokenExchange: { ...spec.tokenExchange, ...anchored(spec.tokenExchange, ['caCertPath'], file) } }
}

/** Those of the named properties that are set, made absolute. */
export function anchored<K extends string>(
  object: { readonly [Name in K]?: string | undefined },
  names: readonly K[],
  file: string,
): { [Name in K]?: string } {
  const result: { [Name in K]?: string } = {}
  for (const name of names) {
    const value = object[name]
    if (value !== undefined) result[name] = besides(file, value)
  }
  return result
}
